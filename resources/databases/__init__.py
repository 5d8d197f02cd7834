"""Databases, their users and permissions, and settings of their servers.

Imports `resources.shared` and the rooms of `remote`.
"""
