"""The parts of a playbook: plays, services, hosts, the project. Imports `problems`, `graph`, `templates` and
`remote`."""
