"""The package manager pacman."""
