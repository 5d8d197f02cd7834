"""Hooks around the resources of a run: which ones a node would call, and the calls."""

from __future__ import annotations

import time

from statecfg.remote.graph.names import HOOKS_OF_EVENT, HookStatus
from statecfg.remote.hooks.lifecycle import (
    FINALIZE,
    IN_DELETION,
    POST_CREATE,
    POST_DELETE,
    POST_UPDATE,
    PRE_DELETE,
    PRE_RECONCILE,
    RESOLVED,
    Lifecycle,
)  # fmt: skip
from statecfg.remote.machine.changes import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

    from typing_extensions import TypedDict

    from statecfg.remote.graph.model import HostNode, JsonMap
    from statecfg.remote.hooks.lifecycle import ExpectedHook, Tracked
    from statecfg.remote.hooks.order import HookOrder

    class CalledHook(ExpectedHook, total=False):
        """A hook that was called, with its result."""

        status: str
        error: str
        severity: str
        entry: JsonMap
        metadata: JsonMap

    class HookedResource(TypedDict, total=False):
        """A node as hooks receive it."""

        name: str
        type: str
        state: str
        position: str
        attributes: JsonMap
        tags: List[str]
        outcome: str
        playbook: str


class HookedLifecycle(Lifecycle):
    """The states of the nodes of one run, and the hooks around them.

    :param hooks: the hooks that may be called, in order
    """

    def __init__(self, tracked: Dict[str, Tracked], hooks: Sequence[HookOrder]) -> None:
        Lifecycle.__init__(self, tracked)
        self.hooks = hooks

    def connect(
        self,
        call: Callable[[HookOrder, str, HookedResource, float], Mapping[str, Any]],
        tell: Callable[[CalledHook], None],
    ) -> None:
        """Connect the lifecycle to its hooks. Before this call, it cannot call any.

        :param call: calls a hook: (hook, event, resource as data, seconds) → {"ok": bool, "error": str, "waited": s}
        :param tell: receives each call, for the report
        """
        self.call, self.tell = call, tell

    def due(self, node: HostNode, changed: bool) -> bool:
        """Return whether processing a node would call a hook or change its state."""
        if Lifecycle.due(self, node, changed):
            return True
        events = [PRE_RECONCILE]
        if not self.of(node).state:
            events.append(POST_CREATE)
        elif changed:
            events.append(POST_UPDATE)
        return any(hook.fires(event, node) for hook in self.hooks for event in events)

    def would_fire(self, node: HostNode, acts: bool, removal: bool) -> List[ExpectedHook]:
        """Return the hooks that a node would call: hook, event, name, where."""
        tracked = self.of(node)
        if removal:
            begun = tracked.state == IN_DELETION
            events = [FINALIZE, POST_DELETE] if begun else [PRE_DELETE, FINALIZE, POST_DELETE]
        else:
            events = [PRE_RECONCILE]
            if tracked.state != RESOLVED:
                events.append(POST_CREATE)
            elif acts or tracked.owing:
                events.append(POST_UPDATE)
        return [
            {"hook": hook.name, "event": event, "name": node.provides, "where": hook.where}
            for event in events
            for hook in self.hooks
            if hook.fires(event, node)
        ]

    def fire(self, event: str, node: HostNode, outcome: str, only: Optional[Sequence[str]] = None) -> str:
        """Call an event's hooks in order; return why the run can't continue with the node, "" if it can."""
        end = time.monotonic() + HOOKS_OF_EVENT
        tracked = self.of(node)
        for hook in self.hooks:
            if not hook.fires(event, node) or (only is not None and hook.name not in only):
                continue
            left = end - time.monotonic()
            if left <= 0:
                error = f"the event's hooks took {HOOKS_OF_EVENT:g} s together"
                answer: Mapping[str, Any] = {"ok": False, "error": error}
            else:
                answer = self.call(hook, event, resource(node, tracked.state, outcome), min(left, hook.deadline))
                end += answer.get("waited", 0.0)  # don't count the time in which other hosts' hooks ran
            status = HookStatus.OK if answer["ok"] else hook.on_failure.status
            called: CalledHook = {"hook": hook.name, "event": event, "name": node.provides, "where": hook.where}
            called["status"] = status
            for key in ("error", "severity", "entry", "metadata"):
                if answer.get(key):
                    called[key] = answer[key]
            self.tell(called)
            message = f"the {event} hook {hook.name} failed: {answer.get('error') or 'it gave no reason'}"
            if status == HookStatus.OWED:
                tracked.owing.append([event, hook.name])
                tracked.why = message
            elif status == HookStatus.FAILED:
                return message
        return ""


def resource(node: HostNode, state: str, outcome: str) -> HookedResource:
    """Return a node as hooks receive it. Attributes are as in reports: content by its digest."""
    data: HookedResource = {"name": node.provides, "type": node.type, "state": state, "position": node.position}
    data["attributes"] = as_json({key: value for key, value in node.attrs.items() if value is not None})
    data["tags"] = list(node.options.get("tags") or ())
    if outcome:
        data["outcome"] = outcome
    return data
