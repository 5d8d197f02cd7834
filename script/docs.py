"""Generate the reference from the code: node types, commands, exit codes, limits, errors. `script/docs` runs this."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "script")]

import click  # noqa: E402  # the line above lets the imports below find the package without an installation
from built_in_types import table as built_in_types  # noqa: E402  # as above
from documented_limits import LIMITS  # noqa: E402  # as above

from statecfg import resources  # noqa: E402  # as above
from statecfg.cli import exit_codes, main, options  # noqa: E402  # as above
from statecfg.editors import stubs  # noqa: E402  # as above
from statecfg.facts import catalogue  # noqa: E402  # as above
from statecfg.graph import schema  # noqa: E402  # as above
from statecfg.problems import CODES  # noqa: E402  # as above
from statecfg.templates.filters import FILTERS, TESTS  # noqa: E402  # as above
from tests.unit.resources.coverage import page as coverage  # noqa: E402  # as above

REFERENCE = ROOT / "docs/reference"
MADE_STUB = "# Made from the code by script/docs: the node types in Hy, for type checkers."
MADE = "<!-- Made from the code by script/docs. -->\n"

EXIT_CODES = {
    "DONE": "success: nothing failed",
    "FAILED": "a resource or a hook failed",
    "PENDING": "changes are pending (`verify`, or with `--detailed-exitcode`)",
    "UNKNOWN": "an outcome is unknown: a step started, and statecfg did not see how it ended",
    "UNREACHABLE": "statecfg could not reach a host",
    "BAD_INPUT": "invalid input, such as a playbook, an inventory or an option; statecfg changed nothing",
    "STALE": "statecfg refused a saved plan: its inputs, a host or the version of statecfg differ from the plan",
    "LOCKED": "another run holds the lock of a host",
    "STORE": "statecfg can't use the controller's store, or the store failed; see [store](../store.md)",
    "HANGUP": "stopped by SIGHUP: the terminal or the connection was closed",
    "TERMINATED": "stopped by SIGTERM",
    "INTERRUPTED": "interrupted, or you answered the question with no",
    "UNWRITTEN": "the hosts are done, but statecfg could not write the report, for example because the disk is full",
    "BROKEN_PIPE": "the program that read the output has ended",
}

ELSEWHERE = {
    "NO_COLOR": "no colors",
    "FORCE_COLOR": "colors, even if the output is not a terminal",
    "CI": "statecfg asks no questions",
    "STATECFG_INVENTORY_ENV": "names of further variables, separated by commas, that programs which print inventories "
    "receive",
    "STATECFG_STATE_DIR": "on hosts: the absolute path of the state directory, with the executor, the lock and the "
    "ledger. The executor creates it. Tests and the demo set it so that they don't use the machine's own ledger",
    "XDG_STATE_HOME": "on hosts, for users other than root: the parent of the state directory `statecfg/`, which "
    "contains the executor, the lock and the ledger (default `~/.local/state`; root uses `/var/lib/statecfg`)",
    "XDG_CACHE_HOME": "on the controller: the parent of the directory `statecfg/`, which keeps the executor's source "
    "prepared for hosts (default `~/.cache`)",
    "STATECFG_CHILD": "set by the executor in the programs that it starts, to find processes that they leave running",
    "STATECFG_HOOK": "set in the programs of exec hooks; if such a program runs statecfg, that statecfg does not wait "
    "for hooks",
    "STATECFG_BEHAVIOR": "set in the processes of behaviors, to find and end those that a killed server left running",
}


def markdown(text: str) -> str:
    """Return the reStructuredText of a docstring as Markdown, with single backquotes instead of double ones."""
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.S)


def cell(text: str) -> str:
    """Return a string as a cell of a table."""
    return markdown(text).replace("|", "\\|").replace("\n", " ")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines) + "\n"


# Node types


def node_types() -> str:
    """Return the page of node types."""
    names = resources.available()
    parts = [
        f"{MADE}# Node types\n\nThe built-in node types: {', '.join(f'[{name}](#{name})' for name in names)}.\n\n"
        "Call a node type with its arguments in order and its attributes by name. In Hy, you can write `-` for `_`.\n"
        "How to write a node type: [in Python](../writing-a-node-type.md), [in Hy](../writing-a-node-type-in-hy.md).\n",
        "## Every node\n\n" + table(("option", "value", "meaning"), [*OPTIONS]),
    ]
    parts += [node_type(name) for name in names]
    return "\n".join(parts)


OPTIONS = [
    ("`provides`", "a name", "the name of the node (default: `type:argument`)"),
    ("`requires`", "a list of names or nodes", "nodes that must be processed before this one"),
    ("`restart_on`", "a list of names or nodes", "requirements that trigger this node when they change"),
    ("`tags`", "a list of strings", "tags for `--tags`, which selects nodes and their requirements"),
    ("`protect`", "true or false", "true: no run removes the resource after the node has left the definition"),
    ("`take_over`", "true or false", "true: the node manages its object even if another playbook manages it"),
    (
        "`allow_lockout`",
        "true or false",
        "true: the node may take away [the login that statecfg uses](../security.md#the-login-of-statecfg)",
    ),
    (
        "`when_host`",
        "a condition, or a list of them",
        "[what must be true on the host](../playbooks.md#decisions-on-the-host) for the node to do anything there",
    ),
    (
        "`for_each_host`",
        "a list that the host makes",
        "[repeats the node](../playbooks.md#a-node-for-each-item-on-the-host) for each item that the host finds",
    ),
]


def node_type(name: str) -> str:
    """Return the section of one node type."""
    declared = getattr(resources, name)
    given = schema.of(declared)
    rows = []
    for field in given.fields.values():
        if field.name in given.required:
            default = "argument" if field.name in given.arguments else "required"
        else:
            value = given.optional.get(field.name)
            default = "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"
        expects = "" if field.type.expects == "anything" else cell(field.type.expects)
        rows.append((f"`{field.name}`", expects, default, cell(field.doc)))
    text, examples = prose(inspect.cleandoc(declared.__doc__ or ""))
    if declared.overwriting:
        text += f"\nThe undo overwrites changes of others: {declared.overwriting}.\n"
    return f"## {name}\n\n{text}\n" + table(("attribute", "value", "default", "meaning"), rows) + examples


def prose(doc: str) -> tuple[str, str]:
    """Return the paragraphs of a docstring without its parameters, and its examples as code blocks."""
    text: list[str] = []
    examples: list[str] = []
    for part in re.split(r"\n\n(?=\S)", doc):
        example = re.match(r"In (\w+)::\n\n?(.*)", part, re.S)
        if example:
            code = inspect.cleandoc("\n" + example[2])
            examples.append(f"\n```{example[1].lower()}\n{code}\n```\n")
        elif not part.startswith(":param"):
            text.append(markdown(part.strip()) + "\n")
    return "\n".join(text), "".join(examples)


# Command line


def command_line() -> str:
    """Return the page of commands."""
    overview = table(("command", "what it does"), [(f"[`{v}`](#{v})", cell(t)) for v, (_, t) in main.VERBS.items()])
    parts = [
        f"{MADE}# Command line\n",
        overview,
        "`statecfg --help` prints an overview, `statecfg COMMAND --help` describes a command.\nstatecfg writes data to "
        "stdout and progress to stderr. If the output is not a terminal, it prints plain lines and asks no\n"
        "questions. See also the [exit codes](exit-codes.md).\n",
    ]
    parts += [command(verb) for verb in main.VERBS]
    return "\n".join([*parts, environment()])


def command(verb: str) -> str:
    """Return the section of one command."""
    found = main.statecfg.get_command(click.Context(main.statecfg), verb)
    assert found is not None
    if verb == "check":
        return "## check\n\nAn alias of [plan](#plan).\n"
    return "\n".join(sections(found, verb, "##"))


def sections(found: click.Command, verb: str, mark: str) -> Iterator[str]:
    """Yield the sections of a command and of its subcommands."""
    yield section(found, verb, mark)
    for name, below in found.commands.items() if isinstance(found, click.Group) else ():
        yield from sections(below, f"{verb} {name}", f"{mark}#" if len(mark) < 4 else mark)


def section(found: click.Command, verb: str, mark: str) -> str:
    """Return the section of one command: usage, description, options, examples."""
    context = click.Context(found, info_name=f"statecfg {verb}")
    usage = found.get_usage(context).removeprefix("Usage: ")
    text = f"{mark} {verb}\n\n    {' '.join(usage.split())}\n\n{inspect.cleandoc(found.help or '')}\n"
    rows = [option(item) for item in found.params if isinstance(item, click.Option)]
    if rows:
        text += "\n" + table(("option", "meaning", "environment"), rows)
    if isinstance(found, options.Command | options.VerbGroup) and found.examples:
        text += f"\n```console\n{found.examples.strip()}\n```\n"
    return text


def option(item: click.Option) -> tuple[str, str, str]:
    """Return the row of an option."""
    names = ", ".join(f"`{name}`" for name in item.opts)
    value = "" if item.is_flag or item.count else " " + (item.metavar or choices(item)).replace("|", "\\|")
    return names + value, cell(item.help or ""), f"`{item.envvar}`" if item.envvar else ""


def choices(item: click.Option) -> str:
    """Return the choices or the type of an option that has no metavar."""
    return "|".join(item.type.choices) if isinstance(item.type, click.Choice) else item.type.name.upper()


def environment() -> str:
    """Return the section about the environment."""
    rows = [(f"`{name}`", cell(text)) for name, text in ELSEWHERE.items()]
    return (
        "## Environment\n\nThe tables above name the environment variables that set options. The command line "
        "overrides them.\nstatecfg also reads or sets these variables:\n\n" + table(("variable", "meaning"), rows)
    )


# Exit codes, limits, errors


def exit_code_page() -> str:
    """Return the page of exit codes."""
    values = {name: value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    missing = sorted(set(values) - set(EXIT_CODES))
    if missing:
        raise SystemExit(f"script/docs.py does not describe the exit codes {', '.join(missing)}")
    rows = [(f"`{value}`", EXIT_CODES[name]) for name, value in values.items()]
    worst = ", ".join(str(code) for code in exit_codes.WORST_FIRST)
    return (
        f"{MADE}# Exit codes\n\n{table(('code', 'meaning'), rows)}\n"
        f"If several of these apply, for example on different hosts, the exit code is the first of: {worst}.\n"
    )


def limits() -> str:
    """Return the page of limits."""
    rows = []
    for module, name, what, unit in LIMITS:
        value = getattr(import_module(module), name)
        rows.append((what, f"{value:,.0f} {unit}".strip()))
    return (
        f"{MADE}# Limits\n\nIf a limit is exceeded, statecfg refuses the data with a message or says what it left out. "
        f"It never truncates data silently.\n\n{table(('what', 'limit'), rows)}"
    )


# for each page of errors: the third digit of its codes
AREAS = {
    "nodes": "12",
    "yaml-and-templates": "3",
    "inventory-and-command-line": "4",
    "python-and-hy": "5",
    "hooks": "6",
    "services": "7",
    "entities": "8",
}


def errors() -> str:
    """Return the index of errors."""
    parts = [
        f"{MADE}# Errors\n\nEach kind of error in a playbook, an inventory or a template has a code. statecfg reports "
        "all errors at once, before it\ncontacts any host. Each error shows its location and how to fix it. The exit "
        "code is 5. The page of each code shows an\nexample and its fix. For messages about connections, see "
        "[Troubleshooting SSH](troubleshooting-ssh.md).\n"
    ]
    for page, digits in AREAS.items():
        text = (ROOT / f"docs/errors/{page}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# Errors: ")
        rows = [
            (f"[{code}](errors/{page}.md#{code.lower()}-{slug(summary)})", summary, cell(meaning))
            for code, (summary, meaning) in CODES.items()
            if code[3] in digits
        ]
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n{table(('code', 'error', 'meaning'), rows)}")
    return "\n".join(parts)


def slug(heading: str) -> str:
    """Return the anchor that code hosts give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def template_filters() -> str:
    """Return the page of filters and tests of templates."""
    parts = [
        f"{MADE}# Filters and tests of templates\n\nTemplates can use [all filters and tests of Jinja2]"
        "(https://jinja.palletsprojects.com/en/stable/templates/#list-of-builtin-filters) except\n`random`, and those "
        "below. They give the same results as in Ansible. They don't read files, the clock or random numbers, so a\n"
        "template gives the same result in the plan and in the apply. A filter of a [secret](../secrets.md) returns a "
        "secret.\n"
    ]
    for title, functions in (("Filters", FILTERS), ("Tests", TESTS)):
        rows = [
            (f"`{name}{_arguments(function)}`", cell(prose(inspect.getdoc(function) or "")[0].strip()))
            for name, function in functions.items()
        ]
        parts.append(f"## {title}\n\n{table((title[:-1].lower(), 'result'), sorted(rows))}")
    return "\n".join(parts)


