"""Mounts, swap, file systems and volumes of LVM.

Imports `resources.services`, `resources.shared` and the rooms of `remote`.
"""
