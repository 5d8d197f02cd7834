"""`statecfg hook`: exec hooks, their configuration and their log."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg import dialects
from statecfg.cli import answers, exit_codes, options
from statecfg.cli.hook.store import HookStore
from statecfg.cli.options import Command, Group
from statecfg.remote.graph.names import HookStatus
from statecfg.remote.hooks.on_failure import RULES

if TYPE_CHECKING:
    from statecfg.views.lines import Line

EXAMPLES = """
statecfg hook types                                  all types of hooks
statecfg hook create --name counter --type counter   a hook of a type; -c KEY=VALUE configures it
statecfg hook show counter                           its current configuration
statecfg hook run counter node-booted web1           call the hook now
statecfg hook log counter --limit 5                  the results of its last calls
statecfg hook set counter node-booted=0              change its configuration
"""


@click.group("hook", cls=Group, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Manage exec hooks: programs that are called when something happens to a host or a resource.

    A type is a directory NAME.hook with a program for each event. A hook has a type and its own configuration, which
    its programs may change.
    """
    context.obj = store


@command.command("types", cls=Command, examples="statecfg hook types\nstatecfg hook types --json")
@options.json_option
@options.no_color_option
def types(as_json: bool, no_color: bool) -> int:
    """Show the types of hooks: their location, their events and the keys of their configuration."""
    from statecfg.hooks.exec import types as exec_types
    from statecfg.playbook import project
    from statecfg.problems import InvalidInput
    from statecfg.views import hooks as view
    from statecfg.views.problems import problem_data

    available = exec_types.of_project(project.find(Path.cwd()))
    lines: list[Line] = []
    data: list[dict[str, Any]] = []
    for name in available.names():
        try:
            hook_type = available.find(name)
        except InvalidInput as wrong:
            lines += view.refused_lines(name, wrong.problems)
            data.append({"name": name, "problems": problem_data(wrong.problems)})
        else:
            lines += view.type_lines(hook_type)
            data.append(view.type_data(hook_type))
    answers.write(lines, {"format": 1, "types": data}, as_json, no_color)
    return exit_codes.BAD_INPUT if any("problems" in item for item in data) else exit_codes.DONE


