"""Tables and queries of units, their relations and their hooks."""
