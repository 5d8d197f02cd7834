"""The answers that debconf stores for the questions of packages: read them, set them, and restore them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Node
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import apt, records

PROGRAM = "/usr/bin/debconf-set-selections"
ANSWERS, PASSWORDS = "/var/cache/debconf/config.dat", "/var/cache/debconf/passwords.dat"
HIDDEN = "(a password)"  # in the facet, instead of its value
_FIELD = re.compile(r"^(Name|Value|Flags): ?(.*)$", re.M)


@table("debconf", volatile=True)
def debconf(host: World) -> dict[str, records.Fields]:
    """Load the answers: question → `value`, and `unseen` if a package may still ask. Values of passwords are hidden."""
    loaded = {question: {"value": HIDDEN} for question in stored(host, PASSWORDS)}
    for question, (value, seen) in stored(host, ANSWERS).items():
        loaded[question] = {"value": value, **({} if seen else {"unseen": True})}
    return loaded


def stored(world: World, path: str) -> dict[str, tuple[str, bool]]:
    """Return the answers in a file of debconf: question → value, and whether it is marked as seen."""
    if world.stat(path) is None:
        return {}
    found = {}
    for paragraph in world.read(path).decode("utf-8", "replace").split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        if fields.get("Name"):
            value = fields.get("Value", "").replace("\\n", "\n")
            found[fields["Name"]] = (value, "seen" in fields.get("Flags", "").split(", "))
    return found


@op(turn="apt")
def answer(machine: Machine, package: str, answers: dict[str, str], passwords: Sequence[str] = ()) -> Result:
    """Store answers, and mark the questions as seen.

    :param passwords: the questions for passwords
    """
    rows = []
    for question, value in sorted(answers.items()):
        kind = "password" if question in passwords else "string"
        rows.append("%s %s %s %s\n" % (package, question, kind, value.replace("\\", "\\\\").replace("\n", "\\n")))
    effect = {
        "debconf": {
            question: {"value": "(a new password)" if question in passwords else value, "unseen": None}
            for question, value in answers.items()
        }
    }
    return machine.run([PROGRAM], effect, input="".join(rows).encode(), env=apt.QUIET, timeout=300.0)


@op(turn="apt")
def restore_answers(machine: Machine, package: str, commands: list[str], gone: Sequence[str]) -> Result:
    """Give debconf commands such as ``UNREGISTER`` and ``FSET``; debconf-devel(7) describes them.

    :param gone: the questions that do not exist afterwards
    """
    text = "".join(command + "\n" for command in commands)
    effect = {"debconf": dict.fromkeys(gone), "unknown": [] if gone else ["debconf"]}
    argv = ["debconf-communicate", package]
    return machine.run(argv, effect, input=text.encode(), env=apt.QUIET, timeout=300.0)


def check(node: Node, nodes: Mapping[str, Node], world: World) -> list[Action]:
    """Compare the stored answers.

    :raises CheckError: if the host has no debconf
    """
    attrs = node.attrs
    if world.settled(PROGRAM) and world.stat(PROGRAM) is None:
        raise CheckError("%s does not exist: statecfg answers questions of Debian packages only" % PROGRAM)
    passwords = list(attrs.get("passwords") or ())
    known = world.table("debconf")
    wrong = {
        question: value
        for question, value in attrs["answers"].items()
        if question not in passwords and not _says(known.get(question), value)
    }
    if passwords and not installed(world, attrs["package"]):
        former = stored(world, PASSWORDS)
        new = {question: attrs["answers"][question] for question in passwords}
        wrong.update((question, value) for question, value in new.items() if former.get(question) != (value, True))
    return [answer(attrs["package"], wrong, [name for name in passwords if name in wrong])] if wrong else []


def _says(entry: records.Fields | None, value: str) -> bool:
    """Return whether a question has this answer, and no package will ask it again."""
    return entry is not None and entry.get("value") == value and not entry.get("unseen")


def installed(world: World, package: str) -> bool:
    """Return whether the package is installed, so that it has read its passwords."""
    return "version" in (world.entry("packages", package) or {})


def remember(node: Node, world: World) -> records.DebconfMemory:
    """Record the former answers, except passwords."""
    known = world.table("debconf")
    return {"answers": {question: known.get(question) for question in node.attrs["answers"]}}


def undo(node: Node, memory: records.DebconfMemory, world: World) -> ActionSpec:
    """Restore the former answers, and remove the questions that did not exist."""
    package, known = node.attrs["package"], world.table("debconf")
    commands: list[str] = []
    gone: list[str] = []
    back: dict[str, str] = {}
    left: list[str] = []
    for question, was in sorted(memory["answers"].items()):
        now = known.get(question)
        if was is None:
            if now is not None:
                commands.append("UNREGISTER " + question)
                gone.append(question)
        elif was["value"] == HIDDEN:
            if not installed(world, package):
                left.append("the former password of %s was not recorded: it keeps the new one" % question)
        elif now is None or now["value"] != was["value"]:
            back[question] = was["value"]
        elif was.get("unseen") and not now.get("unseen"):
            commands.append("FSET %s seen false" % question)
    actions: list[Action] = [answer(package, back)] if back else []
    # A restored answer counts as seen until the mark is restored, too.
    commands += ["FSET %s seen false" % question for question in back if memory["answers"][question].get("unseen")]
    if commands:
        actions.append(restore_answers(package, commands, gone))
    return ActionSpec(actions, left=left)
