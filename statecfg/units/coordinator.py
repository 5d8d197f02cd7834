"""Leads the units of a run: which hook runs next, and where, until nothing changes any more.

What one unit's hook publishes is in the store once it has succeeded, and what others have to be told of it is queued
there in the same transaction. So a run that is cut off loses nothing: the next one goes on where the queue stands.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from statecfg.remote.machine.redact import Redactor
from statecfg.store import StoreError, services
from statecfg.store.units.records import Step, UnitError
from statecfg.units import ahead
from statecfg.units.inbox import Inbox

if TYPE_CHECKING:
    from statecfg.remote.graph.model import Blob
    from statecfg.run.deployment import Deployment
    from statecfg.store.database import Store

MOST = 25  # times that a unit's hook runs about the same remote unit in one run: more don't settle
LOGGED = 200  # lines of hooks that wait to be entered in the store
LENGTH = 1 << 20  # characters that these have

Json = dict[str, Any]
Tell = Callable[[Json], None]


@dataclass
class _Unit:
    """A unit of the run. `quiet`: nothing was due when it was last looked at; `over`: it is there no more."""

    id: int
    name: str
    service: str
    dying: bool
    over: bool = False
    running: Step | None = None
    quiet: bool = False
    blocked: str = ""
    settled: bool = True
    state: str = ""
    hooks: list[Json] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)


@dataclass
class _Host:
    """A host of the run. Phases: absent, before (its resources change), busy, after, gone."""

    name: str
    units: dict[str, _Unit] = field(default_factory=dict)
    phase: str = "absent"
    sound: bool = True
    tell: Tell | None = None
    addresses: Json = field(default_factory=dict)
    steps: dict[int, _Unit] = field(default_factory=dict)
    left: threading.Event = field(default_factory=threading.Event)


class Coordinator:
    """The units of one run.

    Frames of hosts come from many threads; one thread of ours takes them in, one after the other.

    :param store: where services, units and relations are kept
    :param deployment: what is declared
    :param mode: "apply", "prune" or "destroy"
    :param run: the run's id
    :param addresses: host → `private-address` and `public-address`, as far as the inventory says
    :param cancel: set when the user stops: no further hook begins
    """

    def __init__(
        self,
        store: Store,
        deployment: Deployment,
        mode: str,
        run: str,
        addresses: Mapping[str, Mapping[str, str]],
        cancel: threading.Event,
    ) -> None:
        self.store, self.deployment, self.mode, self.run = store, deployment, mode, run
        self.addresses, self.cancel = addresses, cancel
        self.problems: list[str] = []
        self.hosts = {name: _Host(name) for name in addresses}
        found = ahead.look(store, deployment, mode, run, tuple(addresses))
        self.due, self.names, self._early = found.due, found.names, found.early
        self.mark = ""
        for name, host in self.hosts.items():
            if not self.names[name]:
                host.phase = "gone"  # nobody waits for a host without units
        self._frames = Inbox()
        self._log: list[tuple[float, str, str, int, str]] = []
        self._logged = 0
        # Hosts mask the secrets of their own units; what one unit tells another, that one's hooks may say as well.
        self._redactor = Redactor({name: text for each in deployment.secrets.values() for name, text in each.items()})
        self._charms: dict[str, tuple[Json, dict[str, Blob]]] = {}  # read once for all hosts, with their large files
        self._serial = 0
        self._deployed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    # Before the run

    def of_host(self, host: str, contents: dict[str, Blob]) -> Json:
        """Return what a host is to know of its units, {} where it has none; `contents` takes large files."""
        units = self.names.get(host, [])
        if not units:
            return {}
        charms: Json = {}
        for name in sorted({service for _, service in units} & set(self.deployment.charms)):
            if name not in self._charms:
                large: dict[str, Blob] = {}
                self._charms[name] = self.deployment.files(name, large), large
            charms[name], large = self._charms[name]
            contents.update(large)
        longest = max((each.timeout for each in self.deployment.services), default=0.0)
        names = [name for name, _ in units]
        early = [name for name in names if name in self._early]
        about = {"units": names, "early": early, "charms": charms, "due": self.due[host], "longest": longest}
        return {**self.whose(host), **about}

    def whose(self, host: str) -> Json:
        """Return whose the units of a host are, by which it refuses those of another store; {} where it has none."""
        if not self.names.get(host):
            return {}
        return {"project": self.deployment.project, "mark": self.mark, "store": self.store.place}

    def begin(self) -> None:
        """Enter what is declared; once, when the first host is about to be changed. Raises StoreError."""
        with self._starting:
            if self._deployed:
                return
            hosts = tuple(self.hosts)
            self.store.attempt(lambda on: ahead.enter_in(on, self.deployment, self.mode, hosts))
            with self.store.reading() as connection:
                for unit in services.units_in(connection, self.deployment.project):
                    if (unit.name, unit.service) in self.names.get(unit.host, ()):
                        here = self.hosts[unit.host].units
                        here[unit.name] = _Unit(unit.id, unit.name, unit.service, unit.dying, state=unit.state)
            self._deployed = True
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    # What hosts say; from many threads

    def take(self, host: str, frame: Json, tell: Tell, address: str) -> None:
        """Take in what a host says of its units; wait while too much of what it said waits already."""
        if self._thread is not None:
            self._frames.put((host, frame, tell, address))

    def gone(self, host: str) -> None:
        """Take in that the conversation with a host is over; return once that is done."""
        with self._starting:
            if self._thread is None:  # it was lost before anything began anywhere
                self.hosts[host].phase = "gone"
                return
        self._frames.put_at_once((host, {"type": "gone"}, None, ""))
        while self._thread.is_alive() and not self.hosts[host].left.wait(0.5):
            pass

    def report(self, host: str) -> list[Json]:
        """Return what became of a host's units, for its report; to be asked when it is gone."""
        found = []
        for unit in self.hosts[host].units.values() if host in self.hosts else ():
            error = unit.blocked or next((hook["error"] for hook in unit.hooks if hook["status"] == "failed"), "")
            about: Json = {"unit": unit.name, "service": unit.service, "state": unit.state, "hooks": unit.hooks}
            if not unit.settled:
                about["settled"] = False
            found.append({**about, "error": error} if error else about)
        return found

    def close(self) -> None:
        """End our thread; nothing is told to hosts any more."""
        if self._thread is not None:
            self._frames.put_at_once(("", {"type": "close"}, None, ""))
            self._thread.join()

    # Our thread

    def _work(self) -> None:
        while True:
            host, frame, tell, address = self._frames.get(1.0) or ("", {"type": "look"}, None, "")
            kind = frame["type"]
            try:
                if kind == "close":
                    self._write_log()
                elif kind != "look":  # at what the user may have stopped
                    self._take(self.hosts[host], frame, tell, address)
                if kind != "close":
                    self._pump()
            except StoreError as wrong:
                self._stop(str(wrong))
            except Exception as wrong:  # our own mistake: hosts are let go, and it is told
                self._stop(f"statecfg failed: {wrong!r}")
            if kind == "close":
                self._frames.close()
                return
            if kind == "gone":
                self.hosts[host].left.set()

    def _stop(self, why: str) -> None:
        """Let all hosts go: without the store, no hook can be accounted for."""
        if why not in self.problems:
            self.problems.append(why)
        for host in self.hosts.values():
            for unit in host.units.values():
                unit.blocked = unit.blocked or why
            if not host.steps:
                self._let_go(host, why if host.phase == "before" else "")

    def _take(self, host: _Host, frame: Json, tell: Tell | None, address: str) -> None:
        kind = frame["type"]
        if kind == "units":
            self._arrived(host, frame, tell, address)
        elif kind == "gone":
            host.phase, host.tell = "gone", None
            for unit in list(host.steps.values()):
                self._ended(unit, "the host was lost while it ran")
            host.steps.clear()
            self._write_log()
        elif kind == "unit-log":
            if frame["unit"] in host.units:
                text = self._redactor.text(frame["text"])
                self._log.append((time.time(), frame["unit"], frame["hook"], frame["level"], text))
                self._logged += len(text)
                if len(self._log) >= LOGGED or self._logged >= LENGTH:
                    self._write_log()
        elif frame["id"] in host.steps:
            unit = host.steps[frame["id"]]
            if kind == "unit-done":
                del host.steps[frame["id"]]
                self._done(host, unit, frame)
            elif unit.running is not None:
                self._during(host, unit, unit.running, frame)

    def _arrived(self, host: _Host, frame: Json, tell: Tell | None, address: str) -> None:
        """Take in that a host waits for the word on its units, before or after its resources change."""
        host.phase, host.tell, host.sound = frame["phase"], tell, host.sound and frame["ok"]
        given = self.addresses[host.name]
        host.addresses = {key: given.get(key) or address for key in ("private-address", "public-address")}
        if frame["phase"] == "after" and host.sound:
            project = self.deployment.project
            self.store.attempt(lambda connection: services.addressed_in(connection, project, host.name, host.addresses))
            self._wake()
        if not host.sound:
            for unit in host.units.values():
                unit.blocked = unit.blocked or "its host is not as it should be: no hook was run"

    def _during(self, host: _Host, unit: _Unit, step: Step, frame: Json) -> None:
        """Answer what a hook asks for, or do what it wants done at once."""
        kind = frame["type"]
        if kind == "unit-ask":
            answer: Json = {"type": "unit-told", "id": frame["id"], "ask": frame["ask"]}
            secrets = self.deployment.secrets.get(unit.service, {})
            try:
                with self.store.reading() as connection:
                    answer["values"] = services.read_in(connection, unit.id, frame["node"], secrets)
            except UnitError as wrong:
                answer["error"] = [wrong.code, str(wrong)]
            if host.tell is not None:
                host.tell(answer)
        elif kind == "unit-port":
            self.store.attempt(lambda on: services.port_in(on, unit.id, frame["open"], frame["port"]))
        elif kind == "unit-status":
            self.store.attempt(lambda on: services.status_in(on, unit.id, frame["status"], frame["message"]))

    def _done(self, host: _Host, unit: _Unit, frame: Json) -> None:
        """Take in how a hook ended: what it changed counts from here on, all of it or nothing."""
        step, now = unit.running, time.time()
        if step is None:
            return
        unit.running = None
        said = {**ahead.shown(step), "status": "ok" if frame["ok"] else "failed", "seconds": round(frame["seconds"], 3)}
        if not frame["ran"] and frame["ok"]:
            said["status"] = "missing"
        if not frame["ok"]:
            self._ended(unit, str(frame["error"]), step, said)
            return
        woken = self.store.attempt(lambda on: services.commit_in(on, step, self.run, frame["changes"], now))
        unit.hooks.append(said)  # only what is kept is said to be done
        if self.cancel.is_set():  # nobody looks for its next hook any more, by which its state is seen
            self._see(unit)
        self._write_log()
        unit.quiet = False
        self._wake(woken)

    def _ended(self, unit: _Unit, why: str, step: Step | None = None, said: Json | None = None) -> None:
        """Take in that a hook failed."""
        step, unit.running = step or unit.running, None
        if step is None:
            return
        unit.hooks.append({**(said or {**ahead.shown(step), "status": "failed"}), "error": why})
        self.store.attempt(lambda on: services.fail_in(on, step, self.run, why, time.time()))
        if self.cancel.is_set():
            self._see(unit)
        self._write_log()
        unit.quiet = False

    def _see(self, unit: _Unit) -> None:
        """Take the state that a unit is in by now from the store."""
        with self.store.reading() as connection:
            row = services.unit_in(connection, unit.id)
        unit.state = row.state if row is not None else "gone"

    def _wake(self, ids: Sequence[int] | set[int] | None = None) -> None:
        for host in self.hosts.values():
            for unit in host.units.values():
                if ids is None or unit.id in ids:
                    unit.quiet = False

    def _write_log(self) -> None:
        entries, self._log, self._logged = self._log, [], 0
        if entries:
            services.log(self.store, self.deployment.project, entries)

    # What comes next

    def _pump(self) -> None:
        """Begin what may begin, and let hosts go that have nothing left to wait for."""
        for host in self.hosts.values():
            if host.phase in ("before", "after"):
                self._feed(host)
            if host.phase == "before" and not host.steps:
                self._leave(host)
        settled = all(host.phase in ("after", "gone") and not host.steps for host in self.hosts.values())
        for host in self.hosts.values():
            # Once the user stops, nothing begins any more, so that there is nothing to wait for.
            if settled or (self.cancel.is_set() and host.phase == "after" and not host.steps):
                self._let_go(host, "")

    def _feed(self, host: _Host) -> None:
        """Begin a hook that is due on a host where none runs: charms of one host share its packages and files.

        Two that install at the same time would fail on each other's locks. Source of the rule: juju's machine lock.
        """
        for unit in list(host.units.values()):
            if self.cancel.is_set() or host.steps:
                return
            if unit.over or unit.running or unit.quiet or unit.blocked or unit.dying != (host.phase == "before"):
                continue
            if self.mode != "apply" and not unit.dying:
                continue  # what it is told of is queued for the next apply
            with self.store.reading() as connection:
                step = services.next_in(connection, unit.id, self.run)
                row = services.unit_in(connection, unit.id)
            unit.state = row.state if row is not None else "gone"
            if step is None:
                unit.quiet = True
            elif self._settles(unit, step):
                self._start(host, unit, step)

    def _settles(self, unit: _Unit, step: Step) -> bool:
        about = step.relation
        key = (step.hook, about.id if about is not None else "", about.remote if about is not None else "")
        unit.counts[key] += 1
        if unit.counts[key] <= MOST:
            return True
        told = f" about {about.remote}" if about is not None and about.remote else ""
        unit.settled = False
        self.store.attempt(lambda connection: services.endless_in(connection, step))
        unit.blocked = f"it does not settle: {step.hook}{told} ran {MOST} times in this run, and is due again"
        return False

    def _start(self, host: _Host, unit: _Unit, step: Step) -> None:
        self._serial += 1
        unit.running, host.steps[self._serial] = step, unit
        wire = {**asdict(step), "addresses": host.addresses}
        if host.tell is not None:
            host.tell({"type": "unit", "id": self._serial, "do": "hook", "step": wire})

    def _leave(self, host: _Host) -> None:
        """Let a host's resources change once its units that leave have come to their end, or say why they must not."""
        left = []
        for unit in [unit for unit in host.units.values() if unit.dying and not unit.over]:
            with self.store.reading() as connection:
                over = services.over_in(connection, unit.id)
            if not over:
                left.append(unit)
                continue
            unit.state = "gone"
            self._wake(self._gone(unit.id))
            if host.tell is not None:
                self._serial += 1
                host.tell({"type": "unit", "id": self._serial, "do": "remove", "unit": unit.name})
            unit.over, unit.blocked = True, ""
        if self.cancel.is_set():
            self._let_go(host, "cancelled" if left else "")
        elif all(unit.quiet or unit.blocked for unit in left):
            names = ", ".join(unit.name for unit in left)
            why = f"{names} must end first, and can't; nothing was removed. `statecfg service show {names}` says why"
            self._let_go(host, why if left and self.mode != "apply" else "")

    def _gone(self, unit_id: int) -> set[int]:
        return self.store.attempt(lambda on: services.gone_in(on, unit_id, time.time()))

    def _let_go(self, host: _Host, why: str) -> None:
        if host.phase not in ("before", "after"):
            return
        host.phase = "busy" if host.phase == "before" else "gone"
        if host.tell is not None:
            host.tell({"type": "units-go", "stop": why})
