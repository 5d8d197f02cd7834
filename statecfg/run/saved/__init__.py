"""Saved plans: what was planned, and all that is needed to see, on any machine, whether it still holds."""
