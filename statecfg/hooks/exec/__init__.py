"""Exec hooks: programs that run one at a time, as in Razor."""
