"""Hooks around resources, as the host calls them. May import the rooms of `remote` up to `remote.ledger`."""
