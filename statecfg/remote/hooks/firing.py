"""Calls of hooks around resources: run the host's hooks as processes, and ask the controller to run its own."""

from __future__ import annotations

import hashlib
import json
import time

from statecfg.remote.wire.frames import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from typing_extensions import Protocol

    from statecfg.remote.hooks.order import HookOrder
    from statecfg.remote.ledger.ledger import Ledger
    from statecfg.remote.wire.channel import Channel

    class Managed(Protocol):
        """The part of the run's managed state that hooks need."""

        node: Mapping[str, Any]
        policy: Mapping[str, Any]
        place: str
        playbook: str
        ledger: Optional[Ledger]

        def mask(self, value: Any) -> Any:
            """Return a value with its secrets masked."""


class Firing:
    """Calls the hooks of one run.

    :param managed: the managed state of the run; its ledger holds the configuration of this host's hooks
    :param channel: to the controller
    """

    def __init__(self, managed: Managed, channel: Channel) -> None:
        from statecfg.remote.machine.facts import gather

        self.managed, self.channel = managed, channel
        self.node = dict(managed.node, facts=gather())
        self.count = 0

    def call(self, hook: HookOrder, event: str, resource: Dict[str, Any], seconds: float) -> Mapping[str, Any]:
        """Call a hook; return {"ok", "error", …}. Source of the protocol: Razor's hooks.

        `waited` in the result is the number of seconds before the hook started: the time for its turn on the
        controller, or for preparations here.
        """
        resource = dict(self.managed.mask(resource), playbook=self.managed.playbook)
        if hook.where == "host":
            return self._here(hook, event, resource, seconds)
        self.count += 1
        question = {"type": "hook", "id": self.count, "hook": hook.name, "event": event, "seconds": seconds}
        self.channel.send(dict(question, resource=resource))
        try:
            while True:
                answer, _ = self.channel.receive("hooked", cancelled=True)
                if answer["id"] == self.count:
                    return answer
        except ProtocolError as problem:
            return {"ok": False, "error": "the controller did not say how it ended: %s" % problem}

    def tell(self, fired: Dict[str, Any]) -> None:
        """Tell the controller which hook was called, and its result."""
        self.channel.send(dict(fired, type="fired"))

    def _here(self, hook: HookOrder, event: str, resource: Dict[str, Any], seconds: float) -> Dict[str, Any]:
        """Run a hook on this host.

        The host keeps its own configuration of the hook. It uses the controller's again when that changes.
        """
        begun = time.monotonic()
        from statecfg.remote.hooks.result import judge, not_executable, shortened, why
        from statecfg.remote.hooks.run import executable, handler, invoke

        ledger = self.managed.ledger
        assert ledger is not None
        folder = hook.folder(self.managed.place)
        program = handler(folder, event)
        if not program:
            return {"ok": True}
        if not executable(program):
            refused = not_executable(event, program)
            return {"ok": False, "entry": refused.entry, "severity": refused.severity, "error": why(refused)}
        base = hashlib.sha256(json.dumps(hook.configuration, sort_keys=True).encode()).hexdigest()
        kept = ledger.hook(hook.name, base)
        configuration = dict(hook.configuration) if kept is None else kept
        told = {"id": hook.id, "name": hook.name, "type": hook.type, "configuration": configuration}
        given = {
            "hook": {**{key: value for key, value in told.items() if value is not None}, "cause": event},
            "node": self.node,
            "policy": self.managed.policy,
            "resource": resource,
        }
        metadata = self.node.get("metadata") or {}
        about = {"hook": hook.name, "event": event, "name": resource["name"], "seconds": seconds}
        self.channel.send(dict(about, type="calling"))
        waited = time.monotonic() - begun
        ended = invoke(folder, event, given, seconds)
        judged = judge(event, hook.schema, configuration, metadata, ended)
        if judged.configuration != configuration:
            ledger.set_hook(hook.name, base, judged.configuration)
        answer: Dict[str, Any] = {"ok": judged.sound, "entry": shortened(judged.entry), "severity": judged.severity}
        if judged.metadata is not None and judged.metadata != metadata:
            self.node["metadata"] = answer["metadata"] = judged.metadata
        return dict(answer, error=why(judged), waited=waited)
