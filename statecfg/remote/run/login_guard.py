"""The lock-out guard: test a login after a restart of sshd, and restore the former settings if it fails.

Node types can have their own guards, such as those of firewalls (`NodeType.guard`).

The executor can't log in to its own host as the controller does. So it asks the controller over the existing
connection and waits. If that connection is lost meanwhile, the executor restores the former settings, too.
"""

from __future__ import annotations

import os
import posixpath
from typing import Collection, Dict, Iterable, List, Optional, Tuple

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.records import Orphan, identities
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Stat
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import ProtocolError

Before = Dict[str, Tuple[Stat, Optional[bytes]]]

BOOTED = "/run/systemd/system"  # exists if and only if systemd is process 1: sd_booted(3)
NAMES = ("ssh", "sshd")  # the distributions' names for the service and its socket
UNITS = tuple(f"{name}.{suffix}" for suffix in ("socket", "service") for name in NAMES)
PATHS = (
    "/etc/ssh",
    "/etc/default/ssh",
    "/etc/sysconfig/sshd",
    "/etc/pam.d/sshd",
    *("/etc/systemd/system/" + unit + suffix for unit in UNITS for suffix in ("", ".d")),
)
UP = ("active", "reloading", "activating")
FILES = 500  # maximum number of remembered files and directories
LARGEST = 1 << 20  # maximum bytes of one remembered file
ROOM = 16 << 20  # maximum bytes of all remembered files
_ASKED = "Id,LoadState,ActiveState,UnitFileState,InvocationID,StateChangeTimestampMonotonic"


class Lockout:
    """A failed test login, or a configuration that sshd refused.

    :param brief: what happened
    :param reason: what happened, and what the guard did
    :param paths: the restored paths
    """

    def __init__(self, brief: str, reason: str, paths: Iterable[str]) -> None:
        self.brief, self.reason, self.paths = brief, reason, frozenset(paths)


def try_login(channel: Channel) -> str:
    """Ask the controller to try a new login; return why it failed, "" if it succeeded."""
    channel.send({"type": "login"})
    try:
        answer, _ = channel.receive("login", cancelled=True)
    except ProtocolError as problem:
        return f"the connection was lost before one was tried ({problem})"
    return str(answer["error"])


