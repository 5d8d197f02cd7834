"""Names of the host and of others, and firewalls.

Imports `resources.system`, `resources.shared` and the rooms of `remote`.
"""
