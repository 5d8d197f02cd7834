"""Compose projects: what their files define and which containers they have, the ops that change them, and the undo."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import SECRETS, Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.containers import compose_services, engines
from statecfg.resources.containers.compose_services import LABEL, SERVICES, key
from statecfg.resources.shared import paths, places, records

if TYPE_CHECKING:
    from typing import TypedDict

    class ComposeMemory(TypedDict):
        """The memory of a `compose_project`. `services` had containers before."""

        services: list[str]


# Runs a program and prints only its errors: podman-compose prints its commands, with the values of variables.
QUIET = 'out=$("$@" 2>&1); code=$?; printf "%s\\n" "$out" | grep -i "^error" >&2; exit $code'
# Lines of a dry run of podman-compose: the command that creates a container of a service, and others.
_SERVICE = re.compile(r"podman (?:run|create) .*?com\.docker\.compose\.service=(\S+)")
_OTHER = re.compile(r"podman |\['podman'|\*\* |exit code")


def words(attrs: records.Attrs) -> list[str]:
    """Return the program of a project, with the options that every command needs."""
    argv = ["podman-compose"] if attrs["engine"] == "podman" else ["docker", "compose"]
    argv += ["--project-name", attrs["name"]]
    argv += ["--project-directory", attrs["directory"]] if attrs["engine"] == "docker" else []
    argv += ["--env-file", attrs["env_file"]] if attrs.get("env_file") else []
    for path in files(attrs):
        argv += ["--file", path]
    return argv


def files(attrs: records.Attrs) -> list[str]:
    """Return the paths of the files of a project."""
    return [posixpath.join(attrs["directory"], name) for name in attrs.get("files") or ("compose.yaml",)]


def _question(argv: list[str]) -> list[str]:
    """Return the command that prints the definition of each service. It changes nothing."""
    podman = argv[0] == "podman-compose"
    return [*argv, "--dry-run", "up", "--detach"] if podman else [*argv, "config", "--hash", "*"]


def _definitions(argv: list[str], answer: Probe) -> dict[str, str]:
    """Return the digest of the definition of each service.

    :raises CheckError: if the program failed, or gives podman a secret as an argument
    """
    lines = answer.text.splitlines()
    shown = [*lines, *answer.errors.decode("utf-8", "replace").splitlines()]
    if argv[0] == "podman-compose":
        _refuse_secrets("\n".join(shown))
    if answer.status == 127:
        raise CheckError(f"there is no {argv[0]} on this host; require the package that provides it")
    if answer.status:
        raise CheckError(f"the files of the compose project are not valid: {engines.why(answer)}")
    if argv[0] == "podman-compose":
        found = _simulated(shown)
    else:
        found = {each[0]: each[1] for each in map(str.split, lines) if len(each) == 2}
    if not found:
        raise CheckError(f"{' '.join(argv[:1])} finds no services in the files of the project")
    return found


def _refuse_secrets(shown: str) -> None:
    """Check that no argument of podman contains a secret: other users of the host can read arguments.

    :param shown: the commands that podman-compose would run
    :raises CheckError: if one does
    """
    if not SECRETS:  # then hosts do not get the module either
        return
    from statecfg.remote.machine.redact import Redactor

    names = sorted({part[0] for part in Redactor(SECRETS).parts(shown) if not isinstance(part, str)})
    if names:
        text = "podman-compose would give podman %s as an argument, which other users of the host can read; write it"
        text += " into a file with mode 0600, and name this file in `env_file` of the service"
        raise CheckError(text % ", ".join("the secret " + name for name in names))


def _simulated(lines: Sequence[str]) -> dict[str, str]:
    """Return the digest of the commands that podman-compose would run for each service."""
    texts: dict[str, list[str]] = {}
    service = ""
    for line in lines:
        match = _SERVICE.match(line)
        service = match.group(1) if match is not None else "" if _OTHER.match(line) else service
        if service:  # a value of a variable can have several lines
            texts.setdefault(service, []).append(line)
    return {name: hashlib.sha256("\n".join(text).encode()).hexdigest() for name, text in texts.items()}


def defined(attrs: records.Attrs, world: World) -> dict[str, str]:
    """Return the definitions of the services, see `_definitions`.

    :raises Unknown: if a required node may change the files
    """
    for path in files(attrs):
        if world.is_known(path) and world.stat(path) is None:
            raise CheckError(f"{path} does not exist; require the node that creates it")
    argv = words(attrs)
    places.require_root(world, _obeyed(argv), " ".join(argv[: 1 + (argv[0] == "docker")]))
    found = _definitions(argv, world.probe(_question(argv), inputs=(SERVICES, _inputs(attrs))))
    for service in (*(attrs.get("services") or ()), *(attrs.get("jobs") or ())):
        if service not in found:
            raise CheckError(f"the project has no service {service}{paths.nearest(service, found)}")
    return found


def _shape(attrs: records.Attrs, world: World) -> tuple[dict[str, int], set[str]]:
    """Return the number of containers of each service, and the services whose programs end.

    The digest of docker's definitions does not contain the numbers. podman-compose shows none of both.

    :raises CheckError: if the program prints something else
    """
    jobs = set(attrs.get("jobs") or ())
    if attrs["engine"] == "podman":
        return {}, jobs
    argv = words(attrs)
    answer = world.probe([*argv, "config", "--format", "json"], inputs=(SERVICES, _inputs(attrs)))
    numbers = {}
    try:
        for name, service in json.loads(answer.text)["services"].items():
            number = service.get("scale", (service.get("deploy") or {}).get("replicas"))
            numbers[name] = 1 if number is None else int(number)
            for other, how in (service.get("depends_on") or {}).items():
                if how.get("condition") == "service_completed_successfully":
                    jobs.add(other)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CheckError(
            f"`{' '.join(argv)} config --format json` does not print the services of the project"
        ) from None
    return numbers, jobs


def _obeyed(argv: Sequence[str]) -> list[str]:
    """Return the files that the program reads: they can give containers every right on the host."""
    found = [argv[at + 1] for at, option in enumerate(argv[:-1]) if option in ("--file", "--env-file")]
    return [*found, posixpath.join(posixpath.dirname(found[-1]), ".env")]


def _inputs(attrs: records.Attrs) -> list[str]:
    return [attrs["directory"], *([attrs["env_file"]] if attrs.get("env_file") else [])]


def _effect(engine: str, project: str, services: Mapping[str, records.Fields | None]) -> records.Effect:
    return {SERVICES: {key(engine, project, name): fields for name, fields in services.items()}}


@op(mutex="containers")
def up(
    machine: Machine,
    argv: list[str],
    project: str,
    changed: dict[str, records.Fields | None],
    services: list[str],
    pull: str,
    drop: list[str],
    gone: list[str],
    timeout: float,
    stop_timeout: int,
) -> Result:
    """Create and start the containers of services.

    :param argv: the program with its options
    :param changed: services → the fields that change; None: no containers
    :param services: only these, and what they need; none: all
    :param drop: containers of former definitions, which are removed first; podman-compose keeps them
    :param gone: services that the files no longer define, whose containers are removed
    """
    podman = argv[0] == "podman-compose"
    removing: dict[str, records.Fields | None] = dict.fromkeys(gone)
    effect = _effect("podman" if podman else "docker", project, {**changed, **removing})
    run = [*argv, "up", "--detach", *(["--remove-orphans"] if gone else []), "--pull=" + pull, *services]

    def perform() -> Result | None:
        """Run podman-compose, with a label that tells what the containers were made of."""
        try:
            places.require_root(machine, _obeyed(argv), argv[0])
            if not podman:
                return None
            found = _definitions(argv, machine.probe(_question(argv)))
        except CheckError as problem:
            return error(str(problem))
        labels = {"hashes": found, "number": os.urandom(8).hex()}
        label = "--podman-run-args=--pull=%s --label=%s" % (pull, shlex.quote("%s=%s" % (LABEL, json.dumps(labels))))
        if drop:
            result = machine.run(["podman", "rm", "--force", f"--time={stop_timeout}", "--", *drop], {})
            if result["status"] != "ok":
                return result
        quiet = ["sh", "-c", QUIET, "sh", argv[0], label, *argv[1:], "up", "--detach", *services]
        return machine.run(quiet, effect, timeout=timeout)

    return machine.run(run, effect, timeout=timeout, first=perform)


@op(mutex="containers")
def change(
    machine: Machine, argv: list[str], verb: str, project: str, services: list[str], stop_timeout: int
) -> Result:
    """Stop or restart services, or remove the project.

    :param argv: the program with its options
    :param verb: `stop`, `restart` or `down`
    """
    fields: dict[str, records.Fields | None] = {}
    for name in services if verb != "restart" else ():
        fields[name] = {"state": "stopped"} if verb == "stop" else None
    effect = _effect("podman" if argv[0] == "podman-compose" else "docker", project, fields)
    only = [] if verb == "down" else services
    quiet = ["sh", "-c", QUIET, "sh"] if argv[0] == "podman-compose" else []
    # The files may no longer define a service that has containers. podman-compose does not know this option.
    all_of_them = ["--remove-orphans"] if verb == "down" and not quiet else []
    return machine.run([*quiet, *argv, verb, "--timeout", str(stop_timeout), *all_of_them, *only], effect)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the containers of a project with its files.

    :raises CheckError: if the engine fails, the files are not valid, or others created the containers
    """
    attrs = node.attrs
    engine, project = attrs["engine"], attrs["name"]
    engines.require(world, engine)
    present = compose_services.of(world, engine, project)
    directory = attrs.get("directory")
    foreign = sorted(name for name, entry in present.items() if compose_services.is_foreign(entry, directory))
    if foreign and not attrs.get("replace"):
        text = "statecfg did not create the containers of %s in the project %s; remove them, or write replace: true"
        raise CheckError(text % (", ".join(foreign), project))
    ours = [name for name in sorted(present) if not attrs.get("services") or name in attrs["services"]]
    if attrs.get("absent"):
        return [_change(attrs, "down", sorted(present))] if present else []
    if not attrs["running"]:
        running = [name for name in ours if present[name]["state"] != "stopped"]
        return [_change(attrs, "stop", running)] if running else []
    definitions = defined(attrs, world)
    numbers, jobs = _shape(attrs, world)
    changed: dict[str, records.Fields | None] = {}
    drop: list[str] = []
    for name in sorted(attrs.get("services") or definitions):
        entry = present.get(name)
        current = entry is not None and (
            entry.get("definition") == "current"
            or (_same(entry, definitions[name]) and not compose_services.is_outdated(world, engine, entry))
        )
        if entry is not None and not current:
            drop += entry.get("containers", [])
        there = 0 if entry is None else entry.get("number", 1)
        number = numbers.get(name, there or 1)
        job = name in jobs  # it may have ended already when statecfg looks at it
        runs = entry is not None and (entry["state"] == "running" or (job and entry.get("succeeded") is True))
        if number == there and (not number or (current and runs)):
            continue
        fields = {
            **({} if job else {"state": "running"}),
            **({} if current else {"definition": "current"}),
            **({} if number == (there or 1) else {"number": number}),
        }
        changed[name] = fields if number else None
    gone = sorted(set(present) - set(definitions)) if attrs.get("remove_orphans") else []
    for name in gone:
        drop += present[name].get("containers", [])
    if changed or gone:
        times = (attrs["timeout"], attrs["stop_timeout"])
        podman = sorted(drop) if engine == "podman" else []
        return [up(words(attrs), project, changed, attrs.get("services") or [], attrs["pull"], podman, gone, *times)]
    triggered = bool(node.triggers and world.triggered_by) and not world.acted
    return [_change(attrs, "restart", ours)] if triggered else []


