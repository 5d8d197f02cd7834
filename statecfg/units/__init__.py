"""Services and their units during a run: which hook runs next, on which host, and what it may read.

Imports `run`, `store` and lower rooms.
"""
