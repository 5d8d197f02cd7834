"""Where the text of a host would become code: in shells, in rules of programs, and as options of programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrsistent import PVector

from statecfg.graph.code_files import DATA, RULES, SHELL, TEXTS, language
from statecfg.graph.host_item_rules import ACTIONS, REMOTE, SHELLS, WRAPPERS
from statecfg.graph.host_text import HostText, harmful
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.wrong_values import show

CODE = "SC0524"
# Attributes that programs run or read as rules, of all types. A type declares more of them, see `reads_as_code`.
_EVERYWHERE = frozenset(
    ("shell", "script", "scripts", "unless", "onlyif", "undo", "command", "directives", "sections", "interpreter",
     "validate")
)  # fmt: skip
# Attributes with the arguments of a program.
_COMMANDS = frozenset(("argv", "args", "command", "unless", "onlyif", "undo", "validate"))
# Attributes whose whole text is a command for a shell.
_COMMAND_LINES = frozenset(("shell", "command", "unless", "onlyif", "undo"))
# Arguments of Ansible modules that are commands, or parts of them.
_OF_MODULES = frozenset(
    ("_raw_params", "argv", "cmd", "command", "executable", "free_form", "job", "script", "shell", "validate")
)
# Attributes whose text a shell runs, so that a part of it can be quoted.
_OF_SHELLS = frozenset((*_COMMAND_LINES, "argv", "script", "scripts"))
_PROSE = ("Description", "Documentation")  # settings of units
_STARTS = "Exec"  # begins the settings of units that name a program
_SHELL = "quote it: {{ … | quote }}; or pass it as a whole argument of `argv`, in `env` or in `stdin`"
_RULES = "use only facts that have the form which the program expects, such as numbers and addresses, or check them"
HELP = {"shell": _SHELL, "script": _SHELL, "command": _SHELL, "scripts": _SHELL, "unless": _SHELL, "undo": _SHELL}


def problems(node_type: str, attrs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the attribute, what is wrong and what to do for each text of a host that would become code.

    :param node_type: the name of the node's type
    :param attrs: its attributes, as they are declared
    """
    for name, value in attrs.items():
        found = _problem(node_type, name, value, attrs)
        if found:
            yield name, found, HELP.get(name, _SHELL if name == "argv" else _RULES)


def _problem(node_type: str, name: str, value: Any, attrs: Mapping[str, Any]) -> str:
    """Return what is wrong with the texts of hosts in an attribute, "" if nothing is."""
    if name in ("when_host", "for_each_host"):
        found = next((text for argv in _commands(value) for text in _in_arguments(argv)), "")
        return found.replace("`argv`", f"a command of `{name}`")
    if name == "arguments" and isinstance(value, Mapping):
        return next(filter(None, (_problem("", "command", inner, {}) for inner in commands_in(name, value))), "")
    if isinstance(value, (list, tuple, PVector)) and name in _COMMANDS and name not in _rules(node_type):
        program = attrs.get("pathname") or attrs.get("entrypoint")
        argv = [program, *value] if isinstance(program, str) and name in ("args", "command") else [*value]
        if all(isinstance(one, str) for one in argv):
            return next(_in_arguments(argv), "")
    if name in _COMMAND_LINES and isinstance(value, HostText) and value.whole and value:
        return f"{show(value)} in `{name}` as the program"
    how = _language(node_type, name, attrs)
    if name == "value" and isinstance(value, str) and "key" in attrs:
        value = "=" + value  # it does not begin a script
    text = _harmful(value, how) if how != DATA else ""
    return f"{show(text)} in `{name}`, which a program runs or reads as rules" if text else ""


def _commands(value: Any) -> Iterator[Sequence[str]]:
    """Yield the commands in the conditions or the list of a node."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "command" and isinstance(inner, (list, tuple, PVector)):
                yield [*inner]
            else:
                yield from _commands(inner)
    elif isinstance(value, (list, tuple, PVector)):
        for inner in value:
            yield from _commands(inner)


def commands_in(attribute: str, value: Any) -> list[Any]:
    """Return the commands in the arguments of a module."""
    arguments = value if attribute == "arguments" and isinstance(value, Mapping) else {}
    return [inner for key, inner in arguments.items() if key in _OF_MODULES]


def is_code(node_type: str, attribute: str, attrs: Mapping[str, Any]) -> bool:
    """Return whether programs run or read as rules what an attribute of a node contains.

    :param attrs: all attributes of the node
    """
    return _language(node_type, attribute, attrs) != DATA


def _language(node_type: str, attribute: str, attrs: Mapping[str, Any]) -> str:
    """Return the kind of an attribute of a node, see `code_files.language`."""
    if attribute in _rules(node_type):
        return RULES
    if attribute in _EVERYWHERE:
        return SHELL if attribute in _OF_SHELLS else RULES
    return language(attrs) if attribute in TEXTS else DATA


def _rules(node_type: str) -> frozenset[str]:
    """Return the attributes that the type of a node declares as code."""
    return REGISTRY[node_type].code if node_type in REGISTRY else frozenset()


def _harmful(value: Any, how: str) -> str:
    """Return a string of a host in an attribute, also in lists and maps; "" if there is none.

    :param how: how programs read it
    """
    if isinstance(value, Mapping):
        found = _harmful([*value, *(item for key, item in value.items() if key not in _PROSE)], how)
        return found or next(
            filter(None, (_program(item) for key, item in value.items() if str(key).startswith(_STARTS))), ""
        )
    if isinstance(value, (list, tuple, PVector)):
        return next(filter(None, (_harmful(item, how) for item in value)), "")
    if isinstance(value, (Blob, bytes)):
        data = Blob.of(value).data
        return harmful(data.decode("utf-8", "replace"), how) if data is not None else ""
    return harmful(value, how)


def _program(value: Any) -> str:
    """Return a whole text of a host in a setting that names programs; "" if there is none."""
    if isinstance(value, (list, tuple, PVector)):
        return next(filter(None, map(_program, value)), "")
    return value if isinstance(value, HostText) and value.whole else ""


def _in_arguments(argv: Sequence[str]) -> Iterator[str]:
    """Yield the problems with the texts of hosts in the arguments of a program."""
    ended, shell = False, -1
    for number, argument in enumerate(argv):
        word = argument.rpartition("/")[2].rstrip("0123456789.")
        part = harmful(argument)
        own = isinstance(argument, HostText) and argument.whole
        if number == 0 and (own or part):
            yield f"{show(argument)} in `argv` as the program"
        elif part and shell >= 0 and (word in SHELLS or argv[number - 1].startswith("-")):
            yield f"{show(part)} in `argv` as code for {argv[shell]}"
        elif part and any(one.rpartition("/")[2] in REMOTE for one in argv[:number]):
            yield f"{show(part)} in `argv`, whose program reads arguments as code"
        elif part and argument.startswith("-") and argument.startswith(part) and not ended:
            yield f"{show(part)} in `argv` as an option; write `--` before it"
        elif own and number and _starts(argv, number):
            yield f"{show(argument)} in `argv` as the program that {argv[number - 1]} starts"
        ended = ended or argument == "--"
        shell = number if shell < 0 and word in SHELLS else shell


def _starts(argv: Sequence[str], number: int) -> bool:
    """Return whether an argument is the program that the program before it starts."""
    before = argv[number - 1]
    return before in ACTIONS or WRAPPERS.get(before.rpartition("/")[2]) == 0
