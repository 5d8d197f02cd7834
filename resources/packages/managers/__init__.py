"""The package managers. Each has its own package here."""
