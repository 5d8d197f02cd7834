"""Hooks: programs and services that are notified of events. May import `store`, `run`, `units` and lower rooms."""
