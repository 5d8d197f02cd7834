"""Calls of hooks around resources: run the host's hooks as processes, and ask the controller to run its own."""

from __future__ import annotations

import hashlib
import json
import time

from statecfg.remote.wire.frames import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping

    from typing_extensions import Protocol

    from statecfg.remote.graph.model import JsonMap
    from statecfg.remote.hooks.calling import CalledHook, HookedResource
    from statecfg.remote.hooks.order import HookOrder
    from statecfg.remote.ledger.ledger import Ledger
    from statecfg.remote.wire.channel import Channel

    class Run(Protocol):
        """The part of a run's order that hooks need: the host and the playbook as data for hooks, and its name."""

        node: Mapping[str, Any]
        policy: Mapping[str, Any]
        playbook: str


class Firing:
    """Calls the hooks of one run.

    :param run: the controller's instructions
    :param ledger: holds the configuration of this host's hooks
    :param mask: masks secrets
    :param channel: to the controller
    """

    def __init__(self, run: Run, ledger: Ledger, mask: Callable[[Any], Any], channel: Channel) -> None:
        from statecfg.remote.machine.facts import gather

        self.run, self.ledger, self.mask, self.channel = run, ledger, mask, channel
        self.node = dict(run.node, facts=gather())
        self.count = 0

    def call(self, hook: HookOrder, event: str, resource: HookedResource, seconds: float) -> Mapping[str, Any]:
        """Call a hook; return {"ok", "error", …}. Source of the protocol: Razor's hooks.

        `waited` in the result is the number of seconds before the hook started: the time for its turn on the
        controller, or for preparations here.
        """
        masked: HookedResource = self.mask(resource)
        masked["playbook"] = self.run.playbook
        if hook.where == "host":
            return self._here(hook, event, masked, seconds)
        self.count += 1
        question = {"type": "hook", "id": self.count, "hook": hook.name, "event": event, "seconds": seconds}
        self.channel.send(dict(question, resource=masked))
        try:
            while True:
                answer, _ = self.channel.receive("hooked", cancelled=True)
                if answer["id"] == self.count:
                    return answer
        except ProtocolError as problem:
            return {"ok": False, "error": f"the controller did not say how it ended: {problem}"}

    def tell(self, called: CalledHook) -> None:
        """Tell the controller which hook was called, and its result."""
        self.channel.send(dict(called, type="fired"))

    def _here(self, hook: HookOrder, event: str, resource: HookedResource, seconds: float) -> JsonMap:
        """Run a hook on this host.

        The host keeps its own configuration of the hook. It uses the controller's again when that changes.
        """
        begun = time.monotonic()
        from statecfg.remote.hooks.result import judge, not_executable, shortened, why
        from statecfg.remote.hooks.run import executable, handler, invoke

        folder = hook.files.folder(self.ledger.state_dir)
        program = handler(folder, event)
        if not program:
            return {"ok": True}
        if not executable(program):
            refused = not_executable(event, program)
            return {"ok": False, "entry": refused.entry, "severity": refused.severity, "error": why(refused)}
        base = hashlib.sha256(json.dumps(hook.configuration, sort_keys=True).encode()).hexdigest()
        kept = self.ledger.hook(hook.name, base)
        configuration = dict(hook.configuration) if kept is None else kept
        described = {"id": hook.id, "name": hook.name, "type": hook.files.type, "configuration": configuration}
        document = {
            "hook": {**{key: value for key, value in described.items() if value is not None}, "cause": event},
            "node": self.node,
            "policy": self.run.policy,
            "resource": resource,
        }
        metadata = self.node.get("metadata") or {}
        about = {"hook": hook.name, "event": event, "name": resource["name"], "seconds": seconds}
        self.channel.send(dict(about, type="calling"))
        waited = time.monotonic() - begun
        ended = invoke(folder, event, document, seconds)
        judged = judge(event, hook.schema, configuration, metadata, ended)
        if judged.configuration != configuration:
            self.ledger.set_hook(hook.name, base, judged.configuration)
        answer: Dict[str, Any] = {"ok": judged.sound, "entry": shortened(judged.entry), "severity": judged.severity}
        if judged.metadata is not None and judged.metadata != metadata:
            self.node["metadata"] = answer["metadata"] = judged.metadata
        return dict(answer, error=why(judged), waited=waited)
