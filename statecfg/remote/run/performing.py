"""Perform the actions of nodes on the real host, concurrently, and report and record each of them."""

from __future__ import annotations

import threading
import time

from statecfg.remote.graph.model import Unknown
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.results import error
from statecfg.remote.machine.batch import Batch
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import ANYTHING
from statecfg.remote.run.planning import as_result, describe, trace
from statecfg.remote.run.report import action_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

    from statecfg.remote.graph.model import Action
    from statecfg.remote.graph.results import Result
    from statecfg.remote.ledger.records import Resource
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.node_run import NodeRun

    class StepJournal(Protocol):
        """Records each step before and after it happens."""

        def intend(self, nodes: Sequence[str]) -> None: ...
        def started(self, node: str, op: str) -> None: ...
        def took(self, node: str, op: str, result: Result) -> None: ...
        def all_started(self, actions: Sequence[Tuple[str, str]]) -> None: ...
        def all_took(self, ended: Sequence[Tuple[str, str, Result]]) -> None: ...
        def finished(self, node: str, outcome: str) -> None: ...
        def all_finished(self, outcomes: Sequence[Tuple[str, str]]) -> None: ...
        def manage(self, resources: Sequence[Resource]) -> None: ...


WORKERS = 8  # nodes of a layer that run concurrently
BATCH = 128  # small files that are written and recorded together
LANES = 2  # batches that run concurrently: while one waits for the disk, the other one prepares its files


