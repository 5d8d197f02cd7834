"""Users, groups and passwords, and what they may do: keys, sudo, limits and PAM.

Imports `resources.services`, `resources.network`, `resources.ssh`, `resources.shared` and the rooms of `remote`.
"""