@command.command(
    "create",
    cls=Command,
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
@click.option("--events", metavar="EVENT", multiple=True, help="Only for these events. Default: all of its type.")
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
    import getpass

    from statecfg.cli.hook import arguments as hook_arguments
    from statecfg.problems import InvalidInput, collecting, problem, report, reporting
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
        hook, differs = hook_objects.create(
            opened.store,
            name,
            hook_type.name,
            str(hook_type.folder),
            complete,
            records.Spec(**chosen),
            getpass.getuser(),
        )
    if differs:
        detail = f"The hook {name} already exists, and the {', '.join(differs)} fields do not match"
        raise InvalidInput([problem("SC0623", detail, f"statecfg hook show {hook.name}; or delete it first")])
    from statecfg.views.changes import value_text

    for text in hook_type.doubtful(opened.engine.caller.path):
        click.echo(f"warning: {text}", err=True)
    answers.say(f"{hook.name}: a hook of type {hook.type}, configuration {value_text(hook.configuration)}")


@command.command("delete", cls=Command, examples="statecfg hook delete counter")
@click.argument("name")
@click.pass_obj
def delete(store: str | None, name: str) -> None:
    """Delete a hook and its queued calls. Its log entries stay."""
    from statecfg.store.hooks import objects as hook_objects

    with HookStore(store) as opened:
        answers.say(hook_objects.remove(opened.store, name))


@command.command("list", cls=Command, examples="statecfg hook list\nstatecfg hook list --json")
@options.json_option
@options.no_color_option
@click.pass_obj
def show_all(store: str | None, as_json: bool, no_color: bool) -> None:
    """Show all hooks, including those that this project declares, and the number of queued calls."""
    from statecfg.hooks.registration import files
    from statecfg.store.hooks import objects as hook_objects
    from statecfg.store.hooks import queue
    from statecfg.views import hooks as view

    with HookStore(store) as opened:
        hooks, waiting = hook_objects.every(opened.store), queue.waiting(opened.store)
        created = {hook.name for hook in hooks}
        declared = [hook for hook in files.load(opened.project) if hook.name not in created]
    data = {"format": 1, "hooks": [view.hook_data(hook) for hook in hooks], "queued": waiting}
    data["declared"] = [view.declared_data(hook) for hook in declared]
    answers.write(view.hook_table(hooks, declared, waiting), data, as_json, no_color)


@command.command("show", cls=Command, examples="statecfg hook show counter\nstatecfg hook show counter --json")
@click.argument("name")
@options.json_option
@options.no_color_option
@click.pass_obj
def show(store: str | None, name: str, as_json: bool, no_color: bool) -> None:
    """Show a hook: its current configuration, and what it is called for."""
    from statecfg.problems import InvalidInput
    from statecfg.store import objects
    from statecfg.views import hooks as view

    with HookStore(store) as opened:
        declared = opened.over_http(name)
        if declared is not None:
            owed = [call for call in objects.owed(opened.store) if call.hook == declared.name]
            data = {"format": 1, **view.declared_data(declared), "owed": [view.owed_data(call) for call in owed]}
            answers.write(view.one_declared(declared, owed), data, as_json, no_color)
            return
        hook = opened.hook(name)
        try:
            handled = opened.engine.types.find(hook.type, Path(hook.folder)).events()
        except InvalidInput as wrong:
            handled = []
            answers.write(view.refused_lines(hook.type, wrong.problems), {}, False, no_color, sys.stderr)
    answers.write(view.one_hook(hook, handled), {"format": 1, **view.hook_data(hook)}, as_json, no_color)


@command.command("log", cls=Command, examples="statecfg hook log\nstatecfg hook log counter --limit 5 --json")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of entries to print. Default: all.")
@click.option("--start", type=click.IntRange(0), default=0, metavar="N", help="Number of newest entries to skip.")
@options.json_option
@options.no_color_option
@click.pass_obj
def log(store: str | None, name: str | None, limit: int | None, start: int, as_json: bool, no_color: bool) -> None:
    """Show the results of calls to one hook or to all hooks, newest first."""
    from statecfg.store.hooks import log as hook_log
    from statecfg.views import hooks as view

    with HookStore(store) as opened:
        if name is not None and opened.over_http(name) is None:
            opened.hook(name)
        events = hook_log.events(opened.store, name, limit, start)
    lines = (line for event in events for line in view.event_lines(event))
    answers.write(lines, {"format": 1, "events": [view.event_data(event) for event in events]}, as_json, no_color)


@command.command(
    "run",
    cls=Command,
    examples="statecfg hook run counter node-booted web1\n"
    "statecfg hook run counter node-bound-to-policy web1 --policy playbooks/web.yml --debug",
)
@click.argument("name")
@click.argument("event")
@click.argument("host", shell_complete=options.offer_hosts)
@click.option("--policy", metavar="PLAYBOOK", help="Playbook of the event. Default: the playbook bound to the host.")
@click.option("--debug", is_flag=True, help="Keep what the program read and wrote in the log, and show it.")
@options.json_option
@options.no_color_option
@click.pass_obj
def run(
    store: str | None, name: str, event: str, host: str, policy: str | None, debug: bool, as_json: bool, no_color: bool
) -> int:
    """Call a hook now, as if an event of a host had happened, and show the result."""
    from statecfg.remote.hooks.output import ERROR
    from statecfg.store.hooks import log as hook_log
    from statecfg.views import hooks as view

    with HookStore(store) as opened:
        hook = opened.hook(name)
        judged = opened.engine.run(name, event, opened.host(host), policy, debug)
        events = hook_log.events(opened.store, name, 1) if judged is not None else []
    if judged is None:
        said = f"no event handler exists for hook {hook.name}"
        answers.write([answers.line(said)], {"format": 1, "result": said}, as_json, no_color)
        return exit_codes.DONE
    lines = (line for entry in events for line in view.event_lines(entry))
    answers.write(lines, {"format": 1, **view.event_data(events[0])}, as_json, no_color)
    return exit_codes.FAILED if judged.severity == ERROR else exit_codes.DONE


@command.command("set", cls=Command, examples="statecfg hook set counter node-booted=0 note='\"0\"'")
@click.argument("name")
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE…")
@click.pass_obj
def set_values(store: str | None, name: str, values: Sequence[str]) -> None:
    """Change keys of a hook's configuration. The value is parsed as JSON if possible; otherwise it is a string."""
    from statecfg.cli.hook import arguments as hook_arguments
    from statecfg.store.hooks import objects as hook_objects

    pairs = dict(hook_arguments.pair(text) for text in values)
    with HookStore(store) as opened:
        schema = opened.schema(name)
        _changed(hook_objects.set_keys(opened.store, name, pairs, schema), pairs, schema)


@command.command("unset", cls=Command, examples="statecfg hook unset counter node-booted")
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
@click.pass_obj
def unset(store: str | None, name: str, keys: Sequence[str]) -> None:
    """Reset keys of a hook's configuration to their defaults. Keys without a default are removed."""
    from statecfg.store.hooks import objects as hook_objects

    with HookStore(store) as opened:
        schema = opened.schema(name)
        _changed(hook_objects.unset_keys(opened.store, name, keys, schema), keys, schema)


def _changed(outcome: tuple[list[str], list[str]], keys: Iterable[str], schema: Mapping[str, Any]) -> None:
    from statecfg.problems import InvalidInput, problem, suggest

    done, refused = outcome
    if refused:
        unknown = next((key for key in keys if key not in schema), None)
        hint = suggest(unknown, schema, "its type has") if unknown else "give it another value by `statecfg hook set`"
        raise InvalidInput([problem("SC0622", said, hint) for said in refused])
    for said in done:
        answers.say(said)


@command.command("grant", cls=Command, examples="statecfg hook grant counter alice")
@click.argument("name")
@click.argument("user")
@click.pass_obj
def grant(store: str | None, name: str, user: str) -> None:
    """Give a user Full Control of a hook. The user can then skip the hook with --no-hooks."""
    _access(store, name, user, True)


@command.command("revoke", cls=Command, examples="statecfg hook revoke counter alice")
@click.argument("name")
@click.argument("user")
@click.pass_obj
def revoke(store: str | None, name: str, user: str) -> None:
    """Take Full Control of a hook away from a user."""
    _access(store, name, user, False)


def _access(store: str | None, name: str, user: str, more: bool) -> None:
    from statecfg.store.hooks import objects as hook_objects

    with HookStore(store) as opened:
        hook = opened.hook(name)
        changed = hook_objects.grant(opened.store, name, user, more)
    had = "has" if more else "does not have"
    answers.say(f"{hook.name}: {user} {had} Full Control" + ("" if changed else ", as before"))


@command.command("retry", cls=Command, examples="statecfg hook retry")
@options.json_option
@options.no_color_option
@click.pass_obj
def retry(store: str | None, as_json: bool, no_color: bool) -> int:
    """Run queued calls and repeat failed calls of HTTP hooks, then list what is pending.

    The call of a program stays queued if its run ended before the call. If an HTTP hook failed while its playbook was
    destroyed, this command calls it again. If it failed while its playbook was applied, the next apply calls it.
    """
    from statecfg.hooks.http.reconcile import retry_due
    from statecfg.remote.hooks.output import ERROR
    from statecfg.store import objects
    from statecfg.store.hooks import log as hook_log
    from statecfg.store.hooks import queue
    from statecfg.views import hooks as view

    with HookStore(store) as opened:
        done = [item.id for item, _ in opened.engine.drain()]
        events = hook_log.events(opened.store, invocations=done) if done else []
        owed = retry_due(opened.store, opened.project)
        pending, later = queue.pending(opened.store), objects.owed(opened.store)
    waiting = len(pending)
    lines = [line for event in reversed(events) for line in view.event_lines(event)]
    lines += [line for fired in owed for line in view.called_lines(fired)]
    lines += view.pending_lines(pending, later)
    lines.append(answers.line(f"{len(done)} run, {waiting} still queued"))
    data = {"format": 1, "events": [view.event_data(event) for event in reversed(events)], "queued": waiting}
    data["pending"] = [view.pending_data(call) for call in pending]
    answers.write(lines, {**data, "called": owed, "owed": [view.owed_data(call) for call in later]}, as_json, no_color)
    failed = any(event.severity == ERROR for event in events) or any(call["status"] != HookStatus.OK for call in owed)
    return exit_codes.FAILED if failed else exit_codes.DONE