class Performer:
    """Performs the actions of one run.

    :param facets: the host's facets, shared with the plan
    :param send: receives each message about the progress immediately, from any thread
    :param record: the journal
    :param stopped: returns why nothing new may start, "" if it may
    """

    def __init__(
        self, facets: Facets, send: Callable[[Mapping[str, Any]], None], record: StepJournal, stopped: Callable[[], str]
    ) -> None:
        self.facets, self.send, self.record, self.stopped = facets, send, record, stopped
        self.mutexes: Dict[str, threading.Lock] = {}
        self.said: Dict[str, Dict[str, str]] = {}  # see `Plan`

    def together(self, acting: Sequence[NodeRun]) -> None:
        """Perform joinable first actions (packages) as one transaction; if it fails, each node acts alone later."""
        groups: Dict[str, List[NodeRun]] = {}
        for node in acting:
            first = node.step.spec.actions[0] if node.step.spec.actions else None
            if first is not None and first.maker is not None and first.maker.batch is not None:
                rest = {key: value for key, value in first.args.items() if key != first.maker.batch}
                groups.setdefault(f"{first.op} {rest!r} {id(first.maker)}", []).append(node)
        for key in sorted(groups):
            members = groups[key]
            if len(members) < 2 or self.stopped():
                continue
            firsts = [node.step.spec.actions[0] for node in members]
            maker = firsts[0].maker
            assert maker is not None
            result = self.perform(members[0], maker.joined(firsts), 0, [node.step.node.provides for node in members])
            if result["status"] == ActionStatus.OK:
                for node, first in zip(members, firsts):
                    node.done.append(action_report(first, ActionStatus.OK, result))
            # One bad name fails the whole transaction. Each node then acts alone, which shows the bad one.

    def act(self, node: NodeRun) -> None:
        """Perform a node's actions in order, up to the first failure.

        If each of them reports that it had nothing to change, the node is unchanged.
        """
        idle = not node.done and node.shutdown is None
        for action in node.step.spec.actions[len(node.done) :]:
            why = self.stopped()
            if why:
                node.fail(f"stopped before {action.op}: {why}")
                if not node.done:
                    node.outcome, node.reason = Outcome.SKIPPED, f"not started: {why}"
                return
            result = self.perform(node, action, len(node.done))
            if not self._ended(node, action, result):
                return
            idle = idle and bool(result.get("unchanged"))
        if idle:
            node.outcome = Outcome.UNCHANGED

    def _ended(self, node: NodeRun, action: Action, result: Result) -> bool:
        """Add the result of an action to its node; return whether it succeeded."""
        node.done.append(action_report(action, result["status"], result))
        node.ended = time.monotonic()
        if result["status"] != ActionStatus.OK:
            node.fail(f"{action.op}: {result['reason']}")
            return False
        return True

    def quick(self, node: NodeRun) -> bool:
        """Tell whether a node only writes one small file."""
        actions = node.step.spec.actions
        if len(actions) != 1 or node.done or node.shutdown is not None:
            return False
        maker = actions[0].maker
        return maker is not None and maker.mutex is None and maker.quick is not None and maker.quick(actions[0].args)

    def write_together(self, nodes: Sequence[NodeRun]) -> None:
        """Perform the actions of `quick` nodes. They start and end together, for the journal and the events."""
        why = self.stopped()
        if why:
            for node in nodes:
                node.outcome, node.reason = Outcome.SKIPPED, f"not started: {why}"
            return
        actions = [(node, node.step.node.provides, node.step.spec.actions[0]) for node in nodes]
        events = [{"node": name, "op": action.op, "index": 0} for _, name, action in actions]
        self.record.all_started([(name, action.op) for _, name, action in actions])
        self.send({"type": "actions", "actions": [dict(event, event="started") for event in events]})
        batch = Batch()
        machine = RealMachine(self.facets, batch=batch)
        returned = [self._attempt(machine, action.perform) for _, _, action in actions]
        batch.finish()
        results = [as_result(result) for result in returned]
        for (node, name, _), result in zip(actions, results):
            self._learn(node, name, result)
        self.record.all_took([(name, action.op, result) for (_, name, action), result in zip(actions, results)])
        for event, result in zip(events, results):
            event.update(event="finished", status=result["status"], reason=result.get("reason"))
        self.send({"type": "actions", "actions": events})
        for (node, _, action), result in zip(actions, results):
            if self._ended(node, action, result) and result.get("unchanged"):
                node.outcome = Outcome.UNCHANGED

    def perform(self, node: NodeRun, action: Action, index: int, sharing: Sequence[str] = ()) -> Result:
        """Perform one action on the real machine and return its result; turn exceptions into errors with a reason.

        :param index: the position of the action in the node's list; -1: its shutdown-first action
        :param sharing: the names of all nodes that share this action, if several do
        """
        name = node.step.node.provides
        event = {"type": "action", "node": name, "op": action.op, "index": index}
        for member in sharing or [name]:
            self.record.started(member, action.op)
            self.send(dict(event, node=member, event="started"))
        mutex = self._mutex(action)
        if mutex is not None:
            mutex.acquire()
        machine = RealMachine(self.facets, self._listener(name))
        try:
            result: Result = self._attempt(machine, lambda machine: as_result(action.perform(machine)))
        finally:
            if mutex is not None:
                mutex.release()
        self._learn(node, name, result)
        for member in sharing or [name]:
            self.record.took(member, action.op, result)
            self.send(dict(event, node=member, event="finished", status=result["status"], reason=result.get("reason")))
        return result

    def _attempt(self, machine: RealMachine, perform: Callable[[RealMachine], Any]) -> Any:
        """Perform an action; return what it returns, or an error if it raises one."""
        calls, kept = machine.calls, machine.kept
        try:
            result = perform(machine)
            if (
                type(result) is dict
                and result["status"] != ActionStatus.OK
                and 0 < machine.calls - calls <= machine.kept - kept
            ):
                result["intact"] = True
            return result
        except Unknown as problem:
            return error(str(problem))
        except OSError as problem:
            return error(describe(problem))
        except (Exception, SystemExit) as problem:  # a bug in a node type: its node fails, the others continue
            return error(trace(problem))
        finally:
            if machine.calls == calls:  # it bypassed the machine, so it may have changed anything
                self.facets.forget(ANYTHING)

    def _learn(self, node: NodeRun, name: str, result: Result) -> None:
        """Keep what an action says."""
        if "said" in result:
            self.said.setdefault(name, {}).update(result["said"])
            # A value of a node with secrets may contain one, so only this run knows it. A type without values reports
            # only what its undo needs.
            node_type = REGISTRY.get(node.step.node.type)
            if node.step.node.hides and (node_type is None or node_type.outputs):
                del result["said"]

    def _mutex(self, action: Action) -> Optional[threading.Lock]:
        """Return the mutex of the action's op, None if it has none."""
        name = action.maker.mutex if action.maker is not None else None
        return self.mutexes.setdefault(name, threading.Lock()) if name else None

    def _listener(self, node: str) -> Callable[[bytes], None]:
        """Return a function that sends a program's output to the controller as it arrives."""

        def listen(piece: bytes) -> None:
            self.send({"type": "output", "node": node, "text": piece.decode("utf-8", "replace")})

        return listen


def side_by_side(works: Sequence[Callable[[], None]]) -> None:
    """Call functions, up to `WORKERS` at once, and wait for all of them."""
    if len(works) <= 1:
        for work in works:
            work()
        return
    todo = list(reversed(works))
    lock = threading.Lock()
    problems: List[BaseException] = []

    def worker() -> None:
        while True:
            with lock:
                if not todo:
                    return
                work = todo.pop()
            try:
                work()
            except BaseException as problem:  # raised again below, in the calling thread
                problems.append(problem)

    threads = [threading.Thread(target=worker) for _ in range(min(WORKERS, len(works)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
