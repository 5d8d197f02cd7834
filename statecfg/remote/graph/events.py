"""The names of host events and of run events. Only the controller uses them, so they are not sent to hosts."""

from __future__ import annotations

from typing import Final


class HostEvent:
    """Host events: the events in the life of a host, for which hooks are called.

    In these names, `node` means a host, as in Razor.
    """

    REGISTERED: Final = "node-registered"
    FACTS_CHANGED: Final = "node-facts-changed"
    BOOTED: Final = "node-booted"
    BOUND: Final = "node-bound-to-policy"
    UNBOUND: Final = "node-unbound-from-policy"
    INSTALLED: Final = "node-install-finished"
    DELETED: Final = "node-deleted"
    # The order of Razor's message about an unknown event. The same message of statecfg keeps it.
    ALL: Final = (BOOTED, REGISTERED, BOUND, UNBOUND, DELETED, FACTS_CHANGED, INSTALLED)


class RunEvent:
    """Run events: the progress of a run on one host.

    In these names, `node` means a node of the graph. In the names of `HostEvent`, it means a host.
    """

    CONNECTING: Final = "connecting"
    CONNECTED: Final = "connected"
    UPLOADING: Final = "uploading"
    PLANNED: Final = "planned"
    NODE_STARTED: Final = "node-started"
    NODE_FINISHED: Final = "node-finished"
    ACTION_STARTED: Final = "action-started"
    ACTION_FINISHED: Final = "action-finished"
    HOOK_STARTED: Final = "hook-started"
    FIRED: Final = "fired"
    OUTPUT: Final = "output"
    UNIT_HOOK: Final = "unit-hook"
    UNIT_LOG: Final = "unit-log"
    WARNING: Final = "warning"
    FINISHED: Final = "finished"
    ALL: Final = (
        CONNECTING, CONNECTED, UPLOADING, PLANNED, NODE_STARTED, NODE_FINISHED, ACTION_STARTED, ACTION_FINISHED,
        HOOK_STARTED, FIRED, OUTPUT, UNIT_HOOK, UNIT_LOG, WARNING, FINISHED,
    )  # fmt: skip
