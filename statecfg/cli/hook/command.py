"""`statecfg hook`: exec hooks, their configuration and their log."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from statecfg import dialects
from statecfg.cli import exit_codes, options, printing
from statecfg.cli.hook.store import HookStore
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult, one_line
from statecfg.problems import InvalidInput, collecting, problem, report, reporting, suggest
from statecfg.remote.graph.names import HookStatus
from statecfg.remote.graph.on_failure import RULES
from statecfg.views import hooks as view
from statecfg.views.changes import value_text
from statecfg.views.lines import Line
from statecfg.views.problems import problem_data

EXAMPLES = """
statecfg hook types                                  all types of hooks
statecfg hook create --name counter --type counter   a hook of a type; -c KEY=VALUE configures it
statecfg hook show counter                           its current configuration
statecfg hook run counter node-booted web1           call the hook now
statecfg hook log counter --limit 5                  the results of its last calls
statecfg hook set counter node-booted=0              change its configuration
"""


@click.group("hook", cls=StoreGroup, opens=HookStore, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Manage exec hooks: programs that are called when something happens to a host or a resource.

    A type is a directory NAME.hook with a program for each event. A hook has a type and its own configuration, which
    its programs may change.
    """
    context.obj = store


@command.command("types", examples="statecfg hook types\nstatecfg hook types --json")
@options.json_option
@options.no_color_option
def types(as_json: bool, no_color: bool) -> int:
    """Show the types of hooks: their location, their events and the keys of their configuration."""
    from statecfg.hooks.exec import types as exec_types
    from statecfg.playbook import project

    available = exec_types.of_project(project.find(Path.cwd()))
    lines: list[Line] = []
    data: list[Mapping[str, Any]] = []
    for name in available.names():
        try:
            hook_type = available.find(name)
        except InvalidInput as wrong:
            lines += view.refused_lines(name, wrong.problems)
            data.append({"name": name, "problems": problem_data(wrong.problems)})
        else:
            lines += view.type_lines(hook_type)
            data.append(view.type_data(hook_type))
    printing.write(lines, {"format": 1, "types": data}, as_json, no_color)
    return exit_codes.BAD_INPUT if any("problems" in item for item in data) else exit_codes.DONE


@command.command(
    "create",
    examples="statecfg hook create --name counter --type counter -c node-booted=7\n"
    'statecfg hook create tell notify -c \'{"url": "http://127.0.0.1/"}\' --events post-update --types service',
)
@click.argument("words", nargs=-1, metavar="[NAME] [TYPE]")
@click.option("--name", metavar="NAME", help="Name of the hook, case-insensitive.")
@click.option("--type", "--hook-type", "type_name", metavar="TYPE", help="Type of the hook; see `statecfg hook types`.")
@click.option(
    "-c",
    "--configuration",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a key of the configuration. The value is parsed as JSON if possible; otherwise it is a string. A JSON"
    " object sets all keys. Repeatable.",
)
@click.option(
    "--hosts",
    metavar="PATTERN",
    shell_complete=options.offer_hosts,
    help="Only for these hosts of the inventory. Default: all.",
)
@click.option("--types", metavar="TYPE", multiple=True, help="Only for resources of these types. Repeatable.")
@click.option("--names", metavar="NAME", multiple=True, help="Only for these resource names; * and ? are wildcards.")
@click.option("--tags", metavar="TAG", multiple=True, help="Only for resources with one of these tags. Repeatable.")
@click.option(
    "--events", metavar="EVENT", multiple=True, help="Only for these events. Default: all events of its type."
)
@click.option("--where", type=click.Choice(["controller", "host"]), help="Where the hook runs. Default: controller.")
@click.option("--order", type=int, metavar="N", help="Hooks with smaller numbers are called first. Default: 100.")
@click.option("--deadline", metavar="DURATION", help="Maximum duration of one call, as ISO 8601. Default: PT30S.")
@click.option(
    "--on-failure",
    type=click.Choice(list(RULES)),
    help="What to do if the hook fails at an event of a resource. An event of a host always continues. Default: abort.",
)
@click.pass_obj
def create(
    store: str | None,
    /,
    words: Sequence[str],
    name: str | None,
    type_name: str | None,
    configuration: Sequence[str],
    **spec: Any,
) -> None:
    """Create a hook. Creating the same hook again changes nothing; a different hook with the same name is refused.

    The creator gets Full Control of the hook. Users without Full Control cannot skip it with --no-hooks.
    """
    from statecfg.cli.hook import arguments as hook_arguments
    from statecfg.store.hooks import objects as hook_objects
    from statecfg.store.hooks import records

    left = list(words)
    name = name if name is not None or not left else left.pop(0)
    type_name = type_name if type_name is not None or not left else left.pop(0)
    if left:
        raise click.UsageError(f"Too many arguments: {' '.join(left)}")
    with HookStore(store) as opened:
        chosen, invalid = hook_arguments.checked(name, type_name, spec, dialects.inventory(opened.project))
        with collecting() as problems:
            report(*invalid)
            with reporting():
                values = hook_arguments.configuration(configuration)
                if type_name:
                    hook_type = opened.engine.types.find(type_name)
                    complete = hook_type.configured(values)
        if problems:
            raise InvalidInput(problems)
        assert name is not None
        folder, user = str(hook_type.folder), getpass.getuser()
        hook, differs = hook_objects.create(
            opened.store, name, hook_type.name, folder, complete, records.Spec(**chosen), user
        )
    if differs:
        detail = f"The hook {name} already exists, and the {', '.join(differs)} fields do not match"
        raise InvalidInput([problem("SC0623", detail, f"statecfg hook show {hook.name}; or delete it first")])
    for text in hook_type.doubtful(opened.engine.caller.path):
        click.echo(f"warning: {text}", err=True)
    printing.say(f"{hook.name}: a hook of type {hook.type}, configuration {value_text(hook.configuration)}")


