"""Services, systemd units, jobs of cron, rotated logs and processes.

Imports `resources.shared` and the rooms of `remote`.
"""
