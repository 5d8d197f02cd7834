"""What a playbook says: plays, services, hosts, the project. Imports `problems`, `graph`, `templates` and `remote`."""
