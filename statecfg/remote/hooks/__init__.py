"""Hooks around resources, as the host calls them. May import `remote` up to `remote.ledger`."""
