"""What several node types share: paths, snapshots and their restoration, accounts, packages and units of systemd.

Imports the rooms of `remote`, because this code runs on hosts.
"""
