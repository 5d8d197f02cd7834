"""What is wrong with what the user wrote, as values: found here, placed there, all of it shown at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from statecfg.problems import tokens
from statecfg.problems.positions import SourceLocation

__all__ = [
    "CODES",
    "InvalidInput",
    "Problem",
    "SourceLocation",
    "collecting",
    "going_on",
    "problem",
    "report",
    "suggest",
]

LISTED = 8  # valid names that a help text lists

# code → (summary, what it means). Hundreds: 1 declarations and graphs, 2 values, 3 YAML and templates,
# 4 inventory and command line, 5 Python and Hy, 6 hooks, 7 services. `docs/errors.md` is made from this table.
CODES: dict[str, tuple[str, str]] = {
    "SC0101": ("unknown attribute", "A node was given an attribute that its type does not have."),
    "SC0102": ("missing attribute", "A required attribute or argument of a node was not given."),
    "SC0103": ("attribute given twice", "An attribute was given by position and by name, or in two spellings."),
    "SC0104": ("too many arguments", "A node was given more positional arguments than its type takes."),
    "SC0105": ("wrong requirement", "What stands in requires or restart_on is neither a name, a node nor a graph."),
    "SC0106": ("unknown node type", "There is no node type of that name in resources/."),
    "SC0107": ("attributes contradict each other", "Each attribute is right, but the type refuses them together."),
    "SC0108": ("wrong name", "The name of a node is empty, too long or holds characters that names can't have."),
    "SC0109": ("not a graph", "Something other than a graph was merged or returned."),
    "SC0110": ("duplicate name", "Two different nodes have the same name."),
    "SC0111": ("missing requirement", "A node requires a name that no node of the graph has."),
    "SC0112": ("a node requires itself", "A node stands in its own requirements."),
    "SC0113": ("circular requirements", "Nodes require each other in a circle, so none of them can come first."),
    "SC0114": ("two nodes for the same thing", "Two nodes describe the same file, user, package or other real thing."),
    "SC0115": ("graph too large", "The graph has more nodes or more layers than statecfg handles."),
    "SC0116": ("node can't be prepared", "What a node needs on the controller is missing or wrong."),
    "SC0117": ("value can't be sent", "A node's attribute is not made of text, numbers, lists, maps and content."),
    "SC0118": (
        "file can't be read",
        "A file that a node names is missing, unreadable, no file, or outside the project.",
    ),
    "SC0119": ("wrong node type", "The definition of a node type is itself wrong."),
    "SC0120": ("node type defined twice", "The project's resources/ holds a node type of a name that exists already."),
    "SC0121": ("nodes contradict each other", "Two nodes describe what can't both be true of the host."),
    "SC0201": ("wrong type of value", "An attribute's value is of another type than the node type asks for."),
    "SC0202": ("wrong value", "An attribute's value is of the right type, but not one that is allowed."),
    "SC0301": ("file can't be read", "A playbook, inventory or template is missing, unreadable or no regular file."),
    "SC0302": ("file too large", "A YAML file is larger than 16 MB."),
    "SC0303": ("empty file", "A YAML file holds nothing but white space and comments."),
    "SC0304": ("several documents", "A YAML file holds more than one document."),
    "SC0305": ("limit exceeded", "A YAML file nests too deeply, or holds or expands to too many values."),
    "SC0306": ("duplicate key", "A map of a YAML file has a key twice; other readers let the later one win."),
    "SC0307": ("wrong alias", "An alias of a YAML file names no anchor, or stands inside what it names."),
    "SC0308": ("wrong key", "A key of a YAML map is no text, or a merge key."),
    "SC0309": ("ambiguous value", "An unquoted value that YAML's versions and readers take for different things."),
    "SC0310": ("wrong shape", "A YAML value is a map, a list or a single value where another of these belongs."),
    "SC0311": ("unknown key", "A YAML map has a key that means nothing there."),
    "SC0312": ("tag refused", "A YAML file uses a tag that is not ours, or one of ours where it means nothing."),
    "SC0313": ("not plain UTF-8", "A file has a byte order mark, another encoding, or characters that YAML forbids."),
    "SC0314": ("git conflict marker", "A file holds the markers of a merge that was never finished."),
    "SC0315": ("not YAML", "A file breaks YAML's syntax."),
    "SC0316": ("wrong entry", "An entry of resources: names no node type, or several."),
    "SC0317": ("include loop", "A file includes itself, directly or through others."),
    "SC0318": ("wrong condition", "The expression of a when: gives neither true nor false."),
    "SC0319": ("wrong loop", "The expression of a for_each: gives neither a list nor a map."),
    "SC0320": ("template can't be parsed", "A template breaks Jinja's syntax."),
    "SC0321": ("undefined name", "A template uses a variable, attribute or key that does not exist."),
    "SC0322": ("template failed", "A template raised an error, or did what templates must not."),
    "SC0323": ("template limit exceeded", "A template ran longer than 5 seconds or made more than 16 MB."),
    "SC0401": ("wrong host name", "A host, group or address holds characters that it can't have."),
    "SC0402": ("circular groups", "Groups of the inventory hold each other in a circle."),
    "SC0403": ("one name for a host and a group", "A pattern with that name could mean either."),
    "SC0404": ("unknown host or group", "The inventory or a pattern names a host or group that does not exist."),
    "SC0405": ("wrong host setting", "A setting of a host in the inventory has a value that it can't have."),
    "SC0406": ("no host matches", "A pattern or limit selects no host at all."),
    "SC0407": ("wrong pattern", "A host pattern has an empty term or a regular expression that can't be parsed."),
    "SC0408": ("groups disagree", "Two groups of a host, none inside the other, give a variable different values."),
    "SC0410": ("wrong settings file", "The project's statecfg.toml can't be parsed, or a setting has a wrong value."),
    "SC0411": ("unknown setting", "The project's statecfg.toml has a setting that does not exist."),
    "SC0412": ("anyone could change this file", "A settings file is writable by every user, so it is not trusted."),
    "SC0413": ("wrong store address", "What names the store is neither a path nor a URL of a kind that we know."),
    "SC0420": ("secret not available", "The environment variable or file that holds a secret is missing."),
    "SC0421": ("secret too short", "A secret has fewer than 4 characters, so it can't be masked in output."),
    "SC0422": ("wrong secret", "A secret's declaration is wrong, or two secrets of one name differ."),
    "SC0423": (
        "secret lost in a text",
        "A text operation changed, cut or encoded what stands for a secret in a text, or wrote its mask in its place.",
    ),
    "SC0424": ("variable that nothing reads", "The command line sets a variable that the playbook does not have."),
    "SC0425": ("secret in a name", "A name, argument, path, tag or host contains a secret. Everyone can read these."),
    "SC0430": ("saved plan can't be used", "A saved plan is damaged, was edited, or can't be read or written."),
    "SC0431": ("no resource has this tag", "None of the tags asked for is on any resource of the chosen hosts."),
    "SC0432": (
        "saved plan is stale",
        "A saved plan was made from other inputs than those of this project, or by another version (exit 6).",
    ),
    "SC0440": (
        "picture can't be drawn",
        "A PNG needs the library Pillow, and a size that programs can show; SVG needs neither.",
    ),
    "SC0450": (
        "can't be served like this",
        "An address can't be listened on, is open to other machines without TLS, or its certificate can't be used.",
    ),
    "SC0451": ("too few open files", "The process may not open as many files as the hosts at once need."),
    "SC0452": ("no usable key", "No key of a host can be used, and no SSH agent is running."),
    "SC0501": (
        "can't be parsed",
        "A Hy or Python file breaks the language's syntax; brackets are told by their opener.",
    ),
    "SC0502": ("wrong use of a macro", "A Hy macro was given parts that it can't use."),
    "SC0503": ("undefined name", "A Hy or Python file uses a name that nothing defines."),
    "SC0504": (
        "exception in the definition",
        "A Hy or Python file raised an exception; the last of its own lines comes first.",
    ),
    "SC0505": ("not for a definition", "A Hy or Python file leaves the program or asks for input."),
    "SC0506": ("module or name can't be imported", "A Hy or Python file imports what is not there, on this machine."),
    "SC0507": ("took too long", "A Hy or Python file ran longer than 60 seconds."),
    "SC0508": ("wrong arguments", "A function in a Hy or Python file was called with arguments that it does not take."),
    "SC0510": ("no play", "A playbook defines no play, so it says nothing about any host."),
    "SC0511": ("declared and not returned", "A play declares a node that is no part of the graph it returns."),
    "SC0512": ("wrong play", "A play lacks its hosts, or has an option that plays don't have."),
    "SC0513": ("two plays of one name", "Two plays of a playbook have the same name."),
    "SC0514": ("unknown variable", "A play uses a variable that nothing sets."),
    "SC0515": ("not a playbook", "A playbook's name ends in none of .hy, .py, .yml and .yaml."),
    "SC0516": ("not for hosts", "A node type's file uses what the Python of hosts, 3.8 or newer, does not have."),
    "SC0601": (
        "others could change this",
        "A hook's file or directory can be changed by other users, so it is not run.",
    ),
    "SC0602": ("missing part of a hook", "The registration of a hook lacks something that it must have."),
    "SC0603": ("wrong value in a hook", "The registration of a hook has a value that can't stand there."),
    "SC0604": ("unknown event", "A hook is registered for an event that never happens."),
    "SC0605": ("wrong duration", "A duration is not written as ISO 8601 has it, or is not one that is allowed."),
    "SC0606": ("wrong hook address", "The address of an HTTP hook is missing, contradicts itself or can't be used."),
    "SC0607": ("two hooks of one name", "Two hooks of the project have the same name, but for upper and lower case."),
    "SC0608": ("unknown capability", "An HTTP hook is registered with a capability that there is not, or with none."),
    "SC0609": ("wrong child from a hook", "An HTTP hook returned children that the host's graph can't be made of."),
    "SC0610": ("hook's child not found", "The registration of a hook names a child that several nodes could be."),
    "SC0620": ("unknown hook type", "There is no directory of that name, ending in .hook, on the hook path."),
    "SC0621": (
        "wrong hook type",
        "The configuration.yaml of a hook type can't be read as the keys of its configuration.",
    ),
    "SC0622": ("wrong hook configuration", "A hook's configuration does not fit the keys that its type has."),
    "SC0623": ("hook exists already", "There is a hook of that name, and it is not the same."),
    "SC0624": ("unknown hook", "There is no hook of that name."),
    "SC0625": ("wrong hook name", "The name of a hook is empty, too long or holds characters that it can't have."),
    "SC0650": (
        "no Full Control",
        "Hooks may be passed by with --no-hooks only by who has Full Control of every one of them.",
    ),
    "SC0651": ("hook too large", "The files of a hook type that runs on hosts are too large to be sent to each."),
    "SC0701": ("wrong service name", "The name of a service is too long, or not one that units can have."),
    "SC0702": ("two services of one name", "Two services of a playbook have the same name."),
    "SC0703": ("wrong charm", "A charm's directory is missing, holds no hooks, or one of its files can't be used."),
    "SC0704": ("charm too large", "The files of a charm are more than 64 MiB, or more than 10,000."),
    "SC0705": ("hook not executable", "The file of a hook has no permission to be executed."),
    "SC0706": ("hook that never runs", "The name of a hook's file is none that hooks have, but for a slip of the pen."),
    "SC0707": ("wrong option", "An option of a service's schema has another type, default or key than it can have."),
    "SC0708": ("unknown setting", "A service is given a setting that its schema does not have."),
    "SC0709": ("wrong value of a setting", "A setting's value is of another type than its option, or too large."),
    "SC0710": ("secret in the wrong place", "A secret stands where it could be read, or a plain text for a secret."),
    "SC0711": ("wrong relation", "A relation is not written as two ends SERVICE:RELATION, or one for peers."),
    "SC0712": ("unknown service", "A relation names a service that the playbook does not have."),
    "SC0713": ("unknown end of a relation", "The metadata.yaml of a charm has no relation of that name."),
    "SC0714": ("ends do not fit", "The two ends of a relation have different interfaces, or the same part in it."),
    "SC0715": ("relation declared twice", "A playbook has the same relation twice."),
    "SC0716": ("wrong service", "A part of a service's declaration is of the wrong kind, or does not belong there."),
    "SC0750": ("no such service", "The project has no service of that name: it was never applied, or is destroyed."),
    "SC0751": ("service of another playbook", "Another playbook of the project has a service of that name."),
    "SC0752": ("no such unit", "The service has no unit of that number: it was never made, or is gone."),
    "SC0753": ("no such relation", "The project has no relation between these two ends."),
    "SC0754": ("no host for a unit", "A unit was asked for without a host, and the service has none."),
    "SC0801": ("refused", "What is asked of an entity, its type or a behavior is wrong, or not allowed as things are."),
    "SC0802": ("no such thing", "There is no type, entity, behavior or token of that name, or several have it."),
    "SC0803": ("changed meanwhile", "An entity was changed by somebody else since it was read."),
    "SC0804": ("wrong file of an entity", "A file or standard input holds no mapping in JSON or YAML."),
    "SC0805": ("wrong behavior", "The execution of a behavior is not one that can be run."),
    "SC0806": ("host not allowed", "A playbook selects a host that the `hosts` of its behavior do not include."),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    :param code: ``SC`` and four digits, a key of `CODES`
    :param summary: short and fixed for the code
    :param detail: what is wrong here, and why
    :param help: what to do; "" where there is nothing to say
    :param places: where, the main one first
    """

    code: str
    summary: str
    detail: str
    help: str = ""
    places: tuple[SourceLocation, ...] = ()

    def __str__(self) -> str:
        text = f"error[{self.code}]: {self.summary}: {self.detail}"
        text += "".join(f"\n  --> {place}" for place in self.places)
        return text + (f"\n  help: {self.help}" if self.help else "")


