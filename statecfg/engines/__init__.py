"""Engines decide which processes hold the connections to hosts: this one, or workers. Imports `transport`.

A worker is a transport, not a second controller: it logs in to hosts and relays bytes. Everything else runs in the
controller.
"""
