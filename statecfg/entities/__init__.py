"""Runtime defined entities: types, entities, behaviors, tasks and access control.

Imports `hooks`, `run`, `store` and lower rooms.
"""