@command.verb("delete", "statecfg hook delete counter")
@click.argument("name")
def delete(opened: HookStore, name: str) -> str:
    """Delete a hook and its queued calls. Its log entries stay."""
    from statecfg.store.hooks import objects as hook_objects

    return hook_objects.remove(opened.store, name)


@command.verb("list", "statecfg hook list\nstatecfg hook list --json", JSON, COLOR)
def show_all(opened: HookStore) -> VerbResult:
    """Show all hooks, including those that this project declares, and the number of queued calls."""
    from statecfg.hooks.registration import files
    from statecfg.store.hooks import objects as hook_objects
    from statecfg.store.hooks import queue

    hooks, waiting = hook_objects.every(opened.store), queue.waiting(opened.store)
    created = {hook.name for hook in hooks}
    declared = [hook for hook in files.load(opened.project) if hook.name not in created]
    data = {"format": 1, "hooks": [view.hook_data(hook) for hook in hooks], "queued": waiting}
    data["declared"] = [view.declared_data(hook) for hook in declared]
    return VerbResult(view.hook_table(hooks, declared, waiting), data)


@command.verb("show", "statecfg hook show counter\nstatecfg hook show counter --json", JSON, COLOR)
@click.argument("name")
def show(opened: HookStore, name: str) -> VerbResult:
    """Show a hook: its current configuration, and what it is called for."""
    from statecfg.store import objects

    declared = opened.over_http(name)
    if declared is not None:
        owed = [call for call in objects.owed(opened.store) if call.hook == declared.name]
        data = {"format": 1, **view.declared_data(declared), "owed": [view.owed_data(call) for call in owed]}
        return VerbResult(view.one_declared(declared, owed), data)
    hook = opened.hook(name)
    try:
        handled = opened.engine.types.find(hook.type, Path(hook.folder)).events()
    except InvalidInput as wrong:
        handled = []
        no_color = click.get_current_context().params["no_color"]
        printing.write(view.refused_lines(hook.type, wrong.problems), {}, False, no_color, sys.stderr)
    return VerbResult(view.one_hook(hook, handled), {"format": 1, **view.hook_data(hook)})


@command.verb("log", "statecfg hook log\nstatecfg hook log counter --limit 5 --json", JSON, COLOR)
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of entries to print. Default: all.")
@click.option("--start", type=click.IntRange(0), default=0, metavar="N", help="Number of newest entries to skip.")
def log(opened: HookStore, name: str | None, limit: int | None, start: int) -> VerbResult:
    """Show the results of calls to one hook or to all hooks, newest first."""
    from statecfg.store.hooks import log as hook_log

    if name is not None and opened.over_http(name) is None:
        opened.hook(name)
    events = hook_log.events(opened.store, name, limit, start)
    lines = (line for event in events for line in view.event_lines(event))
    return VerbResult(lines, {"format": 1, "events": [view.event_data(event) for event in events]})


@command.verb(
    "run",
    "statecfg hook run counter node-booted web1\n"
    "statecfg hook run counter node-bound-to-policy web1 --policy playbooks/web.yml --debug",
    JSON,
    COLOR,
)
@click.argument("name")
@click.argument("event")
@click.argument("host", shell_complete=options.offer_hosts)
@click.option("--policy", metavar="PLAYBOOK", help="Playbook of the event. Default: the playbook bound to the host.")
@click.option("--debug", is_flag=True, help="Keep what the program read and wrote in the log, and show it.")
def run(opened: HookStore, name: str, event: str, host: str, policy: str | None, debug: bool) -> VerbResult:
    """Call a hook now, as if an event of a host had happened, and show the result."""
    from statecfg.remote.hooks.output import ERROR
    from statecfg.store.hooks import log as hook_log

    hook = opened.hook(name)
    judged = opened.engine.run(name, event, opened.host(host), policy, debug)
    if judged is None:
        text = f"no event handler exists for hook {hook.name}"
        return one_line(text, {"format": 1, "result": text})
    events = hook_log.events(opened.store, name, 1)
    lines = (line for entry in events for line in view.event_lines(entry))
    code = exit_codes.FAILED if judged.severity == ERROR else exit_codes.DONE
    return VerbResult(lines, {"format": 1, **view.event_data(events[0])}, code)


