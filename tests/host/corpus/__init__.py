"""Runs nine playbooks of the size of real configuration roles on booted bare Debian hosts.

`project/` has the playbooks. `debian` builds the bare Debian, `roles` prepares each host and makes it drift, `snapshot`
records the state of a host, `states` compares plans with results, and `course` takes a role through its four states.
"""
