"""Registrations: the files `hooks/*.yml` of a project. They say when which hook is called."""
