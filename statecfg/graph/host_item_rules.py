"""What a node accepts in place of the items of `for_each_host`: found by trying texts on its type's own checks.

Hosts have no types of attributes. So the controller finds out which characters a node's attributes refuse, and hosts
refuse items that contain them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyrsistent import PVector, pvector

from statecfg.graph import host_items, validators
from statecfg.graph.code_files import DATA, TEXTS, language
from statecfg.graph.nodes import Node
from statecfg.graph.schema import TypedSchema
from statecfg.problems import InvalidInput, Problem, collecting, problem
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import Wrong

LENGTHS = (8, 16, 31, 32, 63, 64, 100, 128, 240, 255, 1024, 4000)
TRIED = "".join(map(chr, range(0x20, 0x7F))) + "é"
# Attributes that programs run or read as code.
CODE = frozenset(
    ("shell", "script", "scripts", "stdin", "unless", "onlyif", "undo", "command", "directives", "arguments",
     "sections", "contains", "match", "pattern", "failed_when", "interpreter", "validate")
)  # fmt: skip
# Attributes of single types that programs read as rules or code. A template becomes `content`.
RULES: Mapping[str, frozenset[str]] = {
    "sudoers": frozenset(("commands", "run_as", "content")),
    "systemd_unit": frozenset(("content",)),
    "quadlet": frozenset(("content",)),
    "authorized_key": frozenset(("restrictions",)),
}
# Programs that run, or pass on, an argument as code.
SHELLS = frozenset(
    ("ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "lua", "mksh", "node", "nodejs", "perl", "php", "pwsh",
     "python", "rbash", "rksh", "ruby", "sh", "tclsh", "tcsh", "yash", "zsh")
)  # fmt: skip
REMOTE = frozenset(
    ("ansible", "at", "awk", "batch", "ed", "emacs", "eval", "ex", "expect", "gawk", "gdb", "make", "mariadb", "mawk",
     "mysql", "nawk", "parallel", "psql", "rsh", "runuser", "script", "sed", "sqlite3", "ssh", "su", "tmux", "vi",
     "vim", "watch", "xargs")
)  # fmt: skip
# Programs that run the program in their arguments, and how many arguments come before it besides options.
WRAPPERS: Mapping[str, int] = {
    **dict.fromkeys(("chpst", "chroot", "chrt", "flock", "setarch", "softlimit", "taskset", "timeout"), 1),
    **dict.fromkeys(
        ("capsh", "catchsegv", "chronic", "command", "dbus-run-session", "doas", "env", "exec", "fakeroot", "firejail",
         "ionice", "ltrace", "nice", "nohup", "nsenter", "numactl", "pkexec", "prlimit", "setpriv", "setsid", "stdbuf",
         "strace", "sudo", "systemd-inhibit", "systemd-run", "time", "unshare", "valgrind", "xvfb-run"), 0,
    ),
}  # fmt: skip
ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))  # of find(1): a program follows


def of_node(
    schema: TypedSchema, options: Mapping[str, Any], template: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a node with what hosts need to make nodes of its items.

    :param options: the checked options
    :param template: the name of the node with samples
    :param values: the attributes with samples, as they are written
    :raises Wrong: if a program would run an item as code
    """
    spec = options[host_items.OPTION]
    conditions = options.get("when_host", ())
    own = [condition for condition in conditions if host_items.has_sample(condition)]
    rest = [condition for condition in conditions if not host_items.has_sample(condition)]
    for condition in own:
        if refused := next(code_with_items("when_host", condition), ""):
            raise Wrong(f"uses an item in {refused}", "write the item as a whole argument of a program")
    every = host_items.FIELDS[host_items.list_name_of(spec)]
    limits = {host_items.sample(field): _limits(field, schema, values, every) for field in every}
    more = {
        "samples": MappingProxyType(limits),
        **({"name": template} if host_items.has_sample(template) else {}),
        **({"when": pvector(own)} if own else {}),
    }
    found = {**options, host_items.OPTION: MappingProxyType({**spec, **more})}
    found.pop("when_host", None)
    return {**found, "when_host": pvector(rest)} if rest else found


def _limits(field: str, schema: TypedSchema, values: Mapping[str, Any], every: Sequence[str]) -> PVector[Any]:
    """Return the field, the characters that it must not contain, those that it must not begin with, and its length."""
    start = "/a" if field in host_items.PATHS else "a"
    own = {name: value for name, value in values.items() if field in host_items.samples(value)}
    if not own:
        return pvector([field, "", "", LENGTHS[-1]])
    texts = {name: host_items.sample(name) for name in every}

    def accepts(text: str) -> bool:
        return _accepts(schema, {**values, **host_items.replaced(own, {**texts, field: text})})

    inside = "".join(letter for letter in TRIED if letter != "/" and not accepts(f"{start}{letter}a"))
    inside += "/" if start == "a" and not accepts("a/a") else ""
    first = "" if start == "/a" else "".join(one for one in TRIED if one not in inside and not accepts(f"{one}a"))
    longest = max((size for size in LENGTHS if accepts(_long(start, size))), default=0)
    return pvector([field, inside, first, longest])


