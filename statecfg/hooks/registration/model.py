"""A registration: which hook is called, for which events, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statecfg.problems import Problem, durations
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.events import NodeEvent
from statecfg.remote.graph.names import ResourceEvent
from statecfg.remote.hooks.on_failure import ABORT

EVENTS = (*NodeEvent.ALL, *ResourceEvent.ALL)
CAPABILITIES = (ResourceEvent.PRE_RECONCILE, ResourceEvent.FINALIZE)
PLACES = ("controller", "host")

DEADLINE = 30.0  # seconds: a program
HTTP_DEADLINE = 120.0  # seconds: an HTTP hook, with all its tries
ORDER = 100
FORM_FACTOR = "playbook"  # what `formFactor.name` says where the registration says nothing


@dataclass(frozen=True)
class Selector:
    """What a hook is for; nothing selects everything.

    :param hosts: pattern of the inventory
    :param types: names of node types
    :param names: names of nodes, `*` and `?` standing for any letters
    :param tags: tags of nodes; one of them is enough
    """

    hosts: str | None = None
    types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def wire(self) -> dict[str, list[str]]:
        """Return what the host's half selects resources by, as plain JSON."""
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
    """How an HTTP service is called. Source: `spec.hook` of the Scoby document.

    :param uri: where it is; what it lacks, `ref` gives
    :param timeout: seconds of one call; 0 and less for as long as the event's deadline
    :param capabilities: the phases it takes part in
    :param form_factor: what `formFactor.name` of a request says
    :param children: key in a request's children → name of a node, `*` and `?` standing for any letters
    :param conditions: types of the conditions of the status that the hook owns
    """

    uri: str | None
    ref: Reference | None
    timeout: float = durations.DEFAULT_TIMEOUT
    capabilities: tuple[str, ...] = ()
    version: str = "v1"
    form_factor: str = FORM_FACTOR
    children: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Registration:
    """A hook and what it is called for.

    :param protocol: "exec" for a program, "http" for a service
    :param events: those it is called for; of an HTTP hook, the capabilities that mean something here
    :param where: "controller" or "host"
    :param order: hooks of one event are called by order, then by name
    :param deadline: seconds; of an HTTP hook, for all tries of one event together
    :param on_failure: the failure rule, one of `on_failure.RULES`
    :param full_control: users who may pass it by with `--no-hooks`
    :param position: where it is written
    :param type: of an exec hook, the name of its type
    :param configuration: of an exec hook, what its type is configured with
    :param http: of an HTTP hook, how it is called
    :param warnings: what is probably not meant, and is no error
    """

    name: str
    protocol: str
    events: tuple[str, ...]
    select: Selector = field(default_factory=Selector)
    where: str = "controller"
    order: int = ORDER
    deadline: float = DEADLINE
    on_failure: str = ABORT
    full_control: tuple[str, ...] = ()
    position: SourceLocation = NOWHERE
    type: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    http: HttpHook | None = None
    warnings: tuple[Problem, ...] = ()
