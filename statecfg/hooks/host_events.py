"""Host events that a command fires."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.remote.hooks.result import Judged
    from statecfg.store.connection import Connection
    from statecfg.store.database import Store
    from statecfg.store.hooks.records import HookObject
    from statecfg.store.hosts import HostRecord


def fire(
    store: Store,
    event: str,
    record: HostRecord,
    playbook: str | None,
    project: Project,
    change: Callable[[Connection], object] | None = None,
) -> list[dict[str, str]]:
    """Fire a host event: queue its hooks and run the queue.

    :param event: one of `HostEvent`
    :param record: the host; for a host that was just forgotten, its last record
    :param playbook: of the event; None if the event has none
    :param change: changes the store together with the event, as in `Engine.trigger`
    :param project: has the types of hooks
    :returns: the failed hooks, as in reports: `hook`, `event` and `error`
    """
    import getpass

    from statecfg.hooks import failed_events
    from statecfg.hooks.exec import engine as exec_hooks
    from statecfg.hooks.registration import files

    engine = exec_hooks.of_project(project, store)
    for registration in files.load(project):
        if registration.protocol == "exec":
            engine.hooks.adopt(registration, getpass.getuser())
    failed: list[dict[str, str]] = []

    def refused(hook: HookObject, judged: Judged) -> None:
        failed.append(failed_events.entry(hook.name, judged.entry, judged.detail))

    queued = engine.trigger(event, record, playbook, change, refused)
    engine.drain()
    return failed + [entry for _, entry in failed_events.of(store, dict.fromkeys(queued, record.name))]
