"""The root of statecfg's exceptions. `statecfg/problems/__init__.py` shows the whole tree."""


class StatecfgError(Exception):
    """Something that statecfg expects to go wrong. Any other exception that escapes is a bug."""
