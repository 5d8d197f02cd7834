"""The guard of firewalls and PAM: try a new login after a change, and restore the former state if it fails."""

from __future__ import annotations

from collections.abc import Callable, Collection

from statecfg.remote.graph.model import CheckError, HostNode
from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.files import ids
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, Stat
from statecfg.remote.run.login_guard import Lockout, try_login
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.wire.channel import Channel
from statecfg.resources.shared import paths

# After this many logins, one at the end of the run tests all further layers. The controller allows only some logins.
MOST = 3


class Watched:
    """What a guard watches.

    :param types: the names of the node types
    :param record: records the state, and returns the function that restores it and returns what went wrong. It raises
        `CheckError` if it can't read the state
    :param filters: returns whether the state can prevent logins; an inactive firewall can't
    :param what: what changes, for messages
    :param concerns: returns whether a node is watched; by default, its type decides
    :param quiet: returns whether a login can't show yet what a node has changed
    """

    def __init__(
        self,
        types: Collection[str],
        record: Callable[[], Callable[[], list[str]]],
        filters: Callable[[], bool] = lambda: True,
        what: str = "the firewall",
        concerns: Callable[[HostNode], bool] | None = None,
        quiet: Callable[[HostNode], bool] = lambda node: False,
    ) -> None:
        self.record, self.filters, self.what, self.quiet = record, filters, what, quiet
        self.concerns = concerns or (lambda node: node.type in types)


class ChangeGuard:
    """Watches nodes of some types during one run.

    :raises CheckError: if the state can't be read
    :ivar seen: -1 at the end of the run
    """

    def __init__(self, channel: Channel, remote: bool, warnings: list[str], watched: Watched) -> None:
        self.channel, self.remote, self.warnings, self.watched = channel, remote, warnings, watched
        self.restore = watched.record()
        self.acted: list[NodeRun] = []  # since the last login
        self.undone: list[NodeRun] = []
        self.known: set[int] = set()
        self.logins = self.seen = 0

    @property
    def waiting(self) -> bool:
        """Whether a login is still to be tried."""
        return bool(self.acted)

    def after(self, runs: Collection[NodeRun]) -> Lockout | None:
        """Request a test login if nodes have acted since the last one."""
        acted = [run for run in runs if run.done and id(run) not in self.known and self.watched.concerns(run.step.node)]
        self.known.update(map(id, acted))
        self.acted += acted
        ends = self.seen == -1
        if not self.acted or (not ends and (self.logins >= MOST or self._quiet())):
            return None
        wrong = self._try() if self.watched.filters() else ""
        if not wrong:
            self.acted = []
            return None if ends else self._record()
        self.acted, self.undone = [], self.acted
        problems = self.restore()
        text = f"no new login after a change of {self.watched.what}: {wrong}. The previous state was restored"
        if problems:
            text += ", but not all of them: " + "; ".join(problems)
        elif not self.channel.lost:
            again = try_login(self.channel)
            text += f", but a new login still fails: {again}" if again else ", and a new login works"
        return Lockout(f"no new login succeeded after a change of {self.watched.what}", text, ())

    def _quiet(self) -> bool:
        return all(self.watched.quiet(run.step.node) for run in self.acted)

    def _record(self) -> Lockout | None:
        """Record the state again. If that fails, return why the run must end: nothing could be restored."""
        try:
            self.restore = self.watched.record()
        except CheckError as problem:
            self.undone = []
            text = f"the state of {self.watched.what} can no longer be recorded: {problem}"
            return Lockout(text, text, ())
        return None

    def _try(self) -> str:
        """Return why a new login failed, "" if it succeeded or can't be tried."""
        if self.remote:
            self.logins += 1
            return try_login(self.channel)
        text = (
            "%s changed. statecfg could not try a new login, because this run does not use SSH: try one"
            % self.watched.what
        )
        self.warnings += [text] if text not in self.warnings else []
        return ""

    def touched(self, run: NodeRun, lockout: Lockout) -> bool:
        """Tell whether the guard undid a node's work."""
        return run in self.undone and (run.outcome == Outcome.CHANGED or run.forgotten)

    def about(self, node: HostNode) -> bool:
        """Tell whether the whole reason belongs to a node."""
        return True


def files(machine: RealMachine, file_paths: Collection[str]) -> Callable[[], list[str]]:
    """Record files, and return the function that restores them and returns what went wrong.

    Of a link, it records the link and the file to which it leads.
    """
    before = {}
    for path in file_paths:
        stat = machine.stat(path)
        before[path] = stat, b""
        if stat is not None and stat.file_type == "symlink":
            try:
                path = paths.followed(machine, path)
            except CheckError:  # the nodes do not follow it either
                continue
            stat = machine.stat(path)
            before[path] = stat, b""
        if stat is not None and stat.file_type == "file":
            before[path] = stat, machine.read(path)

    owners = {path: numbers(stat) for path, (stat, _) in before.items() if stat is not None}

    def restore() -> list[str]:
        results = []
        for path, (stat, content) in before.items():
            now = machine.stat(path)
            if stat is None:
                results += [machine.remove(path)] if now is not None else []
            elif stat.file_type == "file":
                results.append(machine.write(path, content, stat.mode, *owners[path]))
            elif stat.file_type == "symlink" and (now is None or now.target != stat.target):
                results.append(machine.symlink(path, stat.target, *owners[path]))
        return failures(*results)

    return restore


def numbers(stat: Stat) -> tuple[str, str]:
    """Return owner and group as numbers: while the accounts are broken, no names can be resolved."""
    uid, gid = ids(stat.owner, stat.group)
    return str(uid), str(gid)


def failures(*results: Result) -> list[str]:
    """Return the reasons of the results that are errors."""
    return [str(result["reason"]) for result in results if result["status"] != "ok"]


def run(machine: Machine, *argv: str, text: bytes | None = None) -> list[str]:
    """Run a program to its end, also if the connection to the controller is lost; return what went wrong."""
    return failures(machine.run(list(argv), timeout=60.0, interruptible=False, input=text))