class InvalidInput(Exception):
    """What the user wrote is wrong; `problems` says all of it. Anything else that escapes is our own mistake."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[list[Problem]]]:
        return InvalidInput, (self.problems,)


class StalePlan(InvalidInput):
    """A saved plan does not fit what is here: it was made from something else. Nothing was touched (exit 6)."""


class _Found(list[Problem]):
    """Problems in the order they were found, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[Problem] = set()

    def add(self, item: Problem) -> None:
        if item not in self.known:
            self.known.add(item)
            self.append(item)


_FOUND: ContextVar[_Found | None] = ContextVar("found problems", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[Problem]]:
    """Gather the problems reported inside, so that evaluation goes on and all are shown at once."""
    found = _Found()
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


class _GoingOn:
    def __enter__(self) -> None:
        pass

    # It returns a plain bool, which tells type checkers that what stands inside may be left in the middle.
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, InvalidInput):
            return False
        if _FOUND.get() is None:
            return False
        report(*error.problems)
        return True


def going_on() -> _GoingOn:
    """Report what is raised inside, so that what comes after is looked at as well, where problems are collected."""
    return _GoingOn()


def problem(code: str, detail: str, help: str = "", *places: SourceLocation) -> Problem:
    """Return a problem with the summary of its code. Raises KeyError for a code that is not in `CODES`."""
    return Problem(code, CODES[code][0], tokens.masked(detail), tokens.masked(help), tuple(dict.fromkeys(places)))


