"""The package manager dnf."""
