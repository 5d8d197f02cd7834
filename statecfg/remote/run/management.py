"""The managed resources of one playbook on a host: compare the ledger with the definition, and update it."""

from __future__ import annotations

import os

from statecfg.remote.graph.names import HostStatus, Mode, Outcome, State
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.journal import Account, Journal
from statecfg.remote.ledger.recorded import RecordedResources
from statecfg.remote.machine import accounts
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.run.dependents import Dependent, Dependents
from statecfg.remote.run.left_out import causes, left_out, standing
from statecfg.remote.run.plan import PreviousSecrets
from statecfg.remote.run.planning import Planner
from statecfg.remote.run.report import step_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

    from statecfg.remote.graph.model import Blob, HostNode
    from statecfg.remote.hooks.lifecycle import ExpectedHook, Lifecycle
    from statecfg.remote.hooks.order import HookOrder
    from statecfg.remote.ledger.orphans import Orphans
    from statecfg.remote.ledger.records import Orphan, Resource
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.claims import Claims
    from statecfg.remote.run.definitions import StoredDefinitions
    from statecfg.remote.run.drift import Drift
    from statecfg.remote.run.execution import Execution
    from statecfg.remote.run.order import Order
    from statecfg.remote.run.plan import Plan, Step
    from statecfg.remote.run.recording import Recording
    from statecfg.remote.run.report import NodeReport
    from statecfg.remote.wire.channel import Channel


