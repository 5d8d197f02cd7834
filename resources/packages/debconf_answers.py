"""The answers that debconf stores for the questions of packages: read them, set them, and restore them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_manager
from statecfg.resources.packages.managers.apt import apt_settings
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class DebconfMemory(TypedDict):
        """The memory of a `debconf`: question → its entry in the facet `debconf`; None if there was none."""

        answers: dict[str, records.Fields | None]


PROGRAM = "/usr/bin/debconf-set-selections"
ANSWERS, PASSWORDS = "/var/cache/debconf/config.dat", "/var/cache/debconf/passwords.dat"
HIDDEN = "(a password)"  # in the facet, instead of its value
_FIELD = re.compile(r"^(Name|Value|Flags): ?(.*)$", re.M)


@facet("debconf", volatile=True)
def debconf(host: World) -> dict[str, records.Fields]:
    """Load the answers: question → `value`, and `unseen` if a package may still ask. Values of passwords are hidden."""
    loaded: dict[str, records.Fields] = {question: {"value": HIDDEN} for question in stored(host, PASSWORDS)}
    for question, (value, seen) in stored(host, ANSWERS).items():
        loaded[question] = {"value": value, **({} if seen else {"unseen": True})}
    return loaded


def stored(world: World, path: str) -> dict[str, tuple[str, bool]]:
    """Return the answers in a file of debconf: question → value, and whether it is marked as seen.

    A line break in a value is ``\\n``, as in the input of debconf-set-selections.
    """
    if world.stat(path) is None:
        return {}
    found = {}
    for paragraph in world.read(path).decode("utf-8", "replace").split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        if fields.get("Name"):
            found[fields["Name"]] = (fields.get("Value", ""), "seen" in fields.get("Flags", "").split(", "))
    return found


@op(mutex="apt")
def answer(machine: Machine, package: str, answers: dict[str, str], passwords: dict[str, str]) -> Result:
    """Store answers and passwords, and mark the questions as seen."""
    rows = []
    for question_type, values in (("string", answers), ("password", passwords)):
        for question, value in sorted(values.items()):
            one_line = value.replace("\n", "\\n")  # older ledgers have line breaks in former answers
            rows.append(f"{package} {question} {question_type} {one_line}\n")
    shown = {**answers, **dict.fromkeys(passwords, "(a new password)")}
    effect = {"debconf": {question: {"value": value, "unseen": None} for question, value in shown.items()}}
    return machine.run([PROGRAM], effect, input="".join(rows).encode(), env=apt_settings.QUIET, timeout=300.0)


@op(mutex="apt")
def restore_answers(machine: Machine, package: str, commands: list[str], gone: Sequence[str]) -> Result:
    """Give debconf commands such as ``UNREGISTER`` and ``FSET``; debconf-devel(7) describes them.

    :param gone: the questions that do not exist afterwards
    """
    text = "".join(command + "\n" for command in commands)
    effect = {"debconf": dict.fromkeys(gone), "unknown": [] if gone else ["debconf"]}
    argv = ["debconf-communicate", package]
    # 10: a question does not exist, because the removal of the package also removed it.
    return machine.run(argv, effect, input=text.encode(), env=apt_settings.QUIET, timeout=300.0, codes=(0, 10))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the stored answers.

    :raises CheckError: if the host has no debconf, or it can't store an answer
    """
    attrs = node.attrs
    if world.is_known(PROGRAM) and world.stat(PROGRAM) is None:
        raise CheckError(f"{PROGRAM} does not exist: statecfg answers questions of Debian packages only")
    known, passwords = world.facet("debconf"), attrs.get("passwords") or {}
    for question, value in {**(attrs.get("answers") or {}), **passwords}.items():
        if _continues(value):
            text = "debconf-set-selections can't store the answer to %s: a backslash at its end continues the line"
            raise CheckError(text % question)
    wrong = {name: value for name, value in (attrs.get("answers") or {}).items() if not _says(known.get(name), value)}
    if passwords:
        former = stored(world, PASSWORDS)
        needed = not installed(world, attrs["package"])
        passwords = {name: value for name, value in passwords.items() if needed and former.get(name) != (value, True)}
    return [answer(attrs["package"], wrong, passwords)] if wrong or passwords else []


def _says(entry: records.Fields | None, value: str) -> bool:
    """Return whether a question has this answer, and no package will ask it again."""
    return entry is not None and entry.get("value") == value and not entry.get("unseen")


def _continues(value: str) -> bool:
    """Return whether debconf-set-selections would append the next line to this value: it knows no escapes."""
    return value.endswith("\\")


def installed(world: World, package: str) -> bool:
    """Return whether the package is installed, so that it has read its passwords."""
    return "version" in (world.entry(package_manager.packages.name, package) or {})


def remember(node: HostNode, world: World) -> DebconfMemory:
    """Record the former answers, except passwords."""
    known = world.facet("debconf")
    names = [*(node.attrs.get("answers") or ()), *(node.attrs.get("passwords") or ())]
    return {"answers": {question: known.get(question) for question in names}}


def undo(node: HostNode, memory: DebconfMemory, world: World) -> ActionSpec:
    """Restore the former answers, and remove the questions that did not exist."""
    package, known = node.attrs["package"], world.facet("debconf")
    commands: list[str] = []
    unseen: list[str] = []
    gone: list[str] = []
    back: dict[str, str] = {}
    left: list[str] = []
    for question, was in sorted(memory["answers"].items()):
        now = known.get(question)
        made = (node.attrs.get("answers") or {}).get(question)
        present = now["value"] if now is not None else None
        if made is not None and present not in (None, made, was["value"] if was is not None else None):
            left.append(undoing.stays(f"the answer to {question}", present))
        elif was is None:
            if now is not None:
                commands.append("UNREGISTER " + question)
                gone.append(question)
        elif was["value"] == HIDDEN:
            if not installed(world, package):
                left.append(f"the former password of {question} was not recorded: it keeps the new one")
        elif now is None or now["value"] != was["value"]:
            if _continues(was["value"]):
                left.append(f"the former answer to {question} ends with a backslash, so it can't be restored")
                continue
            back[question] = was["value"]
            unseen += [question] if was.get("unseen") else []
        elif was.get("unseen") and not now.get("unseen"):
            unseen.append(question)
    actions: list[Action] = [answer(package, back, {})] if back else []
    # A restored answer counts as seen until the mark is restored, too.
    commands += [f"FSET {question} seen false" for question in unseen]
    if commands:
        actions.append(restore_answers(package, commands, gone))
    return ActionSpec(actions, left=left)
