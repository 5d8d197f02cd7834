"""Registrations: the files `hooks/*.yml` of a project, which say when a hook is called."""
