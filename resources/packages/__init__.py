"""Packages of the system, for all package managers.

Imports `resources.services`, `resources.shared` and the rooms of `remote`.
"""
