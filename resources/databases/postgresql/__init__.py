"""Databases, users, extensions and permissions of PostgreSQL."""