def _arguments(function: Any) -> str:
    """Return the arguments of a filter after its input, as in a call."""
    names = [
        f"*{item.name}" if item.kind is item.VAR_POSITIONAL else item.name
        for item in list(inspect.signature(function).parameters.values())
        if item.kind is not item.VAR_KEYWORD
    ]
    names = names if names[:1] and names[0].startswith("*") else names[1:]
    return f"({', '.join(names)})" if names else ""


def facts_page() -> str:
    """Return the page of facts."""
    parts = [
        f"{MADE}# Facts\n\nWhat definitions can read as `host.facts`; see [Facts](../playbooks.md#facts).\n"
        "`statecfg facts HOST --record FILE` writes the values of a host.\n",
        table(("fact", "type", "meaning"), facts_rows(catalogue.Facts)),
    ]
    for name, cls in vars(catalogue).items():
        if catalogue.is_record(cls) and cls is not catalogue.Facts:
            about = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]
            parts.append(f"## {name}\n\n{about}\n\n{table(('field', 'type', 'meaning'), facts_rows(cls))}")
    return "\n".join(parts)


def facts_rows(cls: Any) -> list[tuple[str, ...]]:
    """Return the rows of a class of the catalogue of facts."""
    described = catalogue.described(cls)
    fields = catalogue.fields_of(cls).items()
    return [(f"`{name}`", catalogue.type_name(hint), cell(described[name])) for name, hint in fields]


