"""Registrations: the files `hooks/*.yml` of a project. They define when each hook is called."""
