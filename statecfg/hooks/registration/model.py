"""Registrations: which hook is called, for what, and how. They are the files `hooks/*.yml` of a project."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.playbook import trust
from statecfg.problems import InvalidInput, Problem, collecting, durations, going_on, problem, report
from statecfg.problems.positions import NOWHERE, SourceLocation

if TYPE_CHECKING:
    from statecfg.playbook.project import Project

HOST_EVENTS = (
    "node-registered",
    "node-facts-changed",
    "node-booted",
    "node-bound-to-policy",
    "node-unbound-from-policy",
    "node-install-finished",
    "node-deleted",
)
RESOURCE_EVENTS = ("pre-reconcile", "post-create", "post-update", "pre-delete", "finalize", "post-delete")
EVENTS = (*HOST_EVENTS, *RESOURCE_EVENTS)
CAPABILITIES = ("pre-reconcile", "finalize")
FAILURES = ("abort", "continue", "retry")
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
    :param failure: what follows a failure: "abort" the host's run, "continue" it, or "retry" and abort in the end
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
    failure: str = "abort"
    full_control: tuple[str, ...] = ()
    position: SourceLocation = NOWHERE
    type: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    http: HttpHook | None = None
    warnings: tuple[Problem, ...] = ()


def load(project: Project) -> list[Registration]:
    """Return the registrations of a project, by order and name; none where it has no `hooks/`.

    Raises InvalidInput with everything that is wrong in all of them: shapes, names, values, and files that others
    could change.
    """
    folder = project.root / "hooks"
    if not folder.is_dir():
        return []
    found: list[Registration] = []
    with collecting() as wrong, going_on():
        _refuse_foreign(folder)
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml")):
            with going_on():
                _refuse_foreign(path)
                made = _read(path, project.relative(path))
                if made is not None:
                    found.append(made)
        _refuse_twins(found)
    if wrong:
        changeable = [each for each in wrong if each.code == "SC0601"]
        rest = [each for each in wrong if each.code != "SC0601"]
        one = [trust.together(changeable)] if changeable else []
        raise InvalidInput(sorted([*rest, *one], key=lambda item: item.places[:1]))
    return sorted(found, key=lambda each: (each.order, each.name))


def _read(path: Path, shown: str) -> Registration | None:
    from statecfg.dialects import yaml_text
    from statecfg.hooks.registration import yaml as registration_yaml

    root = yaml_text.load(path, registration_yaml.SHAPE, shown)
    return registration_yaml.parse(root)


def _refuse_foreign(path: Path) -> None:
    """Report that somebody else could put a hook there. Source: promise E5; CVE-2018-10875."""
    try:
        found = path.stat()
    except OSError as error:
        report(problem("SC0301", f"{path}: {error.strerror}", "check the path", SourceLocation(str(path), 0)))
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, os.geteuid()):
        detail = f"{path} belongs to user {found.st_uid}, not to you (user {os.geteuid()}), with mode {mode:04o}"
        report(
            problem("SC0601", detail, f"look at it, then: chown {os.geteuid()} {path}", SourceLocation(str(path), 0))
        )
    elif mode & 0o022 and not (mode & 0o022 == 0o020 and trust.private(found.st_uid, found.st_gid)):
        detail = f"{path} of user {found.st_uid} has mode {mode:04o}"
        report(problem("SC0601", detail, f"look at it, then: chmod go-w {path}", SourceLocation(str(path), 0)))


def _refuse_twins(found: Iterable[Registration]) -> None:
    first: dict[str, Registration] = {}
    for each in found:
        # Hook objects of Razor are told apart without regard to case, and both kinds share one log.
        other = first.setdefault(each.name.lower(), each)
        if other is not each:
            detail = f"two hooks are called {each.name}"
            report(problem("SC0607", detail, "rename one", each.position, other.position))
