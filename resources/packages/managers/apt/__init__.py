"""The package manager apt, and dpkg."""
