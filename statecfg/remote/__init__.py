"""The executor: the half of statecfg that runs on the host, stdlib only, Python 3.8 or newer."""
