"""Settings of sshd and ssh, their keys, and known hosts.

Imports `resources.services`, `resources.tls`, `resources.shared` and the rooms of `remote`.
"""
