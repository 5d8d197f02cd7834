"""The executor: the half of statecfg that runs on the host, stdlib only, Python 3.8 or newer."""

OLDEST = (3, 8)
"""The oldest Python that the executor and node types must run on."""
