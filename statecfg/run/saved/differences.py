"""Describes the differences between the inputs of a saved plan and the current ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, StalePlan, inputs, problem
from statecfg.problems.inputs import Inputs
from statecfg.remote.graph.names import HostStatus
from statecfg.run.saved import digests
from statecfg.run.saved.model import DefinitionDigests, InventoryData, SavedPlan

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project

AGAIN = "plan again, read the plan, and apply the new one: statecfg plan PLAYBOOK --out FILE"
MOST = 50  # maximum number of differences to show
CHANGED = "has changed since the plan was made"


def stale(name: str, found: Sequence[str], help: str = AGAIN) -> StalePlan:
    """Return the error for a plan that is no longer valid.

    :param name: the plan's name in messages
    :param found: the differences
    :param help: what the user should do
    """
    shown = [f"≠ {text}" for text in found[:MOST]]
    shown += [f"… and {len(found) - MOST:,} more"] if len(found) > MOST else []
    return StalePlan([problem("SC0432", "\n".join([f"{name} was made from other inputs:", *shown]), help)])


def of_project(plan: SavedPlan, project: Project) -> list[str]:
    """Return the difference between a plan's project and this one; a list of at most one."""
    here = project.settings.name or project.root.name
    if plan["project"] != here:
        return [
            f"project: the plan is of `{plan['project']}`, and {project.root} is " + (f"`{here}`" if here else "none")
        ]
    if not (project.root / plan["playbook"]).is_file():
        return [f"playbook {plan['playbook']}: {project.root} has no such file"]
    return []


def of_files(plan: SavedPlan, project: Project, moved: Mapping[str, Path]) -> list[str]:
    """Return how a plan's input files differ from the current ones, without executing any of them.

    :param moved: path in the plan → current path, for files outside the project
    """
    found = []
    for each in plan["inputs"]:
        path = moved.get(each["path"]) or project.root / each["path"]
        now = inputs.digest(path)
        if now != each["sha256"]:
            what = CHANGED if now else f"{path} can't be read" if os.path.lexists(path) else f"there is no {path}"
            found.append(f"{_named(each['kind'], each['path'])}: {what}")
    return found


def of_inputs(plan: SavedPlan, project: Project, read: Inputs, moved: Mapping[str, Path]) -> list[str]:
    """Return how the files that were read now differ from those that were read for the plan.

    :param read: the files that were read now
    :param moved: path in the plan → current path, for files outside the project
    """
    there = {str(path): name for name, path in moved.items()}
    now = {there.get(path) or project.relative(Path(path)): (kind, sha256) for kind, path, sha256 in read}
    before = {each["path"]: (each["kind"], each["sha256"]) for each in plan["inputs"]}
    found = [f"{_named(kind, path)}: is not used any more" for path, (kind, _) in before.items() if path not in now]
    for path, (kind, sha256) in now.items():
        if path not in before:
            found.append(f"{_named(kind, path)}: was not used when the plan was made")
        elif before[path][1] != sha256:
            found.append(f"{_named(kind, path)}: {CHANGED}")
    return found


def _named(kind: str, path: str) -> str:
    return f"{kind} {path}"


def of_inventory(plan: SavedPlan, inventory: Inventory) -> list[str]:
    """Return how an inventory differs from the plan's inventory for the plan's hosts."""
    found = []
    for name, host in plan["hosts"].items():
        try:
            (now,) = inventory.select(name)
        except InvalidInput:
            found.append(f"{name}: is not in the inventory any more")
            continue
        found += [f"{name}: {text}" for text in _of_host(host["inventory"], digests.of_host(now, plan["salt"]))]
    return found


def _of_host(before: InventoryData, now: InventoryData) -> Iterable[str]:
    for key, value in now.items():
        if key != "vars" and before.get(key) != value:
            yield f"its {key.replace('_', ' ')} was {_value(before.get(key))} and is {_value(value)}"
    was, is_now = before.get("vars") or {}, now["vars"]
    for name in sorted({*was, *is_now}):
        if was.get(name) != is_now.get(name):
            how = "has changed" if name in was and name in is_now else "is new" if name in is_now else "is gone"
            yield f"its variable `{name}` {how}"


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value or "not set")


def of_secrets(plan: SavedPlan, secrets: Mapping[str, str]) -> list[str]:
    """Return which secrets are new, missing, or have a different value than when the plan was made.

    :param secrets: name → current value
    """
    before = plan["secrets"]
    found = [f"secret `{name}`: is not used any more" for name in before if name not in secrets]
    for name, value in secrets.items():
        if name not in before:
            found.append(f"secret `{name}`: was not used when the plan was made")
        elif not digests.is_secret(value, before[name]):
            found.append(f"secret `{name}`: has another value than when the plan was made")
    return found


def of_executor(plan: SavedPlan, now: str, version: str) -> list[str]:
    """Return the difference between the code for hosts then and now; a list of at most one.

    :param now: the current digest of the executor
    :param version: the version of statecfg
    """
    if plan["executor"] == now:
        return []
    return [
        f"statecfg: this {version} has other code for hosts than the {version} that made the plan "
        f"(executor {plan['executor'][:12]} then, {now[:12]} now)"
    ]


def of_definitions(plan: SavedPlan, now: Mapping[str, DefinitionDigests]) -> dict[str, list[str]]:
    """Return host → differences for the planned hosts to which the plan can't be applied.

    :param now: the current result of `digests.definitions`
    """
    found: dict[str, list[str]] = {}
    for name, host in plan["hosts"].items():
        status = host["report"]["status"]
        if name not in now:
            found[name] = ["the playbook does not name this host any more"]
        elif status != HostStatus.OK:
            found[name] = [_NO_PLAN.get(status, f"when the plan was made, its outcome was `{status}`")]
        elif host["definition"] != now[name]["definition"]:
            found[name] = _nodes(host["nodes"], now[name]["nodes"])
    return found


_NO_PLAN = {
    HostStatus.UNREACHABLE: "it could not be reached when the plan was made",
    HostStatus.FAILED: "a check failed on it when the plan was made",
    HostStatus.CANCELLED: "the planning run was stopped before this host had its turn",
    HostStatus.LOCKED: "another run held it when the plan was made",
}
BY_ITSELF = (
    "No input has changed: the playbook itself gives another result this time. It may use random values, the time, the "
    "environment, a file that it opens itself, or the order of a set."
)


def _nodes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    found = [f"{name}: its definition has changed" for name in before if before[name] != now.get(name, before[name])]
    found += [f"{name}: is not defined any more" for name in before if name not in now]
    found += [f"{name}: was not defined when the plan was made" for name in now if name not in before]
    return found or ["the order of its resources has changed"]
