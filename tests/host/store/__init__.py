"""Tests of the store: the same ones on SQLite and on a real PostgreSQL server, and what is particular to each."""
