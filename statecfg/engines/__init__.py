"""Engines: where the connections to the hosts are, in this process or in workers. Imports `transport`.

A worker is a transport, not a second controller: it logs in to hosts and relays bytes. All else stays in the
controller.
"""
