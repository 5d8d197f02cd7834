"""The units on this host during a run: the controller sends the hooks that are due, and the host runs them.

A session that holds the lock uses it like this: `Units(state_dir, order["units"], channel, warnings)`; `files(blobs)`
when it requests missing content; `around`, which runs the hooks before and after the changes to the host; finally
`close()` in any case.
"""

from __future__ import annotations

import os
import threading
import time

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.names import HostStatus
from statecfg.remote.ledger import state
from statecfg.remote.units import files as unit_files
from statecfg.remote.units import home as unit_home
from statecfg.remote.units import hooks as unit_hooks
from statecfg.remote.units.agent import Agent
from statecfg.remote.units.context import DEBUG, INFO, Context
from statecfg.remote.units.questions import Questions
from statecfg.remote.units.step import UnitStep
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import decode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Protocol, Set, Tuple

    from statecfg.remote.graph.model import JsonMap
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.management import Management
    from statecfg.remote.run.plan import Plan

    End = Tuple[str, JsonMap]  # the status of the run, and the other fields of the frame `end`

    class ServedSession(Protocol):
        """The session with the controller, as far as units need it."""

        def end(self, status: str, **more: Any) -> End: ...
        def apply(self, managed: Management, plan: Plan, facets: Facets) -> End: ...
        def end_unchanged(self, managed: Management, plan: Plan) -> End: ...


HOOKS = "hooks"  # the directory of a charm's hooks
FRESH = ("install", "upgrade-charm")  # the current files of the charm are installed before these hooks


