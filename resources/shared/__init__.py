"""What several node types share: paths, snapshots and their restoration, accounts, packages and systemd units.

Imports the rooms of `remote`, because this code runs on hosts.
"""
