"""Makes the reference from the code: node types, command line, exit codes, limits, errors; `script/docs` starts it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click  # noqa: E402  # the line above lets the imports below find the package without an installation

from statecfg import resources  # noqa: E402
from statecfg.cli import exit_codes, main, options  # noqa: E402
from statecfg.graph import schema  # noqa: E402
from statecfg.problems import CODES  # noqa: E402

REFERENCE = ROOT / "docs/reference"
MADE = "<!-- Made from the code by script/docs. -->\n"

EXIT_CODES = {
    "DONE": "done; nothing failed",
    "FAILED": "a resource failed",
    "PENDING": "changes are pending (only with `--detailed-exitcode`)",
    "UNKNOWN": "an outcome is unknown: something was started, and its end was never seen",
    "UNREACHABLE": "a host could not be reached",
    "BAD_INPUT": "bad input: a playbook, an inventory, an option; nothing was touched",
    "STALE": "a saved plan was made from other inputs than there are now, or a host is not as it says; it was refused",
    "LOCKED": "another run holds a host",
    "STORE": "the controller's store can't be used, or failed; see [store](../store.md)",
    "HANGUP": "stopped by SIGHUP: the terminal or connection is gone",
    "TERMINATED": "stopped by SIGTERM",
    "INTERRUPTED": "interrupted, or the question was answered with no",
    "UNWRITTEN": "the hosts are done, and the report could not be written: a full disk, for example",
    "BROKEN_PIPE": "whoever read the output is gone",
}

# module, name, what it limits, unit
LIMITS = (
    ("statecfg.graph.graph", "MAX_LAYERS", "depth of a graph: layers of nodes that wait for each other", ""),
    ("statecfg.graph.graph", "MAX_NODES", "nodes of one host's graph", ""),
    ("statecfg.graph.types", "MAX_DEPTH", "lists and maps inside each other in an attribute", ""),
    ("statecfg.playbook.user_code", "DEADLINE", "time for loading or evaluating a Hy or Python playbook", "s"),
    ("statecfg.dialects.yaml_text", "MAX_BYTES", "size of a YAML file", "bytes"),
    ("statecfg.dialects.yaml_text", "MAX_DEPTH", "lists and maps inside each other in a YAML file", ""),
    ("statecfg.dialects.yaml_text", "MAX_NODES", "values of a YAML file", ""),
    ("statecfg.dialects.yaml_text", "MAX_ALIASED", "values that a YAML file's aliases stand for", ""),
    ("statecfg.dialects.yaml_entries", "MAX_INCLUDES", "includes inside each other", ""),
    ("statecfg.run.saved.plan_file", "LARGEST", "size of a saved plan", "bytes"),
    ("statecfg.playbook.project", "LARGEST", "size of a statecfg.toml", "bytes"),
    ("statecfg.store.sqlite", "BUSY", "time to wait for another writer of the store", "s"),
    ("statecfg.store.turns", "LEASE", "time after which a turn in PostgreSQL that nobody renews is free", "s"),
    ("statecfg.store.runs", "KEPT", "runs whose history the store keeps", ""),
    ("statecfg.playbook.secrets", "SHORTEST", "least characters of a secret", ""),
    ("statecfg.playbook.secrets", "LARGEST", "size of a secret's file", "bytes"),
    ("statecfg.remote.graph.values", "MAX_PATH", "size of a path", "bytes"),
    ("statecfg.remote.graph.values", "MAX_NAME", "size of a name in a path", "bytes"),
    ("statecfg.remote.wire.frames", "INLINE", "content that travels inside its node; hosts ask for larger", "bytes"),
    ("statecfg.remote.wire.frames", "CONTROL_LIMIT", "one frame's header", "bytes"),
    ("statecfg.remote.wire.frames", "BODY_LIMIT", "one frame's content", "bytes"),
    ("statecfg.remote.wire.frames", "NOISE", "what a chatty login shell may print before the executor speaks", "bytes"),
    ("statecfg.remote.run.report", "WHOLE", "report of a host as JSON; later nodes lose differences and logs", "bytes"),
    ("statecfg.store.runs", "LARGEST", "one host's report in the store; larger ones are kept without details", "bytes"),
    ("statecfg.remote.machine.changes", "DIFFED", "size of a file up to which a difference is shown", "bytes"),
    ("statecfg.remote.machine.changes", "DIFF_LINES", "lines of one difference", ""),
    ("statecfg.remote.run.execution", "WORKERS", "nodes of a layer under way at once on a host", ""),
    ("statecfg.run.host_session", "BEAT", "time between heartbeats", "s"),
    ("statecfg.run.listening", "DEAD", "silence after which a host is taken for gone", "s"),
    ("statecfg.run.listening", "START", "time from the start of the executor to its first word", "s"),
    ("statecfg.run.host_session", "PATIENCE", "time without news but heartbeats, beside what nodes may take", "s"),
    ("statecfg.run.listening", "VOLUME", "what one host may send, output of programs not counted", "bytes"),
    ("statecfg.run.listening", "MEMORY", "memory on the controller that the report of one host may take", "bytes"),
    ("statecfg.run.listening", "NODE", "memory added to that for each node that the host was sent", "bytes"),
    ("statecfg.run.listening", "FRAME", "memory for decoding one frame of a host; one is decoded at a time", "bytes"),
    ("statecfg.run.frames", "FACTS", "memory for the facts of a host", "bytes"),
    ("statecfg.run.frames", "HOOK", "memory for what one hook says, and for the resource that it is told of", "bytes"),
    ("statecfg.run.frames", "SETTINGS", "memory for the settings that one hook of a unit changes", "bytes"),
    ("statecfg.run.frames", "ARGUMENTS", "memory for the arguments of an action and each side of a change", "bytes"),
    ("statecfg.run.strict", "DEPTH", "levels of nesting in facts, hook output and settings from a host", ""),
    ("statecfg.remote.wire.frames", "DEPTH", "levels of nesting in one frame", ""),
    ("statecfg.units.inbox", "FRAMES", "frames about units that wait for the controller, of one host", ""),
    ("statecfg.units.inbox", "MEMORY", "memory that these may take", "bytes"),
    ("statecfg.run.outbox", "MOST", "answers that wait for a host before it may ask for more about units", "bytes"),
    ("statecfg.run.outbox", "LATEST", "time in which it has to read them", "s"),
    ("statecfg.transport.limits", "MAX_PACKET", "one SSH packet", "bytes"),
    ("statecfg.transport.limits", "MAX_BEFORE_LOGIN", "what a server may send before login", "bytes"),
    ("statecfg.transport.identities", "MAX_OFFERS", "keys offered to a server", ""),
    ("statecfg.transport.route", "MAX_HOPS", "hosts to go through on the way to a host", ""),
    ("statecfg.hooks.exchange", "CONNECT", "time for connecting to an HTTP hook", "s"),
    ("statecfg.hooks.exchange", "MAX_REDIRECTS", "redirects of an HTTP hook, all within its host", ""),
    ("statecfg.hooks.http_hooks", "MAX_REPLY", "answer of an HTTP hook", "bytes"),
    ("statecfg.hooks.http_hooks", "MAX_ERROR", "what is read of an HTTP hook's error", "bytes"),
    ("statecfg.problems.durations", "DEFAULT_TIMEOUT", "time for one call of an HTTP hook that gives no timeout", "s"),
    ("statecfg.hooks.registration", "HTTP_DEADLINE", "time for all tries of an HTTP hook that gives no deadline", "s"),
    ("statecfg.hooks.registration", "DEADLINE", "time for a program that is a hook and gives no deadline", "s"),
    ("statecfg.problems.durations", "LONGEST", "longest deadline of a hook", "s"),
    ("statecfg.hooks.held", "LARGEST", "characters of a text that an HTTP hook is sent; else its digest", ""),
    ("statecfg.views.markdown", "LIMIT", "characters of a Markdown report", ""),
    ("statecfg.run.charms", "MAX_BYTES", "files of a charm", "bytes"),
    ("statecfg.run.charms", "MAX_FILES", "number of a charm's files", ""),
    ("statecfg.run.declared", "LARGEST", "settings of a service, as JSON", "bytes"),
    ("statecfg.playbook.services", "TIMEOUT", "time for a unit's hook where its service gives none", "s"),
    ("statecfg.units.coordinator", "MOST", "times that a unit's hook runs about one other unit in a run", ""),
    ("statecfg.remote.units.unit_context", "MOST", "what a unit's hook changes in all, as JSON", "bytes"),
    ("statecfg.remote.units.unit_hooks", "MOST", "what a unit's hook may say in all", "bytes"),
    ("statecfg.remote.units.unit_hooks", "HELD", "time for which the output of processes left by a hook is read", "s"),
    ("statecfg.remote.units.unit_agent", "MOST", "connections to a unit's socket at a time", ""),
    ("statecfg.entities.behaviors", "TIMEOUT", "time for a behavior that gives none", "s"),
    ("statecfg.entities.tasks", "LEASE", "time after which the task of a worker that fell silent is another's", "s"),
    ("statecfg.entities.functions", "LARGEST", "result of a behavior", "bytes"),
    ("statecfg.entities.work", "DETAILS", "details of a task, the newest", "characters"),
    ("statecfg.server.running", "PATIENCE", "time in which a request's headers have to arrive", "s"),
    ("statecfg.entities.webhook", "LARGEST", "answer of a behavior's webhook", "bytes"),
    ("statecfg.entities.calls", "LARGEST_PAGE", "objects on one page of the API's lists", ""),
    ("statecfg.entities.schemas", "LARGEST", "schema of an entity type", "bytes"),
    ("statecfg.entities.patterns", "WORK", "work of looking for a schema's patterns in an entity", "s"),
    ("statecfg.entities.payload", "LARGEST", "what the template of a webhook makes", "characters"),
)  # fmt: skip

ELSEWHERE = {
    "NO_COLOR": "no colours",
    "FORCE_COLOR": "colours, also where the output is no terminal",
    "CI": "nobody is asked anything",
    "STATECFG_STATE_DIR": "on hosts: the absolute path of the directory for the executor, the lock and the ledger; the "
    "executor creates it. Tests and the demo use it to keep apart from the machine's own ledger",
    "XDG_STATE_HOME": "on hosts, for users other than root: where the executor, the lock and the ledger are kept, in "
    "`statecfg/` (default `~/.local/state`; root's place is `/var/lib/statecfg`)",
    "STATECFG_CHILD": "set by the executor in the programs it starts, so that it finds what they leave running",
    "STATECFG_HOOK": "set in the programs of exec hooks: a statecfg that such a one starts waits for no hook",
    "STATECFG_BEHAVIOR": "set in the processes of behaviors, so that those of a killed server are found and ended",
}


def markdown(text: str) -> str:
    """Return a docstring's reStructuredText as Markdown: double backquotes become single ones."""
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.S)


def cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return markdown(text).replace("|", "\\|").replace("\n", " ")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines) + "\n"


# Node types


def node_types() -> str:
    """Return the page of node types."""
    names = resources.available_in(str(ROOT / "resources"))
    parts = [
        f"{MADE}# Node types\n\nWhat can be described: {', '.join(f'[{name}](#{name})' for name in names)}.\n\n"
        "A node type is called with its arguments, in order, and its attributes by name. In Hy, `-` stands for `_`.\n"
        "How to write one: [in Python](../writing-a-node-type.md), [in Hy](../writing-a-node-type-in-hy.md).\n",
        "## Every node\n\n" + table(("option", "value", "meaning"), [*OPTIONS]),
    ]
    parts += [node_type(name) for name in names]
    return "\n".join(parts)


OPTIONS = [
    ("`provides`", "a name", "the node's name; `type:argument` where it is not given"),
    ("`requires`", "a list of names or nodes", "what has to come first"),
    ("`restart_on`", "a list of names or nodes", "requirements whose change makes this node act as well"),
    ("`tags`", "a list of texts", "for `--tags`, which picks nodes and what they require"),
    ("`protect`", "true or false", "true: no run removes the node once it has left the definition"),
]


def node_type(name: str) -> str:
    """Return the section of one node type."""
    kind = getattr(resources, name)
    given = schema.of(kind)
    rows = []
    for field in given.fields.values():
        if field.name in given.required:
            default = "argument" if field.name in given.arguments else "required"
        else:
            value = given.optional.get(field.name)
            default = "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"
        expects = "" if field.type.expects == "anything" else cell(field.type.expects)
        rows.append((f"`{field.name}`", expects, default, cell(field.doc)))
    text, examples = prose(inspect.cleandoc(kind.__doc__ or ""))
    return f"## {name}\n\n{text}\n" + table(("attribute", "value", "default", "meaning"), rows) + examples


