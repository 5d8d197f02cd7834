"""The managed resources of one playbook on a host: compare the ledger with the definition, and update it."""

from __future__ import annotations

import hashlib
import json
import os
import re

from statecfg.remote.graph.model import Node
from statecfg.remote.graph.names import Mode, Outcome, State
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.orphans import Leaving, Orphan, claims, contents, kept, leaving, refusal, stored
from statecfg.remote.machine.changes import secretive
from statecfg.remote.run.following import Following, Kept
from statecfg.remote.run.report import step_report
from statecfg.remote.wire.frames import encode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from statecfg.remote.graph.model import Blob
    from statecfg.remote.hooks.lifecycle import Lifecycle
    from statecfg.remote.hooks.order import HookOrder
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.order import Order
    from statecfg.remote.run.planning import Plan, Step
    from statecfg.remote.wire.channel import Channel

WORD = re.compile(r"[A-Za-z_.]{1,20}\Z")


class Management:
    """The managed resources of a playbook on this host, during one run.

    :param place: the state directory
    :param order: the controller's instructions
    :param warnings: receives warnings for the user
    """

    def __init__(self, place: str, order: Order, warnings: List[str]) -> None:
        self.place, self.order, self.warnings = place, order, warnings
        self.acting = order.acting
        self.playbook = order.playbook
        self.node, self.policy = order.node, order.policy
        self.ledger: Optional[Ledger] = None
        self.lineage = self.refusal = ""
        self.rows: Dict[str, Dict[str, Any]] = {}
        self.drifts: Dict[str, List[str]] = {}
        self.owed: List[Dict[str, Any]] = []
        self.owing: Set[str] = set()  # the nodes that owe a restart because of this run or an earlier one
        self.going = Leaving()
        self.following: Optional[Following] = None
        self.layers: List[List[Node]] = []
        self.nodes: Dict[str, Node] = {}
        self.digests: Dict[str, str] = {}
        self.known: Dict[str, List[Tuple[Dict[str, Any], Dict[str, Any]]]] = {}
        self.memories: Dict[str, Dict[str, Any]] = {}  # snapshots of the resources that became managed in this run
        self.hooks = _hooks(order.hooks)
        self.mask: Callable[[Any], Any] = lambda value: value
        self.mask_values = self.mask_written = self.mask
        if order.secrets:
            from statecfg.remote.machine.redact import Redactor

            redactor = Redactor(order.secrets)
            self.mask, self.mask_values = redactor.report, redactor.value
            # Attributes without secrets can contain a secret's value by accident: mask it unless it is a plain word.
            given = {name: value for name, value in order.secrets.items() if not WORD.match(value)}
            self.mask_written = Redactor(given).value
        self._life: Optional[Lifecycle] = None
        self._open()

    # What the ledger says

    def _open(self) -> None:
        """Open the ledger, set it aside if it is another machine's, and add the interrupted runs to it."""
        if not self.acting and not os.path.exists(os.path.join(self.place, state.LEDGER)):
            return
        ledger = Ledger(self.place, reading=not self.acting)
        self.ledger = self._set_aside(ledger) if ledger.foreign() else ledger
        if self.ledger is None:
            return
        left = state.left_over(self.place)
        cut_off = self.ledger.open_runs(left)
        for run, account in cut_off:
            who = self.ledger.who(run)
            text = "run %s by %s was cut off" % (run, who.get("who", "an unknown user"))
            if account.under_way:
                text += "; under way were %s" % ", ".join(account.under_way)
            self.warnings.append(text)
        if not cut_off:
            interrupted = self.ledger.interrupted(self.playbook)
            if interrupted:
                self.warnings.append("the last run, %s, lost its controller and was cut off" % interrupted)
        if self.acting:
            self.ledger.take_over(left)
        elif cut_off:
            self.ledger.recall(cut_off)
        self.lineage = self.ledger.meta("lineage")
        self.rows = self.ledger.resources(self.playbook)
        self.owed = self.ledger.owed(self.playbook)

    def _set_aside(self, ledger: Ledger) -> Optional[Ledger]:
        """Ignore a ledger that came with a copied disk, as it describes another machine.

        :returns: a new ledger if this run changes the host, otherwise None
        """
        text = "the ledger is not this machine's own: %s. Nothing is pruned by it" % ledger.foreign()
        machine = ledger.meta("machine")
        ledger.close()
        if not self.acting:
            self.warnings.append(text)
            return None
        aside = state.set_aside(self.place, machine[:12])
        self.warnings.append("%s; it is kept in %s, and a new one begins" % (text, aside))
        return Ledger(self.place)

    def compare(self, layers: List[List[Node]]) -> None:
        """Compare the defined nodes with the managed resources: find orphans and what their removal triggers."""
        mode = self.order.mode
        if mode != Mode.DESTROY:  # destroy removes everything, whatever is defined
            self.nodes = {node.provides: node for layer in layers for node in layer}
        self.layers = [] if mode in Mode.REMOVING else layers
        partial = self.order.partial
        pruning = mode in Mode.REMOVING or (self.order.prune and not partial)
        known = self.order.ledger
        if known and known != self.lineage and pruning:
            now = "it is %s now, and was %s" % (self.lineage[:12], known[:12]) if self.lineage else "there is none now"
            text = "this host's ledger was lost or replaced since the last run from here (%s): nothing is pruned"
            self.warnings.append(text % now)
            pruning = False
        elif pruning and not self.rows and mode != Mode.APPLY and not self.order.has_units:
            self.warnings.append("the ledger knows of nothing that %s has made on this host" % self.playbook)
        if self.ledger is None:
            return
        for name, row in self.rows.items():
            # 0.3.0 masked whole claims, including our own words and paths that contain a secret by accident.
            node = self.nodes.get(name)
            if row["triggers"] is None and node is not None and row["claims"] == self.mask_values(claims(node)):
                row["claims"] = self.claimed(node)
        known_as = {name: self.digest(node) for name, node in self.nodes.items() if name in self.rows}
        same = {name for name, digest in known_as.items() if digest == self.rows[name]["digest"]}
        self.going = leaving(self.ledger, self.playbook, self.rows, self.nodes, pruning, partial, same, self.claimed)
        rows = list(self.rows.values())
        for name in self.going.displaced:
            del self.rows[name]
        names = {row["name"]: name for name, row in self.going.renamed.items()}
        for debt in self.owed:
            debt.update((key, names.get(debt[key], debt[key])) for key in ("node", "cause"))
        coming = {node.provides for layer in self.layers for node in layer}
        self.following = Following(rows, self.going.layers, coming, names)
        self.following.owe(self.owed)
        defined = {node.provides: node for layer in layers for node in layer}
        for former in self.formers():
            if former.row["name"] in defined:
                former.supply(defined[former.row["name"]].attrs, self.mask_values)
            former.row["remembered"] = former.row["memory"]
            former.row["memory"] = stored(former.row["memory"], os.path.join(self.place, state.BEFORE))
        why = refusal(self.going, self.ledger.count(), self.order.yes)
        if why and self.acting:
            self.refusal = why
        elif why:
            self.warnings.append("this would be refused: %s" % why)

    def formers(self, looked_at: bool = False) -> Iterable[Orphan]:
        """Yield the orphans.

        :param looked_at: only those that this run checks: a run that changes the host ignores orphans that stay
        """
        for layer in (*self.going.layers, *(() if looked_at and self.acting else self.going.left)):
            yield from layer

    def load_types(self) -> List[str]:
        """Load the node types of the orphans; return the names of the types and modules that this host lacks."""
        from importlib import import_module

        missing: List[str] = []
        kept = self.following.kept if self.following is not None else ()
        for former in (*self.formers(looked_at=True), *kept):
            if former.type in REGISTRY or former.type in missing:
                continue
            try:
                import_module(former.row["module"])
            except ImportError:
                # A file in resources/ may define types whose names differ from its own.
                missing += {former.type, former.row["module"].rpartition(".")[2]}
        return missing

    def follow(self) -> None:
        """Decide which nodes the removals trigger. Call this after all types are loaded."""
        if self.following is not None:
            self.following.settle({former.row["name"] for layer in self.going.layers for former in layer})

    @property
    def life(self) -> Lifecycle:
        """The entities of this run, created on first use."""
        if self._life is None:
            from statecfg.remote.hooks.lifecycle import Entity, Lifecycle

            rows = {**self.rows, **self.going.renamed}
            entities = {name: Entity(name, row["state"], row["owing"]) for name, row in rows.items()}
            for former in self.formers():
                entities[former.provides] = Entity(former.provides, former.row["state"], former.row["owing"])
            for name in self.going.renamed:  # becomes managed under its new name, with its former record
                entities[name].state = ""
            self._life = Lifecycle(entities, self.hooks)
        return self._life

    # The plan

    def due(self, plan: Plan) -> bool:
        """Tell whether an apply of this plan changes anything or calls a hook."""
        if self.owed or self.going.layers or any(step.acts for step in plan.steps.values()):
            return True
        if not self.hooks and all(row["state"] == State.RESOLVED and not row["owing"] for row in self.rows.values()):
            return False
        return any(self.life.due(step.node, step.acts) for step in plan.steps.values())

    def would_fire(self, plan: Plan) -> List[Dict[str, Any]]:
        """Return the hooks that an apply of this plan would call."""
        if not self.hooks:
            return []
        going = [step for step in plan.going() if not step.kept]
        found = [each for step in going for each in self.life.would_fire(step.node, True, True)]
        for step in plan.steps.values():
            found += self.life.would_fire(step.node, step.acts, False)
        return found

    def report(self, step: Step) -> Dict[str, Any]:
        """Return a planned node as data; `verify` adds the causes of its drift."""
        found = step_report(step)
        row = self.rows.get(step.node.provides)
        if row is not None and row["state"] != State.RESOLVED:
            found["state"] = row["state"]
        if self.order.mode == Mode.VERIFY and (step.acts or step.removal):
            found["drift"] = ["definition"] if step.removal else self.drift(step, row)
            self.drifts[step.node.provides] = found["drift"]
        return found

    def drift(self, step: Step, row: Optional[Dict[str, Any]]) -> List[str]:
        """Return why a node needs changes.

        A node that is only triggered takes over the causes of the nodes that trigger it.

        :returns: "host", "definition" or both; or only "pending" if no apply has completed the node yet
        """
        if row is None and self.ledger is not None and self.ledger.completed(self.playbook):
            return ["definition"]
        if row is None or not row["digest"]:
            return ["pending"]
        name = step.node.provides
        found = {each for cause in step.triggered_by for each in self.drifts.get(cause, ())}
        if row["digest"] != self.digest(step.node):
            found.add("definition")
        if not found or (row["after"] and row["after"] != self.now(Orphan(row, name))):
            found.add("host")
        return sorted(found, reverse=True)

    def now(self, node: Node, facets: Optional[Facets] = None) -> str:
        """Return a digest of the present state of a node's real object, "" if its type has no `remember`."""
        from statecfg.remote.machine.real import RealMachine

        kind = REGISTRY.get(node.type)
        if kind is None or "remember" not in kind.methods:
            return ""
        try:
            found = encode_value(kind.run_remember(node, RealMachine(facets)), -1)
            found.pop("context", None)
        except Exception:  # it can't be read, so it has changed
            return "unreadable"
        return _digest(self.lineage, found)

    def digest(self, node: Node) -> str:
        """Return a digest of a node's definition; it includes the lineage so that nobody can guess a secret from it."""
        found = self.digests.get(node.provides)
        if found is None:
            found = self.digests[node.provides] = _digest(self.lineage, [node.type, encode_value(node.attrs, -1)])
        return found

    # Hooks that run here

    def files(self, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the files that this host lacks for the hooks that run on it."""
        return [blob for hook in self.hooks if self.acting for blob in hook.missing(self.place, blobs)]

    def install(self) -> None:
        """Install the missing files of hooks.

        :raises StateError: if they can't be installed
        """
        for hook in self.hooks:
            hook.install(self.place)

    # The run

    def begin(self, plan: Plan, journal: state.Journal, facets: Facets, channel: Channel) -> Lifecycle:
        """Record the run in the ledger, with all restarts that its changes will owe; return the entities' life."""
        from statecfg.remote.hooks.firing import Firing

        assert self.ledger is not None
        debts = [
            (step.node.provides, cause, step.node.debt if isinstance(step.node, Kept) else None)
            for step in (*plan.steps.values(), *plan.going())
            for cause in plan.triggers(step.node)
        ]
        debts += [(name, cause, None) for name, cause in (self.following.later if self.following is not None else ())]
        debts = [debt for debt in debts if plan.acts(debt[1])]
        self.owing = {debt["node"] for debt in self.owed}.union(node for node, _, _ in debts)
        self.ledger.begin(self.run, debts)
        self.facets = facets
        firing = Firing(self, channel)
        self.life.attach(journal, firing.call, firing.tell, self.row)
        return self.life

    @property
    def run(self) -> Dict[str, Any]:
        """The record of this run in the ledger."""
        return {"id": self.order.run, "mode": self.order.mode, "who": self.order.who, "playbook": self.playbook}

    def row(self, node: Node) -> Dict[str, Any]:
        """Return the record of a node that becomes managed, with its snapshot."""
        from statecfg.remote.machine.guard import reading_only
        from statecfg.remote.machine.real import RealMachine

        former = self.going.renamed.get(node.provides)
        found = dict(self.fields(node), name=node.provides, digest="", after="", state=State.PRE_CREATED, owing=[])
        if former is not None:
            same = ("memory", "owing", "digest", "after", "first_run", "since")
            found.update({key: former[key] for key in same})
            found["replaces"] = {key: former[key] for key in ("name", "claims")}
            return found
        kind = REGISTRY[node.type]
        with reading_only():
            others = self.others(node.type) if kind.compares() else ()
            memory = kind.run_remember(node, RealMachine(self.facets), others)
        from statecfg.remote.machine import durable

        for blob in contents(memory):
            durable.keep(os.path.join(self.place, state.BEFORE), blob)
        self.memories[node.provides] = found["memory"] = encode_value(memory, -1)
        return found

    def others(self, kind: str) -> List[Tuple[Dict[str, Any], Dict[str, Any]]]:
        """Return the attributes and snapshots of all managed nodes of a type, including those of this run."""
        assert self.ledger is not None
        folder = os.path.join(self.place, state.BEFORE)
        if kind not in self.known:
            self.known[kind] = [(attrs, stored(memory, folder)) for attrs, memory in self.ledger.memories(kind)]
        fresh = (name for name in self.memories if self.nodes[name].type == kind)
        return [*self.known[kind], *((self.nodes[name].attrs, stored(self.memories[name], folder)) for name in fresh)]

    def learned(self, node: Node) -> Optional[Dict[str, Any]]:
        """Return a node's snapshot with what its type learned from the changes, None if it learned nothing."""
        from statecfg.remote.machine.real import RealMachine

        row = self.rows.get(node.provides)
        memory = self.memories.get(node.provides, row["memory"] if row is not None else None)
        kind = REGISTRY.get(node.type)
        if memory is None or kind is None or "learn" not in kind.methods:
            return None
        try:
            folder = os.path.join(self.place, state.BEFORE)
            more = kind.run_learn(node, stored(memory, folder), RealMachine(self.facets))
        except Exception:  # the undo then finds out as much as it can
            return None
        return dict(memory, **encode_value(more, -1))

    def without_secrets(self, node: Node) -> Dict[str, Any]:
        """Return a node's attributes as the ledger stores them: content as a digest, and a mask for each secret."""
        attrs: Dict[str, Any] = kept({key: value for key, value in node.attrs.items() if value is not None})
        for name in attrs:
            if name in node.hides:
                masked = self.mask_values(attrs[name])
                # If a node type transformed the secret, the mask doesn't find it: mask the whole attribute.
                attrs[name] = masked if secretive(masked) else "<secret %s>" % name
            else:
                attrs[name] = self.mask_written(attrs[name])
        return attrs

    def claimed(self, node: Node) -> List[str]:
        """Return a node's claims as the ledger stores them, without secrets."""
        if not self.order.secrets:
            return claims(node)
        return claims(Node(node.provides, node.type, (), dict(node.attrs, **self.without_secrets(node))))

    def fields(self, node: Node) -> Dict[str, Any]:
        """Return a node's definition as the ledger stores it: without secrets, and content as a digest."""
        return {
            "type": node.type,
            "module": self.order.types.get(node.type, ""),
            "claims": self.claimed(node),
            "attrs": self.without_secrets(node),
            "requires": list(node.requires),
            "triggers": list(node.triggers),
            "tags": list(node.options.get("tags") or ()),
            "protect": int(bool(node.options.get("protect"))),
            "position": node.position,
        }

    def defined(self, names: Iterable[str], fresh: Sequence[str]) -> Dict[str, Optional[Dict[str, Any]]]:
        """Return the records that the ledger needs for nodes that are as defined.

        :param names: the nodes that are as defined
        :param fresh: the nodes whose real object this run changed or saw for the first time
        :returns: name → record; None if the ledger has this record already
        """
        found: Dict[str, Optional[Dict[str, Any]]] = {}
        for name in names:
            node, row = self.nodes.get(name), self.rows.get(name)
            if node is None:
                continue
            digest = self.digest(node)
            same = row is not None and row["digest"] == digest and row["position"] == node.position
            edges = row is not None and (list(node.requires), list(node.triggers)) == (row["requires"], row["triggers"])
            if same and name not in fresh and edges:
                protect = int(bool(node.options.get("protect")))
                if protect == row["protect"] and list(node.options.get("tags") or ()) == row["tags"]:  # type: ignore[index]  # there is a row where `same` holds
                    found[name] = None
                    continue
            after = row["after"] if row is not None and name not in fresh else self.now(node, self.facets)
            entry = dict(self.fields(node), digest=digest, after=after)
            memory = self.learned(node) if name in fresh else None
            found[name] = entry if memory is None else dict(entry, memory=memory)
        return found

    def settle(self, plan: Plan, status: str) -> None:
        """Record a run that had nothing to do on the host, and the resources that it made managed."""
        from statecfg.remote.machine.real import Facets

        assert self.ledger is not None
        self.facets = Facets()
        account = state.Account()
        sound = [name for name, step in plan.steps.items() if step.outcome == Outcome.UNCHANGED]
        new = [name for name in sound if name not in self.rows]
        for name in new:
            row = self.row(plan.steps[name].node)
            account.manage(dict(row, state=State.RESOLVED))
        self.ledger.end(self.run, account, status, self.defined(sound, new))

    def end(self, journal: state.Journal, status: str, sound: Iterable[str]) -> None:
        """Complete the run's record in the ledger with the contents of its journal."""
        assert self.ledger is not None
        with open(journal.path, encoding="utf-8") as stream:
            account = state.Account(stream.read().split("\n"))
        fresh = [*account.managed, *(name for name, outcome in account.outcomes.items() if outcome == Outcome.CHANGED)]
        self.ledger.end(self.run, account, status, self.defined(sound, fresh))

    def close(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            self.ledger.close()


def _hooks(orders: Sequence[Mapping[str, Any]]) -> List[HookOrder]:
    """Return the hooks that may be called on this host, in their order."""
    if not orders:
        return []
    from statecfg.remote.hooks.order import HookOrder

    return sorted((HookOrder.from_json(order) for order in orders), key=lambda hook: (hook.order, hook.name))


def _digest(lineage: str, value: Any) -> str:
    return hashlib.sha256((lineage + json.dumps(value, sort_keys=True)).encode()).hexdigest()[:32]
