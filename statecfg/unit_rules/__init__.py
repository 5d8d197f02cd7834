"""The rules that decide which hook of a unit is due: pure functions, which the store uses.

Imports nothing of statecfg.
"""
