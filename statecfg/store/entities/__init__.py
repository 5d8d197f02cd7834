"""Tables and queries of types, entities and tasks."""
