"""The failure of a hook that ends a host's run."""

from __future__ import annotations


class HookFailure(Exception):
    """A hook failed, and its policy ends the host's run before anything was changed.

    :param hook: its name
    :param host: whose run it ends
    :param phase: "pre-reconcile" or "finalize"
    :param message: why
    :param again: when it is to be tried again (seconds since 1970); None: never by itself
    """

    def __init__(self, hook: str, host: str, phase: str, message: str, again: float | None) -> None:
        self.hook, self.host, self.phase, self.message, self.again = hook, host, phase, message, again
        super().__init__(f"{phase} of the hook {hook}: {message}")
