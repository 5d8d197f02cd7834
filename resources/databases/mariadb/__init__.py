"""Databases, users and permissions of MariaDB and MySQL."""
