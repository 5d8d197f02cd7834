"""Repositories of package managers, and their keys."""