def report(*found: Problem) -> None:
    """Add problems to those being collected; raise InvalidInput where nobody is collecting."""
    if not found:
        return
    gathered = _FOUND.get()
    if gathered is None:
        raise InvalidInput(found)
    for item in found:
        gathered.add(item)


def suggest(name: str, valid: Iterable[str], what: str = "it may be") -> str:
    """Return a help text: the valid name that was probably meant, and up to eight that there are.

    :param name: what was written
    :param valid: the names that would have been right, in the order to list them
    :param what: the words before the list
    """
    names = list(valid)
    close = nearest(name, names)
    shown = [item for item in names[:LISTED] if item not in close]
    meant = f"did you mean {' or '.join(f'`{item}`' for item in close)}?" if close else ""
    if not shown:
        return meant
    listed = f"{what}: {', '.join(shown)}" + (", …" if len(names) > LISTED else "")
    return f"{meant} ({listed})" if meant else listed


def suggest_file(path: str | os.PathLike[str]) -> str:
    """Return a help text for a file that does not exist: the names beside it that were probably meant, "" for none."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        there = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return ""
    close = nearest(name, there)
    return f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else ""


def clipped(name: str, most: int = 100) -> str:
    """Return a name as messages show it: at most `most` characters of it."""
    return name if len(name) <= most else f"{name[: most - 31]}…{name[-30:]}"


def nearest(name: str, names: Iterable[str], distance: int = 2, most: int = 2) -> list[str]:
    """Return the names at most `distance` slips of the keyboard away, nearest first."""
    limit = min(distance, max(1, len(name) // 2))
    folded, pieces = name.lower(), _pieces(name.lower(), limit + 1)
    found = []
    for candidate in names:
        other = candidate.lower()
        if abs(len(other) - len(folded)) <= limit and any(piece in other for piece in pieces):
            found.append((slips(folded, other, limit), candidate))
    return [candidate for far, candidate in sorted(found) if far <= limit][:most]


def _pieces(name: str, count: int) -> list[str]:
    # Of count pieces, count - 1 slips leave one whole; transposed letters may spoil two, so allow the empty piece.
    size = len(name) // count
    return [name[i * size : (i + 1) * size] for i in range(count)] if size > 1 else [""]


def slips(one: str, other: str, limit: int) -> int:
    """Return how many letters were added, left out, changed or swapped; limit + 1 where there are more."""
    start, end = 0, 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if max(len(one), len(other)) > 4 * limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, there in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return min(row[-1], limit + 1)
