"""Settings of Redis."""
