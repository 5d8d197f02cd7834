"""Saved plans: the plan, and the data with which any machine can check whether the plan is still valid."""