def _long(start: str, size: int) -> str:
    """Return a string of a certain length; a path has short names."""
    return "a" * size if start == "a" else ("/" + "a" * 99) * (size // 100) + "/" + "a" * (size % 100 or 1)


def _accepts(schema: TypedSchema, values: Mapping[str, Any]) -> bool:
    """Return whether the type of a node accepts attributes."""
    kept: dict[str, Any] = {}
    with collecting() as problems:
        try:
            for name, value in values.items():
                if name in schema.checks:
                    value = validators.apply(schema.checks[name], value)
                kept[name] = schema.fields[name].type.check(value)
            for name, default in schema.optional.items():
                if default is not None:
                    kept.setdefault(name, default)
            validate = schema.node_type.methods.get("validate")
            if validate is not None:
                validate(kept)
        except (ValueError, InvalidInput):
            return False
    return not problems


def code_with_items(name: str, value: Any) -> Iterator[str]:
    """Yield where an attribute contains an item that a program would run as code.

    :param name: the name of the attribute
    :param value: the attribute, with samples
    """
    if not host_items.has_sample(value):
        return
    code = name in CODE or name.endswith("Command")  # such as `ProxyCommand`
    if code and not (isinstance(value, (list, tuple, PVector))):
        yield f"`{name}`, which programs run or read as code"
    elif isinstance(value, (Blob, bytes)) and (Blob.of(value).data or b"").startswith(b"#!"):
        yield f"`{name}`, which is a script"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from code_with_items(key, inner)
    elif isinstance(value, (list, tuple, PVector)):
        if all(isinstance(inner, str) for inner in value):
            yield from _in_arguments(name, list(value))
        else:
            for inner in value:
                yield from code_with_items(name, inner)


def _in_arguments(name: str, argv: list[str]) -> Iterator[str]:
    """Yield where a list of arguments contains an item that is not one whole argument, or that a program runs."""
    shell = None  # the number of the first argument after a shell
    wrapper = None  # the number of the last wrapper
    command = name in ("argv", "when_host", *CODE)
    for number, argument in enumerate(argv):
        last = argument.rpartition("/")[2].rstrip("0123456789.")
        if host_items.has_sample(argument):
            if number == 0 and name in ("argv", *CODE):
                yield f"`{name}` as the program"
            elif command and host_items.replaced(argument, _NOTHING):
                yield f"`{name}` as a part of the argument {host_items.shown(argument)}"
            elif shell is not None and _is_code(argv[shell:number]):
                yield f"`{name}` as code for {argv[shell - 1]}"
            elif command and _begins_program(argv, number, wrapper):
                yield f"`{name}` where {argv[wrapper or 0]} may read its program"
        elif last in REMOTE and any(map(host_items.has_sample, argv[number + 1 :])):
            yield f"`{name}` as an argument of {last}, which reads arguments as code"
        elif shell is None and last in SHELLS:
            shell = number + 1
        elif last in WRAPPERS and _begins_program(argv, number, wrapper):
            wrapper = number


def _begins_program(argv: Sequence[str], number: int, wrapper: int | None) -> bool:
    """Return whether an argument may be the program that starts, or that a wrapper or find(1) starts.

    An argument after an option may be the option's value, unless the option is `--`.

    :param number: the number of the argument
    :param wrapper: the number of the last wrapper before it
    """
    if number == 0 or argv[number - 1] in ACTIONS:
        return True
    if wrapper is None:
        return False
    left, value = WRAPPERS[argv[wrapper].rpartition("/")[2]], False
    for argument in argv[wrapper + 1 : number]:
        option = argument[:1] == "-"
        if not option and not value and not re.match(r"[A-Za-z_]\w*=", argument):
            if not left:
                return False
            left -= 1
        value = option and argument != "--" and "=" not in argument
    return True


def _is_code(before: Sequence[str]) -> bool:
    """Return whether a shell reads its next argument as code or as a script.

    :param before: the arguments before it
    """
    return all(argument[:1] == "-" for argument in before) or before[-1][:1] == "-"


_NOTHING = dict.fromkeys(host_items.NAMES, "")


def problems_of(node: Node, attrs: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each item in the attributes of a node that a program would run as code.

    :param attrs: the attributes, as they are declared or as they are sent
    """
    declared = attrs is node.attrs or bool(node.attrs.get("template"))  # other attributes come from the node type
    rules = RULES.get(node.type, frozenset())
    program = attrs.get("pathname") if node.type == "process" else attrs.get("entrypoint")
    for name, value in attrs.items():
        found = list(code_with_items(name, value))
        if isinstance(program, str) and name in ("args", "command") and isinstance(value, (list, tuple, PVector)):
            found += _in_arguments("argv", [program, *value])
        sample = declared and not found and host_items.has_sample(value)
        if sample and (name in rules or (name in TEXTS and language({**node.attrs, **attrs}) != DATA)):
            found.append(f"`{name}`, which programs read as rules")
        for where in dict.fromkeys(found):
            detail = f"{node.provides} uses an item of the host in {where}"
            help_text = 'pass it in `env`, or as a whole argument: argv: [PROGRAM, --, "{{ host_item }}"]'
            if name in TEXTS:
                help_text = "write it into a file of data that the program reads, or list the values in the inventory"
            yield problem(host_items.CODE, detail, help_text, *node.positions)