def prose(doc: str) -> tuple[str, str]:
    """Return a docstring's paragraphs, and its examples as blocks of code; parameters are left out."""
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
        "`statecfg --help` gives the overview, `statecfg COMMAND --help` all about a command. Data goes to stdout, "
        "progress to stderr.\nWhere the output is no terminal there are plain lines and no question. "
        "Exit codes are on [their own page](exit-codes.md).\n",
    ]
    parts += [command(verb) for verb in main.VERBS]
    return "\n".join([*parts, environment()])


def command(verb: str) -> str:
    """Return the section of one command."""
    found = main.statecfg.get_command(click.Context(main.statecfg), verb)
    assert found is not None
    if verb == "check":
        return "## check\n\nAnother name of [plan](#plan).\n"
    return "\n".join(sections(found, verb, "##"))


def sections(found: click.Command, verb: str, mark: str) -> Iterator[str]:
    """Yield the section of a command, and of those that it is made of."""
    yield section(found, verb, mark)
    for name, below in found.commands.items() if isinstance(found, click.Group) else ():
        yield from sections(below, f"{verb} {name}", f"{mark}#" if len(mark) < 4 else mark)


def section(found: click.Command, verb: str, mark: str) -> str:
    """Return what there is to say of one command: how it is called, what it does, its options, examples."""
    context = click.Context(found, info_name=f"statecfg {verb}")
    usage = found.get_usage(context).removeprefix("Usage: ")
    text = f"{mark} {verb}\n\n    {' '.join(usage.split())}\n\n{inspect.cleandoc(found.help or '')}\n"
    rows = [option(item) for item in found.params if isinstance(item, click.Option)]
    if rows:
        text += "\n" + table(("option", "meaning", "environment"), rows)
    if isinstance(found, options.Command | options.Group) and found.examples:
        text += f"\n```console\n{found.examples.strip()}\n```\n"
    return text


