"""One host in a run: the session with it and the report about it. Imports what `run` may import."""