class Management:
    """The managed resources of a playbook on this host, during one run.

    A host without a ledger has none, and a run that only plans creates none: then there is nothing to compare with.

    :param state_dir: the state directory
    :param order: the controller's instructions
    :param warnings: receives warnings for the user
    :ivar recorded: the playbook's records in the ledger
    :ivar definitions: converts nodes for the ledger; None without a ledger
    :ivar orphans: the resources that left the definition; None without a ledger
    :ivar dependents: the resources that their removal affects; None without a ledger
    :ivar layers: the nodes to plan
    :ivar hooks: the hooks that may be called on this host, in their order
    :ivar refusal: why the run must not change the host, "" if it may
    """

    planner = Planner
    account: Any = None  # what checks that the login of statecfg stays possible

    def __init__(self, state_dir: str, order: Order, warnings: List[str]) -> None:
        self.order, self.warnings, self.refusal = order, warnings, ""
        self.recorded = RecordedResources(state_dir)
        if order.acting or os.path.exists(os.path.join(state_dir, state.LEDGER)):
            from statecfg.remote.ledger.opening import recorded

            self.recorded = recorded(state_dir, order.playbook, order.acting, warnings, order.run)
        self.recorded.digests = order.digests(state_dir)
        self.definitions: Optional[StoredDefinitions] = None
        if self.recorded.ledger is not None:
            from statecfg.remote.run.definitions import StoredDefinitions

            self.definitions = StoredDefinitions(order, self.recorded.lineage, state_dir)
        self.orphans: Optional[Orphans] = None
        self.claims: Optional[Claims] = None
        self.dependents: Optional[Dependents] = None
        self.layers: List[List[HostNode]] = []
        self.hooks: List[HookOrder] = []
        if order.hooks:
            from statecfg.remote.hooks.order import in_order

            self.hooks = in_order(order.hooks)
        self._life: Optional[Lifecycle] = None
        self._unknown: List[Orphan] = []  # orphans to compare once their types are loaded
        self._recording: Optional[Recording] = None
        self._drift: Optional[Drift] = None

    # Comparison

    def compare(self, layers: List[List[HostNode]]) -> None:
        """Compare the defined nodes with the managed resources: find orphans and what their removal triggers."""
        order = self.order
        self.layers = [] if order.mode in Mode.REMOVING else layers
        pruning = self._prunes()
        ledger, definitions, resources = self.recorded.ledger, self.definitions, self.recorded.resources
        defined = {node.provides: node for layer in layers for node in layer}
        if ledger is None or definitions is None:
            self._index(resources, defined)
            return
        from statecfg.remote.ledger.orphans import find_orphans, refusal

        nodes = {} if order.mode == Mode.DESTROY else defined  # destroy removes everything, defined or not
        definitions.update_identities(resources, nodes)
        same = {
            name for name, node in nodes.items()
            if name in resources and definitions.digest(node) == resources[name].digest
        }  # fmt: skip
        held, identities = same.union(self.recorded.held), definitions.identities
        self.orphans = find_orphans(
            ledger, order.playbook, resources, nodes, pruning, order.partial, held, identities
        )  # fmt: skip
        self._index(resources, defined)
        before = list(resources.values())
        for name in self.orphans.reused:
            del resources[name]
        names = {resource.name: name for name, resource in self.orphans.renamed.items()}
        self.recorded.debts = standing(self.recorded, names, order, defined)
        coming = {node.provides for layer in self.layers for node in layer}
        self.dependents = Dependents(before, self.orphans.to_remove, coming, names)
        self.dependents.add_debts(self.recorded.debts)
        from statecfg.remote.run.orphan_values import complete

        self._unknown = complete(self.all_orphans(), defined, definitions, self.recorded.state_dir)
        # Unchanged nodes have the secrets of this run, except those that are known only at the node's turn.
        self.recorded.note_secrets(order.playbook, names, {x for x in same if "inserts" not in defined[x].options})
        why = refusal(self.orphans, ledger.count(), order.yes)
        if why and order.acting:
            self.refusal = why
        elif why:
            self.warnings.append(f"an apply would be refused: {why}")

    def _index(self, resources: Mapping[str, Resource], defined: Mapping[str, HostNode]) -> None:
        """Index what nodes own that are not part of this run, if there are any."""
        foreign = self.orphans.foreign if self.orphans is not None else ()
        if foreign or self.order.partial:
            from statecfg.remote.run import claims

            look = self.recorded.elsewhere
            self.claims = claims.of_run(self.order, foreign, resources, defined, self.definitions, look)

    def _prunes(self) -> bool:
        """Return whether the run removes all orphans; warn if it should, but has no record of them."""
        order = self.order
        if not (order.mode in Mode.REMOVING or (order.prune and not order.partial)):
            return False
        from statecfg.remote.ledger.orphans import unrecorded

        why = unrecorded(order.ledger, self.recorded.lineage)
        if why:
            self.warnings.append(why)
        elif not self.recorded.resources and order.mode != Mode.APPLY and not order.has_units:
            self.warnings.append(f"the ledger contains no resources of {order.playbook} on this host")
        return not why

    @property
    def to_remove(self) -> List[List[Orphan]]:
        """Layers of the orphans that this run removes."""
        return self.orphans.to_remove if self.orphans is not None else []

    @property
    def to_keep(self) -> List[List[Orphan]]:
        """Layers of the orphans that stay until a prune."""
        return self.orphans.to_keep if self.orphans is not None else []

    def all_orphans(self, checked: bool = False) -> Iterable[Orphan]:
        """Yield the orphans.

        :param checked: only those that this run checks: a run that changes the host ignores orphans that stay
        """
        for layer in (*self.to_remove, *(() if checked and self.order.acting else self.to_keep)):
            yield from layer

    def previous_secrets(self) -> PreviousSecrets:
        """Return where earlier runs of this playbook and of others put secrets."""
        resources = dict(self.recorded.resources)
        resources.update(self.orphans.renamed if self.orphans is not None else {})
        resources.update((orphan.resource.name, orphan.resource) for orphan in self.all_orphans())
        nodes = {name for name, resource in resources.items() if secretive(resource.definition.attrs)}
        return PreviousSecrets(nodes, self.recorded.secret_paths)

    def load_types(self) -> List[str]:
        """Load the types of orphans and of `SharedFiles`; return the types and modules that this host lacks."""
        from importlib import import_module

        missing: List[str] = []
        orphans, dependents = list(self.all_orphans(checked=True)), self.dependents
        removed = [*orphans, *(dependents.nodes if dependents is not None else ())]
        wanted = {orphan.type: orphan.resource.definition.module for orphan in removed}
        if self.claims is not None:
            wanted.update(self.claims.types([*orphans, *(node for layer in self.layers for node in layer)]))
        for name, module in wanted.items():
            if name in REGISTRY:
                continue
            try:
                import_module(module)
            except ImportError:  # a file in resources/ may define types whose names differ from its own
                missing += {name, module.rpartition(".")[2]}
        return missing

    def follow(self) -> None:
        """Decide which nodes the removals trigger. Call this after all types are loaded."""
        if self._unknown:
            from statecfg.remote.run.orphan_values import mark_untouched

            mark_untouched(self._unknown, self.recorded.lineage)
        if self.dependents is not None:
            self.dependents.drop_unable({orphan.resource.name for layer in self.to_remove for orphan in layer})

    # The plan

    def plan(self, facets: Facets, load: Callable[[Management], None]) -> Plan:
        """Return the plan for this host as it is now.

        :param load: loads the node types of the orphans
        """
        planner, checking = self.new_planner(facets), not self.order.acting
        with accounts.Remembering():
            return planner.plan(self.layers, self.to_remove, self.to_keep, checking, self.dependents)

    def new_planner(self, facets: Facets) -> Planner:
        """Return a planner for this host as it is now."""
        planner = self.planner(REGISTRY, Planned(RealMachine(facets)), causes(self.recorded.debts))
        planner.account = self.account
        planner.claims = planner.machine.claims = self.claims
        if self.orphans is not None:
            planner.managed, planner.machine.elsewhere = frozenset(self.orphans.managed), self.orphans.elsewhere
            planner.previous_secrets, planner.recorded = self.previous_secrets(), self.recorded.resources
        drifting = any("drifts" in node_type.methods for node_type in REGISTRY.values())
        if drifting and self.order.mode == Mode.VERIFY and self.definitions is not None:
            from statecfg.remote.run.drift import still

            planner.still = still(self.recorded, self.definitions, (node for layer in self.layers for node in layer))
        return planner

    def execution(self, plan: Plan, *more: Any) -> Execution:
        """Return what performs a plan.

        :param more: the other arguments of `Execution`
        """
        from statecfg.remote.run.execution import Execution

        return Execution(plan, *more)

    @property
    def life(self) -> Lifecycle:
        """The states of the nodes of this run, and their hooks; created on first use."""
        if self._life is None:
            from statecfg.remote.hooks import lifecycle

            resources = dict(self.recorded.resources)
            resources.update((orphan.provides, orphan.resource) for orphan in self.all_orphans())
            tracked = {name: lifecycle.Tracked(name, was.state, was.owing) for name, was in resources.items()}
            for name, resource in self.orphans.renamed.items() if self.orphans is not None else ():  # under a new name
                tracked[name] = lifecycle.Tracked(name, "", resource.owing)
            if self.hooks:
                from statecfg.remote.hooks.calling import HookedLifecycle

                self._life = HookedLifecycle(tracked, self.hooks)
            else:
                self._life = lifecycle.Lifecycle(tracked)
        return self._life

    def due(self, plan: Plan) -> bool:
        """Tell whether an apply of this plan changes anything or calls a hook."""
        if self.recorded.debts or self.to_remove or any(step.acts for step in plan.steps.values()):
            return True
        resources = self.recorded.resources.values()
        if not self.hooks and all(resource.state == State.RESOLVED and not resource.owing for resource in resources):
            return False
        return any(self.life.due(step.node, step.acts) for step in plan.steps.values() if not step.excluded)

    def would_fire(self, plan: Plan) -> List[ExpectedHook]:
        """Return the hooks that an apply of this plan would call."""
        if not self.hooks:
            return []
        removals = [step for step in plan.removal_steps() if not step.dependent]
        hooks = [hook for step in removals for hook in self.life.would_fire(step.node, True, True)]
        for step in plan.steps.values():
            hooks += [] if step.excluded else self.life.would_fire(step.node, step.acts, False)
        return hooks

    def report(self, step: Step) -> NodeReport:
        """Return a planned node as data; `verify` adds the causes of its drift."""
        data = step_report(step)
        resource = self.recorded.resources.get(step.node.provides)
        if resource is not None and resource.state != State.RESOLVED:
            data["state"] = resource.state
        if self.order.mode == Mode.VERIFY and (step.acts or step.removal):
            data["drift"] = self._causes(step)
        return data

    def _causes(self, step: Step) -> List[str]:
        """Return why a node needs changes, see `Drift`."""
        if self.definitions is None:
            return ["pending"]
        if self._drift is None:
            from statecfg.remote.run.drift import Drift

            self._drift = Drift(self.recorded, self.definitions, self.order.playbook)
        return self._drift.causes(step)

    # Hooks that run here

    def files(self, blobs: Dict[str, Blob]) -> List[Blob]:
        """Return the files that this host lacks for the hooks that run on it."""
        hooks = self.hooks if self.order.acting else ()
        return [blob for hook in hooks for blob in hook.missing_files(self.recorded.state_dir, blobs)]

    def install(self) -> None:
        """Install the missing files of hooks.

        :raises StateError: if they can't be installed
        """
        for hook in self.hooks:
            hook.install(self.recorded.state_dir)

    # The run

    def begin(self, plan: Plan, journal: Journal, facets: Facets, channel: Channel) -> Lifecycle:
        """Record the run in the ledger, with all restarts that it will owe; return the lifecycle of its nodes."""
        ledger, definitions = self.recorded.opened(), self.definitions
        assert definitions is not None
        owed = [
            (step.node.provides, cause, step.node.resource.debt if isinstance(step.node, Dependent) else None)
            for step in (*plan.steps.values(), *plan.removal_steps())
            for cause in plan.triggers(step.node)
        ]
        owed += [(name, cause, None) for name, cause in (self.dependents.later if self.dependents is not None else ())]
        owed = [debt for debt in owed if plan.acts(debt[1])]
        owed += [(name, cause, None) for name, cause in left_out(plan, self.order.restarts)]
        self.recorded.restarts = {debt.node for debt in self.recorded.debts}.union(node for node, _, _ in owed)
        ledger.begin(self.run, owed)
        life = self.life
        life.attach(journal, self._start_recording(facets).new_resource)
        if self.hooks:
            from statecfg.remote.hooks.calling import HookedLifecycle
            from statecfg.remote.hooks.firing import Firing

            assert isinstance(life, HookedLifecycle)
            firing = Firing(self.order, ledger, definitions.mask, channel)
            life.connect(firing.call, firing.tell)
        return life

    def _start_recording(self, facets: Facets) -> Recording:
        from statecfg.remote.run.recording import Recording

        assert self.definitions is not None and self.orphans is not None
        nodes = {node.provides: node for layer in self.layers for node in layer}
        self._recording = Recording(self.recorded, self.definitions, nodes, self.orphans.renamed, facets)
        return self._recording

    @property
    def run(self) -> Mapping[str, Any]:
        """The record of this run in the ledger."""
        order = self.order
        return {"id": order.run, "mode": order.mode, "who": order.who, "playbook": order.playbook}

    def end_unchanged(self, plan: Plan, status: str) -> None:
        """Record a run that did nothing on the host, and the resources that it found as defined."""
        from statecfg.remote.machine.real import Facets

        ledger = self.recorded.ledger
        assert ledger is not None
        recording, account = self._start_recording(Facets()), Account()
        sound = plan.as_found()
        first_seen = [name for name in sound if name not in self.recorded.resources]
        for name in first_seen:
            account.manage(recording.new_resource(plan.steps[name].node, State.RESOLVED))
        records = recording.updates(sound, set(first_seen), {})
        changed = account.records or any(records.values()) or (self.claims is not None and self.claims.moves(sound))
        if changed or not ledger.append(self.run, status, records):
            self.recorded.opened().end(self.run, account, status, records)
            self._record_claims(sound, status)

    def end(self, journal: Journal, status: str, sound: Sequence[str]) -> None:
        """Complete the run's record in the ledger with the contents of its journal."""
        assert self._recording is not None
        with open(journal.path, encoding="utf-8") as stream:
            account = Account(stream.read().split("\n"))
        changed = (name for name, outcome in account.outcomes.items() if outcome == Outcome.CHANGED)
        fresh = {*account.managed, *changed}
        self.recorded.opened().end(self.run, account, status, self._recording.updates(sound, fresh, account.said))
        self._record_claims(sound, status)

    def _record_claims(self, names: Iterable[str], status: str) -> None:
        """Record what nodes took over, and whether the records contain all that their nodes own."""
        moves = self.claims.moves(names) if self.claims is not None else []
        complete = not self.recorded.complete and status == HostStatus.OK and not self.order.partial
        if moves or complete:
            from statecfg.remote.ledger.moves import move

            move(self.recorded.opened(), self.order.playbook, moves, complete)

    def close(self) -> None:
        """Close the ledger, and write what makes the next run faster, if this run may have changed the host."""
        self.recorded.close()
        if self.recorded.digests is not None and self.order.acting:
            self.recorded.digests.save()
