"""Certificates, their keys, and the authorities that the system trusts.

Imports `resources.shared` and the rooms of `remote`.
"""
