"""Hooks around resources, as the host calls them. Imports the rooms of `remote` up to `remote.ledger`."""
