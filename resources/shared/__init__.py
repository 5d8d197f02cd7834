"""What at least three families use: paths, snapshots and their restoration, lines, drop-ins and sources of files.

Imports the rooms of `remote`, because this code runs on hosts.
"""