def _same(entry: records.Fields, digest: str) -> bool:
    return entry.get("hashes") == [digest] and not entry.get("foreign")


def _change(attrs: records.Attrs, verb: str, services: Sequence[str]) -> Action:
    return change(words(attrs), verb, attrs["name"], list(services), attrs["stop_timeout"])


def remember(node: HostNode, world: World) -> ComposeMemory:
    """Record which services had containers."""
    engines.require(world, node.attrs["engine"])
    return {"services": sorted(compose_services.of(world, node.attrs["engine"], node.attrs["name"]))}


def undo(node: HostNode, memory: ComposeMemory, world: World) -> ActionSpec:
    """Remove the containers of a project that the node created. Volumes stay."""
    attrs, project, was = node.attrs, node.attrs["name"], memory["services"]
    engines.require(world, attrs["engine"])
    present = compose_services.of(world, attrs["engine"], project)
    if attrs.get("absent"):
        return ActionSpec(left=[f"the compose project {project} is not restored"] if was and not present else [])
    if not present:
        return ActionSpec()
    if was:
        return ActionSpec(left=[f"the compose project {project} stays: it existed before"])
    if any(compose_services.is_foreign(entry, attrs.get("directory")) for entry in present.values()):
        return ActionSpec(left=[f"the compose project {project} stays: others created some of its containers"])
    for path in files(attrs):
        if world.stat(path) is None:
            raise CheckError(f"{path} does not exist, so the project {project} can't be removed; restore it")
    return ActionSpec([_change(attrs, "down", sorted(present))])
