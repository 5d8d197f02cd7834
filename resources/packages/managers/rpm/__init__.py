"""The database of rpm, for dnf and zypper."""
