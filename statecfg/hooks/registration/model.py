"""A registration: which hook is called, for which events, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from statecfg.problems import Problem, durations
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import ResourceEvent
from statecfg.remote.graph.on_failure import ABORT

EVENTS = (*HostEvent.ALL, *ResourceEvent.ALL)
CAPABILITIES = (ResourceEvent.PRE_RECONCILE, ResourceEvent.FINALIZE)
DRY_RUN = "dry-run"  # a capability that Scoby does not have: a plan may ask the service what it would answer
WHERE = ("controller", "host")

DEADLINE = 30.0  # seconds, for a program
HTTP_DEADLINE = 120.0  # seconds, for all attempts of an HTTP hook
ORDER = 100
FORM_FACTOR = "playbook"  # the default of `formFactor.name`


@dataclass(frozen=True)
class Selector:
    """The hosts and resources of a hook. Empty values select everything.

    :param hosts: pattern of the inventory
    :param types: names of node types
    :param names: names of nodes, with the wildcards `*` and `?`
    :param tags: tags of nodes, at least one of which must match
    """

    hosts: str | None = None
    types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def wire(self) -> dict[str, list[str]]:
        """Return the part that selects resources on the host, as JSON."""
        return {"types": list(self.types), "names": list(self.names), "tags": list(self.tags)}


@dataclass(frozen=True)
class Reference:
    """An object that has an address. Source: `spec.hook.address.ref` of the Scoby document."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""


@dataclass(frozen=True)
class HttpHook:
    """How to call an HTTP service. Source: `spec.hook` of the Scoby document.

    :param uri: its URL; `ref` provides missing parts
    :param ref: the object that has its address
    :param timeout: seconds of one call; 0 and less for the deadline of the event
    :param capabilities: the phases it takes part in
    :param form_factor: the value of `formFactor.name` in requests
    :param children: key in a request's children → name of a node, with the wildcards `*` and `?`
    :param dry_run: whether the service answers a request with `dryRun` without changing anything
    :param conditions: types of the status conditions that the hook owns
    """

    uri: str | None
    ref: Reference | None
    timeout: float = durations.DEFAULT_TIMEOUT
    capabilities: tuple[str, ...] = ()
    version: str = "v1"
    form_factor: str = FORM_FACTOR
    children: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True)
class ExecHook:
    """Which program to call: the name of its type, and its configuration."""

    type: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Registration:
    """A hook, and when it is called.

    :param events: the events that call it; for an HTTP hook, its known capabilities
    :param where: "controller" or "host"
    :param order: hooks of one event are called by order, then by name
    :param deadline: seconds; for an HTTP hook, for all attempts of one event together
    :param on_failure: the failure rule, one of `on_failure.RULES`
    :param full_control: users who may skip it with `--no-hooks`
    :param position: its source location
    :param exec: which program to call; empty for an HTTP hook
    :param http: how to call the service; None for an exec hook
    :param warnings: probable mistakes that are not errors
    """

    name: str
    events: tuple[str, ...]
    select: Selector = field(default_factory=Selector)
    where: str = "controller"
    order: int = ORDER
    deadline: float = DEADLINE
    on_failure: str = ABORT
    full_control: tuple[str, ...] = ()
    position: SourceLocation = NOWHERE
    exec: ExecHook = field(default_factory=ExecHook)
    http: HttpHook | None = None
    warnings: tuple[Problem, ...] = ()

    @property
    def protocol(self) -> str:
        """The protocol: "exec" for a program, "http" for a service."""
        return "exec" if self.http is None else "http"
