"""HTTP hooks: services that are asked about a playbook on a host, as in Scoby."""
