"""The exchange between controller and host: frames and the channel. Imports `remote.graph` and `remote.machine`."""
