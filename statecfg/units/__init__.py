"""Services and their units: which hook runs next, where, and what it may see."""