@command.verb("set", "statecfg hook set counter node-booted=0 note='\"0\"'")
@click.argument("name")
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE…")
def set_values(opened: HookStore, name: str, values: Sequence[str]) -> VerbResult:
    """Change keys of a hook's configuration. The value is parsed as JSON if possible; otherwise it is a string."""
    from statecfg.cli.hook import arguments as hook_arguments
    from statecfg.store.hooks import objects as hook_objects

    pairs, schema = dict(hook_arguments.pair(text) for text in values), opened.schema(name)
    return _changed(hook_objects.set_keys(opened.store, name, pairs, schema), pairs, schema)


@command.verb("unset", "statecfg hook unset counter node-booted")
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
def unset(opened: HookStore, name: str, keys: Sequence[str]) -> VerbResult:
    """Reset keys of a hook's configuration to their defaults. Keys without a default are removed."""
    from statecfg.store.hooks import objects as hook_objects

    schema = opened.schema(name)
    return _changed(hook_objects.unset_keys(opened.store, name, keys, schema), keys, schema)


def _changed(outcome: tuple[list[str], list[str]], keys: Iterable[str], schema: Mapping[str, Any]) -> VerbResult:
    """Return the output about changed keys.

    :param outcome: a string for each changed key, and the details of refusals
    :raises InvalidInput: a key was refused
    """
    done, refused = outcome
    if refused:
        unknown = next((key for key in keys if key not in schema), None)
        hint = suggest(unknown, schema, "its type has") if unknown else "give it another value by `statecfg hook set`"
        raise InvalidInput([problem("SC0622", detail, hint) for detail in refused])
    return VerbResult(map(printing.line, done))


@command.verb("grant", "statecfg hook grant counter alice")
@click.argument("name")
@click.argument("user")
def grant(opened: HookStore, name: str, user: str) -> str:
    """Give a user Full Control of a hook. The user can then skip the hook with --no-hooks."""
    return _access(opened, name, user, True)


@command.verb("revoke", "statecfg hook revoke counter alice")
@click.argument("name")
@click.argument("user")
def revoke(opened: HookStore, name: str, user: str) -> str:
    """Revoke a user's Full Control of a hook."""
    return _access(opened, name, user, False)


def _access(opened: HookStore, name: str, user: str, more: bool) -> str:
    from statecfg.store.hooks import objects as hook_objects

    hook = opened.hook(name)
    changed = hook_objects.grant(opened.store, name, user, more)
    had = "has" if more else "does not have"
    return f"{hook.name}: {user} {had} Full Control" + ("" if changed else ", as before")


@command.verb("retry", "statecfg hook retry", JSON, COLOR)
def retry(opened: HookStore) -> VerbResult:
    """Run queued calls and repeat failed calls of HTTP hooks, then list what is pending.

    The call of a program stays queued if its run ended before the call. If an HTTP hook failed while its playbook was
    destroyed, this command calls it again. If it failed while its playbook was applied, the next apply calls it.
    """
    from statecfg.hooks.http.reconcile import retry_due
    from statecfg.remote.hooks.output import ERROR
    from statecfg.store import objects
    from statecfg.store.hooks import log as hook_log
    from statecfg.store.hooks import queue

    done = [item.id for item, _ in opened.engine.drain()]
    events = hook_log.events(opened.store, invocations=done) if done else []
    owed = retry_due(opened.store, opened.project)
    pending, later = queue.pending(opened.store), objects.owed(opened.store)
    lines = [line for event in reversed(events) for line in view.event_lines(event)]
    lines += [line for fired in owed for line in view.called_lines(fired)]
    lines += view.pending_lines(pending, later)
    lines.append(printing.line(f"{len(done)} run, {len(pending)} still queued"))
    data = {"format": 1, "events": [view.event_data(event) for event in reversed(events)], "queued": len(pending)}
    data["pending"] = [view.pending_data(call) for call in pending]
    failed = any(event.severity == ERROR for event in events) or any(call["status"] != HookStatus.OK for call in owed)
    code = exit_codes.FAILED if failed else exit_codes.DONE
    return VerbResult(lines, {**data, "called": owed, "owed": [view.owed_data(call) for call in later]}, code)
