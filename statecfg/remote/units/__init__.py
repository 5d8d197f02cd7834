"""Units of services on the host: charms, hooks and their tools. Imports the rooms of `remote` up to `remote.run`."""
