"""The units on this host, for the length of a run: the controller says which hook is due, the host runs it.

How a session uses it, once it holds the lock: `Units(place, order["units"], channel, warnings)`; `files(blobs)` with
the other content that is asked for; `phase("before", True)` ahead of the changes to the host and `phase("after", ok)`
behind them, of which each returns why nothing more may be done, "" where the run goes on; `close()` in any case.
"""

from __future__ import annotations

import os
import threading
import time

from statecfg.remote.graph.model import Blob
from statecfg.remote.ledger import state
from statecfg.remote.units import files as unit_files
from statecfg.remote.units import home as unit_home
from statecfg.remote.units import hooks as unit_hooks
from statecfg.remote.units.agent import Agent
from statecfg.remote.units.context import DEBUG, INFO, Context
from statecfg.remote.units.settings import UnitError
from statecfg.remote.units.step import Step
from statecfg.remote.wire.frames import decode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Set

    from statecfg.remote.wire.channel import Channel

PATIENCE = 60.0  # seconds for the controller to answer what a hook asks
HOOKS = "hooks"  # the directory of a charm that its hooks are in
FRESH = ("install", "upgrade-charm")  # the hooks before which a unit gets its charm's files as they are now


class Units:
    """The units of one run on this host.

    :param place: the directory of our state
    :param order: what the controller says of them: `project`, `mark` and `store` whose they are, `units` (names),
        `early` (those that 0.3.0 made) and `charms` (service → name, digest, files)
    :param channel: to the controller
    :param warnings: takes what the user should know
    """

    def __init__(self, place: str, order: Mapping[str, Any], channel: Channel, warnings: List[str]) -> None:
        self.place, self.order, self.channel, self.warnings = place, order, channel, warnings
        self.home = unit_home.take(place, order)
        self._agent: Optional[Agent] = None
        self._tools = ""
        self._charms: Dict[str, unit_files.Files] = {}
        self._threads: List[threading.Thread] = []
        self._busy: Set[str] = set()
        self._asked = 0
        self._swept = False
        self._told: Dict[int, Dict[str, Any]] = {}
        self._turn = threading.Condition()

    def files(self, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the content of charms' files that this host lacks; nothing is changed yet.

        :param blobs: all content of the run by digest; that of the charms is added
        """
        found: Dict[str, Blob] = {}
        for service, charm in self.order["charms"].items():
            files = {name: (mode, decode_value(content, blobs)) for name, (mode, content) in charm["files"].items()}
            self._charms[service] = files
            for unit in self.order["units"]:
                here = unit_files.installed(self.home, unit) == charm["digest"]
                if unit.rpartition("/")[0] == service and not here:
                    for name in unit_files.lacking(self.home, unit, files):
                        content = files[name][1]
                        if isinstance(content, Blob) and content.data is None:
                            found[content.sha256] = content
        return list(found.values())

    def phase(self, name: str, ok: bool) -> str:
        """Run the hooks that the controller sends until it says that there are no more; return why it stops, if so.

        Hooks of several units run at the same time, those of one unit one after another.
        What a killed run has left running of hooks is ended before. A controller that is gone ends the hooks that
        run. Raises ProtocolError then.

        :param name: "before" or "after" the changes to the host
        :param ok: whether all went well so far
        """
        if not self._swept:
            for unit in unit_hooks.end_left(self.place):
                self.warnings.append("a hook of %s still ran, of a run that was cut off: it was ended" % unit)
            self._swept = True
        self.channel.send({"type": "units", "phase": name, "ok": ok})
        try:
            while True:
                frame, _ = self.channel.receive("unit", "unit-told", "units-go", cancelled=True)
                if frame["type"] == "units-go":
                    return str(frame["stop"])
                if frame["type"] == "unit-told":
                    with self._turn:
                        self._told[frame["ask"]] = frame
                        self._turn.notify_all()
                else:
                    thread = threading.Thread(target=self._do, args=(frame,))
                    self._threads.append(thread)
                    thread.start()
        finally:
            for thread in self._threads:
                thread.join()
            self._threads.clear()

    def close(self) -> None:
        """Take the socket away, and the project's directory where no unit is left in it."""
        try:
            unit_home.leave(self.home)
        except OSError as problem:
            self.warnings.append("%s: %s" % (problem.filename, problem.strerror))
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    # One frame each, in a thread of its own

    def _do(self, frame: Mapping[str, Any]) -> None:
        """Do what a `unit` frame says, and tell how it ended: whatever happens, the controller hears of it."""
        begun = time.monotonic()
        step = Step.from_json(frame["step"]) if frame["do"] == "hook" else None
        unit = step.unit if step is not None else frame["unit"]
        done: Dict[str, Any] = {"type": "unit-done", "id": frame["id"], "ok": False, "ran": False, "changes": {}}
        with self._turn:
            free = unit not in self._busy
            self._busy.add(unit)
        try:
            if not free:
                done["error"] = "a hook of %s is still running" % unit
            elif step is None:
                unit_files.remove(self.home, unit)
                done.update(ok=True, error="")
            else:
                done.update(self._hook(frame["id"], step))
        except (OSError, state.StateError) as problem:
            where = getattr(problem, "filename", None) or unit_files.folder(self.home, unit)
            done["error"] = "%s: %s" % (where, getattr(problem, "strerror", None) or problem)
        except Exception as problem:  # our own mistake: this unit's failure, and not the end of the others
            done["error"] = "the executor failed: %r" % problem
        finally:
            if free:
                with self._turn:
                    self._busy.discard(unit)
        if self.channel.mask is not None:
            done["error"] = self.channel.mask(done["error"])
        self.channel.send(dict(done, seconds=round(time.monotonic() - begun, 3)), exact=True)

    def _hook(self, number: int, step: Step) -> Dict[str, Any]:
        """Run a hook; return how it ended. Raises OSError and StateError where it can't be run here."""
        unit = step.unit
        context = Context(step, self._asking(number), lambda frame: self.channel.send(dict(frame, id=number)))
        self._install(step)
        charm = unit_files.charm_dir(self.home, unit)
        paths = [os.path.join(charm, HOOKS, name) for name in step.hooks]
        dispatch = os.path.join(charm, unit_hooks.DISPATCH)
        paths = [dispatch] if os.path.lexists(dispatch) else paths
        path = next((each for each in paths if os.path.lexists(each)), "")
        if not path:
            context.log(INFO, "Hook does not exist, skipping %s" % paths[0])
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

    def _install(self, step: Step) -> None:
        """Put a unit's charm in its place where the hook is for that, or where it has none."""
        unit, service = step.unit, step.service
        digest = unit_files.installed(self.home, unit)
        if digest and step.hook not in FRESH:
            return
        if service not in self._charms:
            if digest:
                return
            raise state.StateError("the charm of %s is not on this host, and did not come" % service)
        newest = self.order["charms"][service]["digest"]
        if digest == newest:
            return
        try:
            unit_files.install(self.home, unit, newest, self._charms[service])
        except LookupError as problem:  # a hook has changed a file since it was said which ones are wanted
            raise state.StateError("the charm is not whole: %s" % problem) from None

    def _ready(self) -> Agent:
        """Return the agent, which is there from the first hook on."""
        with self._turn:
            if self._agent is None:
                from statecfg.remote.units.tools import install as tool_files

                self._tools = tool_files.install(self.place)
                self._agent = Agent(self.place, self._log)
            return self._agent

    def _log(self, level: int, text: str) -> None:
        self.channel.send({"type": "unit-log", "unit": "", "hook": "", "level": level, "text": text})

    def _asking(self, number: int) -> Any:
        def ask(node: List[str], over: threading.Event) -> Dict[str, Any]:
            with self._turn:
                self._asked += 1
                asked = self._asked
            self.channel.send({"type": "unit-ask", "id": number, "ask": asked, "node": node}, exact=True)
            deadline = time.monotonic() + PATIENCE
            with self._turn:
                while asked not in self._told:
                    if over.is_set() or self.channel.lost or time.monotonic() > deadline:
                        raise UnitError("NotReached", "the controller gave no answer")
                    self._turn.wait(0.1)
                told = self._told.pop(asked)
            if "error" in told:
                raise UnitError(*told["error"])
            found: Dict[str, Any] = told["values"]
            return found

        return ask
