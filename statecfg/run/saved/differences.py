"""Describes the differences between the inputs of a saved plan and the current ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from statecfg.playbook.inventory import Inventory
from statecfg.playbook.project import Project
from statecfg.problems import InvalidInput, StalePlan, inputs, problem
from statecfg.problems.inputs import Inputs
from statecfg.remote.graph.names import HostStatus
from statecfg.run.report_model import HostData
from statecfg.run.saved import digests
from statecfg.run.saved.model import DefinitionDigests, InventoryData, SavedPlan

AGAIN = "plan again, review the plan, and apply it: statecfg plan PLAYBOOK --out FILE"
FACT = "fact "  # a difference between facts begins with this
MOST = 50  # maximum number of differences to show
CHANGED = "has changed since the plan was made"


def stale(name: str, differences: Sequence[str], help: str = AGAIN) -> StalePlan:
    """Return the error for a plan that is no longer valid.

    :param name: the plan's name in messages
    :param differences: the differences
    :param help: what the user should do
    """
    lines = [f"≠ {text}" for text in differences[:MOST]]
    lines += [f"… and {len(differences) - MOST:,} more"] if len(differences) > MOST else []
    return StalePlan([problem("SC0432", "\n".join([f"{name} was made from other inputs:", *lines]), help)])


def of_project(plan: SavedPlan, project: Project) -> list[str]:
    """Return the difference between a plan's project and this one; a list of at most one."""
    name = project.name
    if plan["project"] != name:
        return [
            f"project: the plan belongs to `{plan['project']}`, and {project.root} is "
            + (f"`{name}`" if name else "none")
        ]
    if not (project.root / plan["playbook"]).is_file():
        return [f"playbook {plan['playbook']}: {project.root} has no such file"]
    return []


def of_files(plan: SavedPlan, project: Project, moved: Mapping[str, Path]) -> list[str]:
    """Return how a plan's input files differ from the current ones, without executing any of them.

    :param moved: path in the plan → current path, for files outside the project
    """
    differences = []
    for item in plan["inputs"]:
        path = moved.get(item["path"]) or project.root / item["path"]
        now = inputs.digest(path)
        if now != item["sha256"]:
            what = CHANGED if now else f"{path} can't be read" if os.path.lexists(path) else f"{path} does not exist"
            differences.append(f"{_named(item['kind'], item['path'])}: {what}")
    return differences


def of_inputs(plan: SavedPlan, project: Project, read: Inputs, moved: Mapping[str, Path]) -> list[str]:
    """Return how the files that were read now differ from those that were read for the plan.

    :param read: the files that were read now
    :param moved: path in the plan → current path, for files outside the project
    """
    moved_to = {str(path): name for name, path in moved.items()}
    now = {moved_to.get(path) or project.relative(Path(path)): (category, sha256) for category, path, sha256 in read}
    before = {item["path"]: (item["kind"], item["sha256"]) for item in plan["inputs"]}
    unused = {path: category for path, (category, _) in before.items() if path not in now}
    differences = [f"{_named(category, path)}: is no longer used" for path, category in unused.items()]
    for path, (category, sha256) in now.items():
        if path not in before:
            differences.append(f"{_named(category, path)}: was not used when the plan was made")
        elif before[path][1] != sha256:
            differences.append(f"{_named(category, path)}: {CHANGED}")
    return differences


def _named(category: str, path: str) -> str:
    return f"{category} {path}"


def of_inventory(plan: SavedPlan, inventory: Inventory) -> list[str]:
    """Return how an inventory differs from the plan's inventory for the plan's hosts."""
    differences = []
    for name, host in plan["hosts"].items():
        try:
            (now,) = inventory.select(name)
        except InvalidInput:
            differences.append(f"{name}: is no longer in the inventory")
            continue
        differences += [f"{name}: {text}" for text in _of_host(host["inventory"], digests.of_host(now, plan["salt"]))]
    return differences


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
    differences = [f"secret `{name}`: is no longer used" for name in before if name not in secrets]
    for name, value in secrets.items():
        if name not in before:
            differences.append(f"secret `{name}`: was not used when the plan was made")
        elif not digests.is_secret(value, before[name]):
            differences.append(f"secret `{name}`: has another value than when the plan was made")
    return differences


def of_facts(planned: Mapping[str, str], used: Mapping[str, Any]) -> list[str]:
    """Return which facts have changed since the plan was made.

    :param planned: the result of `digests.of_facts` in the plan
    :param used: path of a fact → its current value
    """
    now = digests.of_facts(used)
    return [
        f"{FACT}{path}: planned {planned[path]}; now {text}"
        for path, text in now.items()
        if path in planned and planned[path] != text
    ]


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
    differences: dict[str, list[str]] = {}
    for name, host in plan["hosts"].items():
        if name not in now:
            differences[name] = ["the playbook no longer names this host"]
        elif without_plan(host["report"]):
            differences[name] = [without_plan(host["report"])]
        elif host["definition"] != now[name]["definition"]:
            differences[name] = _nodes(host["nodes"], now[name]["nodes"])
    return differences


def without_plan(report: HostData) -> str:
    """Return why a plan has no usable plan for a host; "" if it has one.

    :param report: the host's report in the plan
    """
    status = report["status"]
    if status == HostStatus.OK:
        return ""
    return _NO_PLAN.get(status, f"When the plan was made, its outcome was `{status}`.")


_NO_PLAN = {
    HostStatus.UNREACHABLE: "It could not be reached when the plan was made.",
    HostStatus.FAILED: "A check failed on it when the plan was made.",
    HostStatus.CANCELLED: "The planning run was stopped before it reached this host.",
    HostStatus.LOCKED: "Another run had locked it when the plan was made.",
}
BY_ITSELF = (
    "No input has changed: evaluating the playbook gave another result this time. It may use random values, the time, "
    "the environment, a file that it opens itself, or the order of a set."
)


def _nodes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changed = [name for name in before if name in now and before[name] != now[name]]
    differences = [f"{name}: its definition has changed" for name in changed]
    differences += [f"{name}: is no longer defined" for name in before if name not in now]
    differences += [f"{name}: was not defined when the plan was made" for name in now if name not in before]
    return differences or ["the order of its resources has changed"]
