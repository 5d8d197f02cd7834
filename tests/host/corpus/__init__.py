"""Nine playbooks of the size of real configuration roles, run on booted bare Debian hosts.

`project/` has the playbooks, `debian` makes the bare Debian, `roles` says how each host is prepared and drifts,
`snapshot` records what a host is, and `states` runs a playbook through its four states.
"""
