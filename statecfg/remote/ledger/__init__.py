"""The host's record: lock, journal, ledger, history. Imports `remote.graph`, `remote.machine`, `remote.wire`."""
