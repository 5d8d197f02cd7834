"""Lifecycle hooks: who is told of what, by which protocol, and what may follow from the answer."""
