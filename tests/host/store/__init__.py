"""Tests of the store. Most run on SQLite and on a real PostgreSQL server, and some are for one of them."""
