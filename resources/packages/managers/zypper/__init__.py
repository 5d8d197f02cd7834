"""The package manager zypper."""
