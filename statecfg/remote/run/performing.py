"""Perform the actions of nodes on the real host, concurrently, and report and record each of them."""

from __future__ import annotations

import threading
import time

from statecfg.remote.graph.model import Unknown, error
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import ANYTHING
from statecfg.remote.run.planning import as_result, describe, trace
from statecfg.remote.run.report import action_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence

    from statecfg.remote.graph.model import Action, Result
    from statecfg.remote.ledger.records import Resource
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.node_run import NodeRun

    class Record(Protocol):
        """Records each step before and after it happens."""

        def intend(self, nodes: Sequence[str]) -> None: ...
        def started(self, node: str, op: str) -> None: ...
        def took(self, node: str, op: str, result: Result) -> None: ...
        def finished(self, node: str, outcome: str) -> None: ...
        def manage(self, resources: Sequence[Resource]) -> None: ...


WORKERS = 8  # nodes of a layer that run concurrently


class Performer:
    """Performs the actions of one run.

    :param facets: the host's facets, shared with the plan
    :param send: receives each host event immediately, from any thread
    :param record: the journal
    :param stopped: returns why nothing new may start, "" if it may
    """

    def __init__(
        self, facets: Facets, send: Callable[[Mapping[str, Any]], None], record: Record, stopped: Callable[[], str]
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
                groups.setdefault("%s %r %d" % (first.op, rest, id(first.maker)), []).append(node)
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
                node.fail("stopped before %s: %s" % (action.op, why))
                if not node.done:
                    node.outcome, node.reason = Outcome.SKIPPED, "not started: %s" % why
                return
            result = self.perform(node, action, len(node.done))
            node.done.append(action_report(action, result["status"], result))
            node.ended = time.monotonic()
            if result["status"] != ActionStatus.OK:
                node.fail("%s: %s" % (action.op, result["reason"]))
                return
            idle = idle and bool(result.get("unchanged"))
        if idle:
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
            result = as_result(action.perform(machine))
        except Unknown as problem:
            result = error(str(problem))
        except OSError as problem:
            result = error(describe(problem))
        except (Exception, SystemExit) as problem:  # a bug in a node type: its node fails, the others continue
            result = error(trace(problem))
        finally:
            if not machine.calls:  # it bypassed the machine, so it may have changed anything
                self.facets.forget(ANYTHING)
            if mutex is not None:
                mutex.release()
        if "said" in result:
            self.said.setdefault(name, {}).update(result["said"])
            # A value of a node with secrets may contain one, so only this run knows it. A type without values reports
            # only what its undo needs.
            node_type = REGISTRY.get(node.step.node.type)
            if node.step.node.hides and (node_type is None or node_type.outputs):
                del result["said"]
        for member in sharing or [name]:
            self.record.took(member, action.op, result)
            self.send(dict(event, node=member, event="finished", status=result["status"], reason=result.get("reason")))
        return result

    def _mutex(self, action: Action) -> Optional[threading.Lock]:
        """Return the mutex of the action's op, None if it has none."""
        name = action.maker.turn if action.maker is not None else None
        return self.mutexes.setdefault(name, threading.Lock()) if name else None

    def _listener(self, node: str) -> Callable[[bytes], None]:
        """Return a function that sends a program's output to the controller as it arrives."""

        def listen(piece: bytes) -> None:
            self.send({"type": "output", "node": node, "text": piece.decode("utf-8", "replace")})

        return listen


def side_by_side(work: Callable[[Sequence[NodeRun]], None], items: Sequence[Sequence[NodeRun]]) -> None:
    """Call `work` on all items, up to `WORKERS` at once, and wait for all of them."""
    if len(items) <= 1:
        for item in items:
            work(item)
        return
    todo = list(reversed(items))
    lock = threading.Lock()
    problems: List[BaseException] = []

    def worker() -> None:
        while True:
            with lock:
                if not todo:
                    return
                item = todo.pop()
            try:
                work(item)
            except BaseException as problem:  # raised again below, in the calling thread
                problems.append(problem)

    threads = [threading.Thread(target=worker) for _ in range(min(WORKERS, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