class Units:
    """The units of one run on this host.

    :param state_dir: the state directory
    :param order: the controller's order: `project`, `mark` and `store` of their owner, `units` (names), `early` (names
        of units that 0.3.0 created) and `charms` (service → name, digest, files)
    :param channel: the channel to the controller
    :param warnings: receives warnings for the user
    """

    def __init__(self, state_dir: str, order: Mapping[str, Any], channel: Channel, warnings: List[str]) -> None:
        self.state_dir, self.order, self.channel, self.warnings = state_dir, order, channel, warnings
        self.home = unit_home.take(state_dir, order)
        self._agent: Optional[Agent] = None
        self._tools = ""
        self._charms: Dict[str, unit_files.Files] = {}
        self._busy: Set[str] = set()
        self._swept = False
        self._failed = False  # whether a unit has failed in this run
        self._questions = Questions(channel)
        self._lock = threading.Lock()

    def files(self, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the content of charm files that this host does not have. Change nothing on the host.

        :param blobs: digest → content, of the whole run; the content of the charms is added
        """
        missing: Dict[str, Blob] = {}
        for service, charm in self.order["charms"].items():
            files = {name: (mode, decode_value(content, blobs)) for name, (mode, content) in charm["files"].items()}
            self._charms[service] = files
            for unit in self.order["units"]:
                here = unit_files.installed(self.home, unit) == charm["digest"]
                if unit.rpartition("/")[0] == service and not here:
                    for name in unit_files.lacking(self.home, unit, files):
                        content = files[name][1]
                        if isinstance(content, Blob) and content.data is None:
                            missing[content.sha256] = content
        return list(missing.values())

    def around(self, session: ServedSession, managed: Management, plan: Plan, facets: Facets) -> End:
        """Run the phase "before", then the plan, then the phase "after"; record how all of this ended."""
        began = time.time()
        why = self.phase("before", True)
        if why:
            ended: End = session.end(HostStatus.FAILED, error=why, unchanged=True)
            self._conclude(managed, ended[0], began)
        elif managed.due(plan):
            ended = session.apply(managed, plan, facets)
            self.after(managed, ended[0], began)
        else:
            self.phase("after", not plan.failed)
            ended = session.end_unchanged(managed, plan)
            self._conclude(managed, ended[0], began)
        return ended

    def after(self, managed: Management, status: str, began: float) -> None:
        """Run the phase "after" of a run that has changed the host, and record how the run ended.

        :param status: how the changes ended
        :param began: when the run began
        """
        self.phase("after", status == HostStatus.OK)
        self._conclude(managed, status, began)

    def _conclude(self, managed: Management, status: str, began: float) -> None:
        status = HostStatus.FAILED if self._failed else status
        managed.recorded.opened().conclude(managed.run, status, began)

    def phase(self, name: str, ok: bool) -> str:
        """Run the hooks that the controller sends, until it lets the host continue.

        Hooks of different units may run concurrently; hooks of one unit run one after another. First kill the hooks
        of a killed run that still run. If the connection to the controller ends, running hooks are stopped.

        :param name: "before" or "after" the changes to the host
        :param ok: whether everything succeeded so far
        :returns: why the run must stop; "" if it continues
        :raises ProtocolError: the connection to the controller ended
        """
        if not self._swept:
            for unit in unit_hooks.end_left(self.state_dir):
                self.warnings.append(
                    f"a hook of {unit} was still running after an interrupted run; statecfg stopped it"
                )
            self._swept = True
        self.channel.send({"type": "units", "phase": name, "ok": ok})
        threads: List[threading.Thread] = []
        try:
            while True:
                frame, _ = self.channel.receive("unit", "unit-told", "units-go", cancelled=True)
                if frame["type"] == "units-go":
                    self._failed = bool(frame.get("failed"))
                    return str(frame["stop"])
                if frame["type"] == "unit-told":
                    self._questions.answer(frame)
                else:
                    thread = threading.Thread(target=self._do, args=(frame,))
                    threads.append(thread)
                    thread.start()
        finally:
            for thread in threads:
                thread.join()

    def close(self) -> None:
        """Delete the socket, and the project's directory if it contains no units."""
        try:
            unit_home.leave(self.home)
        except OSError as problem:
            self.warnings.append(f"{problem.filename}: {problem.strerror}")
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    # Each `unit` frame has its own thread

    def _do(self, frame: Mapping[str, Any]) -> None:
        """Execute a `unit` frame. Always report its result to the controller."""
        begun = time.monotonic()
        step = UnitStep.from_json(frame["step"]) if frame["do"] == "hook" else None
        unit = step.unit if step is not None else frame["unit"]
        done: Dict[str, Any] = {"type": "unit-done", "id": frame["id"], "ok": False, "ran": False, "changes": {}}
        with self._lock:
            free = unit not in self._busy
            self._busy.add(unit)
        try:
            if not free:
                done["error"] = f"a hook of {unit} is still running"
            elif step is None:
                unit_files.remove(self.home, unit)
                done.update(ok=True, error="")
            else:
                done.update(self._hook(frame["id"], step))
        except (OSError, state.StateError) as problem:
            where = getattr(problem, "filename", None) or unit_files.folder(self.home, unit)
            done["error"] = f"{where}: {getattr(problem, 'strerror', None) or problem}"
        except Exception as problem:  # a bug in statecfg: only this unit fails
            done["error"] = f"the executor failed: {problem!r}"
        finally:
            if free:
                with self._lock:
                    self._busy.discard(unit)
        if self.channel.mask is not None:
            done["error"] = self.channel.mask(done["error"])
        self.channel.send(dict(done, seconds=round(time.monotonic() - begun, 3)), exact=True)

    def _hook(self, number: int, step: UnitStep) -> JsonMap:
        """Run a hook; return its result.

        :raises OSError: the hook can't be run on this host
        :raises StateError: the charm is missing or incomplete on this host
        """
        unit = step.unit
        context = Context(
            step,
            lambda node, over: self._questions.ask(number, node, over),
            lambda frame: self.channel.send(dict(frame, id=number)),
        )
        self._install(step)
        charm = unit_files.charm_dir(self.home, unit)
        paths = [os.path.join(charm, HOOKS, name) for name in step.hooks]
        dispatch = os.path.join(charm, unit_hooks.DISPATCH)
        paths = [dispatch] if os.path.lexists(dispatch) else paths
        path = next((candidate for candidate in paths if os.path.lexists(candidate)), "")
        if not path:
            context.log(INFO, f"Hook does not exist, skipping {paths[0]}")
            return {"ok": True, "ran": False, "error": "", "changes": context.finish()}
        agent = self._ready()
        token = agent.begin(context)
        changes: Dict[str, Any] = {}

        def started(pid: int) -> None:
            context.session = pid

        def ended() -> None:
            changes.update(context.finish())
            agent.end(token)

        environment = unit_hooks.environment(step, charm, self._tools, agent.path, token)
        hook = unit_hooks.Hook(path, charm, step.hook, step.timeout, context.log)
        try:
            error = hook.run(environment, started, ended)
        finally:
            agent.end(token)
        if error:
            return {"ok": False, "ran": True, "error": error, "changes": {}}
        for text in context.settings.described(step.hook):
            context.log(DEBUG, text)
        return {"ok": True, "ran": True, "error": "", "changes": changes}

    def _install(self, step: UnitStep) -> None:
        """Install a unit's charm if the hook is one of `FRESH`, or if no charm is installed."""
        unit, service = step.unit, step.service
        digest = unit_files.installed(self.home, unit)
        if digest and step.hook not in FRESH:
            return
        if service not in self._charms:
            if digest:
                return
            raise state.StateError(f"the charm of {service} is missing on this host and was not received")
        newest = self.order["charms"][service]["digest"]
        if digest == newest:
            return
        try:
            unit_files.install(self.home, unit, newest, self._charms[service])
        except LookupError as problem:  # a hook has changed a file since the host requested the missing content
            raise state.StateError(f"the charm is incomplete: {problem}") from None

    def _ready(self) -> Agent:
        """Return the agent. Start it before the first hook."""
        with self._lock:
            if self._agent is None:
                from statecfg.remote.units.tools import install as tool_files

                self._tools = tool_files.install(self.state_dir)
                self._agent = Agent(self.state_dir, self._log)
            return self._agent

    def _log(self, level: int, text: str) -> None:
        self.channel.send({"type": "unit-log", "unit": "", "hook": "", "level": level, "text": text})