class LoginGuard:
    """Watches sshd during one run.

    :param machine: the host
    :param channel: the connection to the controller
    :param remote: the controller is connected over SSH and can try a new login
    :param warnings: receives warnings for the user
    :param more: further paths that sshd's service depends on
    """

    def __init__(
        self, machine: RealMachine, channel: Channel, remote: bool, warnings: List[str], more: Iterable[str] = ()
    ) -> None:
        self.machine, self.channel, self.remote, self.warnings = machine, channel, remote, warnings
        self.more = tuple(more)
        self.partial = False  # not everything could be remembered
        self.refused = False  # sshd refused its configuration
        self.seen = machine.facets.changed
        self.units = self._units() if os.geteuid() == 0 and os.path.isdir(BOOTED) else {}
        self.before: Before = self._files() if self.units else {}

    waiting = False

    def after(self, runs: Collection[NodeRun]) -> Optional[Lockout]:
        """Look after a layer: restore files that sshd refused, or those after which no login works."""
        refused = [run for run in runs if _refused(run)]
        lockout = self.take_back() if refused and not self.refused else self.look()
        self.refused = self.refused or bool(refused)
        return lockout

    def touched(self, run: NodeRun, lockout: Lockout) -> bool:
        """Tell whether the guard undid a node's work."""
        if run.outcome != Outcome.CHANGED and not run.forgotten:
            return False
        return run.step.node.attrs.get("path") in lockout.paths or is_sshd(run.step.node)

    def about(self, node: HostNode) -> bool:
        """Tell whether the whole reason belongs to a node, and not only the brief one."""
        return is_sshd(node)

    def look(self) -> Optional[Lockout]:
        """Request a test login if a program restarted sshd since the last check; restore the settings if it fails.

        :returns: the failure, None if there is none
        """
        if not self.units or self.machine.facets.changed == self.seen:
            return None
        self.seen = self.machine.facets.changed
        now = self._units()
        if now == self.units:
            return None
        if not self.remote:
            self.warnings.append(
                "sshd was restarted. statecfg could not try a new login, because this run does not use SSH: try one"
            )
            self.units = now
            return None
        wrong = try_login(self.channel)
        if not wrong:
            self.units, self.before = self._units(), self._files()
            return None
        paths, problems = self._restore(now)
        self.units, self.seen = self._units(), self.machine.facets.changed
        text = f"no new login after sshd was restarted: {wrong}. "
        text += "The previous settings were restored" + (f" ({', '.join(paths)})" if paths else "")
        if problems:
            text += ", but not all of them: " + "; ".join(problems)
        elif not self.channel.lost:
            again = try_login(self.channel)
            text += f", but a new login still fails: {again}" if again else ", and a new login works"
        return Lockout("no new login succeeded after sshd was restarted", text, paths)

    def take_back(self) -> Optional[Lockout]:
        """Restore the former files, because sshd refused the new ones and was not restarted.

        :returns: what was restored, None if no file had changed
        """
        paths, problems = self._put_back()
        if not paths:
            return None
        text = f"sshd refuses the new configuration. The previous one was restored ({', '.join(paths)})"
        if problems:
            text += ", but not all of it: " + "; ".join(problems)
        return Lockout("sshd refuses the new configuration", text, paths)

    # Units

    def _units(self) -> Dict[str, Dict[str, str]]:
        """Return the state of sshd's existing units, with the time of its last change: unit → property → value."""
        argv = ["systemctl", "show", "--no-pager", "--property=" + _ASKED, "--", *UNITS]
        # A guard also looks after the connection was lost: an answer that was cut off would look like a change.
        output = self.machine.probe(argv, interruptible=False).text
        units = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in output.split("\n\n")]
        return {
            properties["Id"]: properties
            for properties in units
            if properties.get("LoadState") not in (None, "not-found")
        }

    def _restore(self, now: Dict[str, Dict[str, str]]) -> Tuple[List[str], List[str]]:
        """Restore files and units; return the changed paths and the problems."""
        paths, problems = self._put_back()
        self._do(problems, "daemon-reload")
        was = self.units
        masked = [unit for unit in was if now.get(unit, {}).get("UnitFileState") == "masked"]
        if [unit for unit in masked if was[unit]["UnitFileState"] != "masked"]:
            self._do(problems, "unmask", *(unit for unit in masked if was[unit]["UnitFileState"] != "masked"))
        for state, verb in (("enabled", "enable"), ("disabled", "disable")):
            for unit in was:
                if was[unit]["UnitFileState"] == state and now.get(unit, {}).get("UnitFileState") != state:
                    self._do(problems, verb, unit)
        up = [unit for unit in UNITS if was.get(unit, {}).get("ActiveState") in UP]
        sockets = [unit for unit in up if unit.endswith(".socket")]
        # A socket doesn't start before its service is stopped.
        stopped = [unit for unit in {*was, *now} if unit not in up or (sockets and unit.endswith(".service"))]
        if stopped:
            self._do([], "stop", *sorted(stopped))
        for unit in up:  # sockets first
            self._do(problems, "restart", unit)
        return paths, problems

    def _do(self, problems: List[str], verb: str, *units: str) -> None:
        result = self.machine.run(["systemctl", verb, "--", *units], timeout=60.0, interruptible=False)
        if result["status"] != ActionStatus.OK:
            problems.append(f"{verb} {' '.join(units)}: {result['reason']}")

    # Files

    def _files(self) -> Before:
        """Return the state and content of the paths that a login depends on; descend only into `PATHS`."""
        files: Before = {}
        room = ROOM
        waiting = [(path, True) for path in PATHS] + [(path, False) for path in self.more]
        while waiting and len(files) < FILES:
            path, below = waiting.pop()
            try:
                stat = self.machine.stat(path)
                if stat is None:
                    continue
                files[path] = stat, None
                if stat.file_type == "file" and stat.size <= min(LARGEST, room):
                    files[path] = stat, self.machine.read(path)
                    room -= stat.size
                elif stat.file_type == "directory" and below:
                    waiting += [(posixpath.join(path, name), True) for name in self.machine.listdir(path)]
            except OSError:  # it was just removed, or it can't be read: it can't be restored either
                self.partial = True
        self.partial = self.partial or bool(waiting)
        return files

    def _put_back(self) -> Tuple[List[str], List[str]]:
        """Restore files; return the changed paths and the problems."""
        machine, now, done, problems = self.machine, self._files(), [], []
        # If the memory is partial, a path that seems new may have existed before: keep it.
        for path in sorted(set(now) - set(self.before), reverse=True) if not self.partial else ():
            done.append(path)
            result = machine.remove(path)
            problems += [result["reason"]] if result["status"] != ActionStatus.OK else []
        for path in sorted(self.before):  # a directory before its entries
            was, data = self.before[path]
            if path in now and _alike(self.before[path], now[path]):
                continue
            done.append(path)
            if path in now and now[path][0].file_type != was.file_type:
                machine.remove(path, recursive=True)
            if was.file_type == "directory":
                result = machine.mkdir(path, was.mode, was.owner, was.group)
            elif was.file_type == "symlink":
                result = machine.symlink(path, was.target, was.owner, was.group)
            elif data is not None:
                result = machine.write(path, data, was.mode, was.owner, was.group)
            else:
                problems.append(f"the previous content of {path} is unknown")
                continue
            problems += [result["reason"]] if result["status"] != ActionStatus.OK else []
        return sorted(done), problems


def _alike(one: Tuple[Stat, Optional[bytes]], other: Tuple[Stat, Optional[bytes]]) -> bool:
    """Tell whether two states of a path are the same."""
    fields = ("file_type", "mode", "owner", "group", "target")
    same = all(getattr(one[0], field) == getattr(other[0], field) for field in fields)
    return same and one[1] == other[1]


def _refused(run: NodeRun) -> bool:
    return run.outcome == Outcome.FAILED and any(
        action["op"] == "check_config" and action["status"] == ActionStatus.ERROR for action in run.done
    )


def is_sshd(node: HostNode) -> bool:
    """Tell whether a node manages one of sshd's units."""
    recorded = node.resource.definition.identities if isinstance(node, Orphan) else ()
    return any(each[:5] == "unit:" and each[5:] in UNITS for each in recorded or identities(node))
