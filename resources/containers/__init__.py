"""Containers, their images, Compose projects and quadlets.

Imports `resources.services`, `resources.shared` and the rooms of `remote`.
"""
