"""HTTP hooks: services that are called for a playbook on a host, as in Scoby."""
