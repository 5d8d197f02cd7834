"""The journal of a run: what it does, so that the next run knows how an interrupted one ended."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple, Union

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.graph.results import Result
from statecfg.remote.ledger.records import Resource, StateChange
from statecfg.remote.ledger.state import RUNS, StateError


class Journal:
    """The log of the current run: one line before and after each action."""

    def __init__(self, state_dir: str, run: str, mask: Callable[[Any], Any] = lambda value: value) -> None:
        """Create a journal.

        :param state_dir: the state directory
        :param run: the run's id
        :param mask: replaces the secrets in reasons
        :raises StateError: if the journal can't be created
        """
        folder = os.path.join(state_dir, RUNS)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self.path = os.path.join(folder, run + ".jsonl")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self.descriptor = os.open(self.path, flags, 0o600)
        except OSError as problem:
            raise StateError(f"cannot create the journal in {folder}: {problem.strerror}") from None
        self.mask = mask
        self.broken = ""
        self.torn = False  # the last line is incomplete

    def add(self, **line: Any) -> None:
        """Append a complete line. If that fails, set `broken`, which ends the run."""
        self.append([line])

    def append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append complete lines together, see `add`."""
        data = ("\n" * self.torn + "".join(json.dumps(line) + "\n" for line in lines)).encode()
        rest = data
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
            self.torn = False
        except OSError as problem:
            self.torn = self.torn or len(rest) < len(data)
            self.broken = f"the journal {self.path} can't be written: {problem.strerror}"

    def discard(self) -> None:
        """Delete the journal of a run that did not start."""
        os.close(self.descriptor)
        os.unlink(self.path)

    def sync(self) -> None:
        """Make the appended lines durable."""
        try:
            os.fsync(self.descriptor)
        except OSError as problem:
            self.broken = f"the journal {self.path} can't be synced to disk: {problem.strerror}"

    def intend(self, nodes: Sequence[str]) -> None:
        """Record durably which nodes are about to act."""
        self.add(intend=list(nodes))
        self.sync()

    def started(self, node: str, op: str) -> None:
        """Record that an action starts."""
        self.add(node=node, op=op)

    def all_started(self, actions: Sequence[Tuple[str, str]]) -> None:
        """Record that actions start together.

        :param actions: node and op of each
        """
        self.append([{"node": node, "op": op} for node, op in actions])

    def took(self, node: str, op: str, result: Result) -> None:
        """Record how an action ended."""
        self.all_took([(node, op, result)])

    def all_took(self, ended: Sequence[Tuple[str, str, Result]]) -> None:
        """Record how actions ended that started together.

        :param ended: node, op and result of each
        """
        lines = []
        for node, op, result in ended:
            more: Dict[str, Any] = {"said": result["said"]} if "said" in result else {}
            if "intact" in result:
                more["intact"] = True
            reason = self.mask(result.get("reason", ""))
            lines.append(dict(more, node=node, took=op, status=result["status"], reason=reason))
        self.append(lines)

    def finished(self, node: str, outcome: str) -> None:
        """Record a node's outcome."""
        self.all_finished([(node, outcome)])

    def all_finished(self, outcomes: Sequence[Tuple[str, str]]) -> None:
        """Record the outcomes of nodes together.

        :param outcomes: name and outcome of each
        """
        self.append([{"node": node, "outcome": outcome} for node, outcome in outcomes])

    def manage(self, resources: Sequence[Resource]) -> None:
        """Record durably the nodes that become managed, with their snapshots."""
        self.append([{"manage": resource.to_json()} for resource in resources])
        self.sync()

    def state_changed(self, node: str, **fields: Any) -> None:
        """Record the new state of a resource ("" if it is deleted) and its owed hooks.

        This is not durable: after a power failure, the next run determines the state again and calls its hooks again.
        """
        self.add(entity=node, **fields)


class Account:
    """The contents of a journal: started nodes, outcomes, actions and records.

    :ivar records: in order: newly managed resources, and new states of resources
    :ivar left: the nodes that act after a reboot of the host by the run
    :ivar said: node → the values that its actions said, see `NodeType.produces`
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self.started: Set[str] = set()
        self.outcomes: Dict[str, str] = {}
        self.actions: List[Tuple[str, str, str, str]] = []  # node, op, status, reason
        self.records: List[Union[Resource, StateChange]] = []
        self.said: Dict[str, Dict[str, str]] = {}
        self.left: List[str] = []
        self.intact: Set[int] = set()  # the numbers of the actions that failed before they changed anything
        open_actions: Dict[Tuple[str, str], int] = {}
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # a crash interrupted this line
                continue
            if isinstance(entry, dict):
                self._take(entry, open_actions)

    def _take(self, entry: Mapping[str, Any], open_actions: Dict[Tuple[str, str], int]) -> None:
        if "folded" in entry:  # the ledger has these records already, because the run reboots the host
            self.records, self.left = [], entry["folded"]
        if isinstance(entry.get("manage"), dict):
            self.manage(Resource.from_json(entry["manage"]))
        elif isinstance(entry.get("entity"), str):
            change = StateChange(entry["entity"], entry["state"], entry.get("owing", []), entry.get("heir"))
            self.records.append(change)
        if not isinstance(entry.get("node"), str):
            return
        node = entry["node"]
        if "outcome" in entry:
            self.outcomes[node] = entry["outcome"]
        elif "op" in entry:
            self.started.add(node)
            open_actions[node, entry["op"]] = len(self.actions)
            self.actions.append((node, entry["op"], ActionStatus.UNKNOWN, ""))
        elif entry.get("took") is not None and (node, entry["took"]) in open_actions:
            at = open_actions[node, entry["took"]]
            self.actions[at] = (node, entry["took"], entry["status"], entry["reason"])
            self.said.setdefault(node, {}).update(entry.get("said", {}))
            if "intact" in entry:
                self.intact.add(at)

    def manage(self, resource: Resource) -> None:
        """Add a resource that became managed."""
        self.records.append(resource)

    @property
    def managed(self) -> List[str]:
        """The names of the resources that became managed."""
        return [record.name for record in self.records if isinstance(record, Resource)]

    @property
    def under_way(self) -> List[str]:
        """The nodes that started and whose outcome is unknown."""
        return sorted(self.started - set(self.outcomes))

    def still_owed(self, node: str, cause: str) -> bool:
        """Tell whether `node` still has to react to the change of `cause`."""
        if self.outcomes.get(node) in Outcome.SOUND:
            return False
        if cause not in self.started or self.outcomes.get(cause) == Outcome.UNCHANGED:
            return False
        return not self.intact or any(
            action[0] == cause and number not in self.intact for number, action in enumerate(self.actions)
        )


def interrupted_runs(state_dir: str) -> List[Tuple[str, Account]]:
    """Return the run ids and journals of interrupted runs, oldest first."""
    folder = os.path.join(state_dir, RUNS)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    runs = []
    for name in sorted(names, key=lambda name: (os.stat(os.path.join(folder, name)).st_mtime_ns, name)):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
            runs.append((name[: -len(".jsonl")], Account(stream.read().split("\n"))))
    return runs
