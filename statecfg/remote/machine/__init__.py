"""The machine: what checks read and ops change, real or planned. Imports `remote.graph`."""