def option(item: click.Option) -> tuple[str, str, str]:
    """Return the row of an option."""
    names = ", ".join(f"`{name}`" for name in item.opts)
    value = "" if item.is_flag or item.count else f" {item.metavar or choices(item)}"
    return names + value, cell(item.help or ""), f"`{item.envvar}`" if item.envvar else ""


def choices(item: click.Option) -> str:
    """Return what an option without a name for its value takes."""
    return "\\|".join(item.type.choices) if isinstance(item.type, click.Choice) else item.type.name.upper()


def environment() -> str:
    """Return the section about the environment."""
    rows = [(f"`{name}`", cell(text)) for name, text in ELSEWHERE.items()]
    return (
        "## Environment\n\nOptions can come from the environment, by the names in the tables above; the command line "
        "wins. Beside these:\n\n" + table(("variable", "meaning"), rows)
    )


# Exit codes, limits, errors


def exit_code_page() -> str:
    """Return the page of exit codes."""
    values = {name: value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    missing = sorted(set(values) - set(EXIT_CODES))
    if missing:
        raise SystemExit(f"script/docs.py says nothing of the exit codes {', '.join(missing)}")
    rows = [(f"`{value}`", EXIT_CODES[name]) for name, value in values.items()]
    worst = ", ".join(str(code) for code in exit_codes.WORST_FIRST)
    return (
        f"{MADE}# Exit codes\n\n{table(('code', 'meaning'), rows)}\n"
        f"Where several happened, on several hosts, the one that stands first here counts: {worst}.\n"
    )


def limits() -> str:
    """Return the page of limits."""
    rows = []
    for module, name, what, unit in LIMITS:
        value = getattr(import_module(module), name)
        rows.append((what, f"{value:,.0f} {unit}".strip()))
    return (
        f"{MADE}# Limits\n\nWhat is over a limit is refused with a message, never cut in silence; reports say what "
        f"they leave out.\n\n{table(('what', 'limit'), rows)}"
    )


AREAS = {
    "1": "Nodes and graphs",
    "2": "Values",
    "3": "YAML and templates",
    "4": "Inventory, project and command line",
    "5": "Python and Hy",
    "6": "Hooks",
    "7": "Services and their charms",
    "8": "Entities",
}


def errors() -> str:
    """Return the page of errors."""
    parts = [
        f"{MADE}# Errors\n\nEach kind of error in a playbook, an inventory or a template has a code. statecfg reports "
        "all errors at once, before it\ncontacts any host. Each error shows its location and how to fix it. The exit "
        "code is 5.\n"
    ]
    for area, title in AREAS.items():
        parts.append(f"## {title}\n")
        for code, (summary, meaning) in CODES.items():
            if code[2:4] == f"0{area}":
                parts.append(f"### {code} {summary}\n\n{markdown(meaning)}\n")
    return "\n".join(parts)


def index() -> str:
    """Return the page that leads to the others."""
    return f"""{MADE}# Reference

- [Node types](node-types.md): what can be described, with every attribute
- [Command line](command-line.md): every command, option and environment variable
- [Exit codes](exit-codes.md)
- [Report](../report.md): what `--json` writes
- [Errors](../errors.md): every code
- [Limits](limits.md)

These pages are made from the code by `script/docs`; a test compares them.
"""


def made() -> dict[Path, str]:
    """Return every page that is made from the code."""
    return {
        REFERENCE / "README.md": index(),
        REFERENCE / "node-types.md": node_types(),
        REFERENCE / "command-line.md": command_line(),
        REFERENCE / "exit-codes.md": exit_code_page(),
        REFERENCE / "limits.md": limits(),
        ROOT / "docs/errors.md": errors(),
    }


def changed(pages: dict[Path, str]) -> Iterator[Path]:
    """Write the pages that are not as they should be, and yield them."""
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield path


def run() -> Any:
    """Write what is out of date and say so."""
    for path in changed(made()):
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    run()