def index() -> str:
    """Return the index page."""
    return f"""{MADE}# Reference

- [Node types](node-types.md): every node type and attribute
- [Command line](command-line.md): every command, option and environment variable
- [Facts](facts.md): everything that `host.facts` contains
- [Filters and tests of templates](template-filters.md)
- [Exit codes](exit-codes.md)
- [Report](../report.md): the output of `--json`
- [Errors](../errors.md): every error code, with an example and its fix
- [Limits](limits.md)

`script/docs` generates these pages from the code, except the report. A test checks that they are up to date.
"""


def stub() -> str:
    """Return the stub of the node types in Hy, from which type checkers learn their attributes."""
    names = [path.stem for path in (ROOT / "resources").rglob("*.hy")]
    return stubs.module([getattr(resources, name) for name in names], MADE_STUB)


def made() -> dict[Path, str]:
    """Return every generated page by its path."""
    return {
        REFERENCE / "README.md": index(),
        REFERENCE / "node-types.md": node_types(),
        REFERENCE / "command-line.md": command_line(),
        REFERENCE / "facts.md": facts_page(),
        REFERENCE / "template-filters.md": template_filters(),
        REFERENCE / "exit-codes.md": exit_code_page(),
        REFERENCE / "limits.md": limits(),
        ROOT / "docs/errors.md": errors(),
        ROOT / "docs/coverage.md": coverage.text(),
        ROOT / "resources/_hy.pyi": stub(),
        ROOT / "resources/index/types.py": built_in_types(ROOT / "resources"),
    }


def changed(pages: dict[Path, str]) -> Iterator[Path]:
    """Write the pages that are out of date, and yield their paths."""
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield path


def run() -> Any:
    """Write the pages that are out of date and print their paths."""
    for path in changed(made()):
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    run()
