"""The options that commands share, and the dataclasses with their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import click

from statecfg.cli.output_options import OutputOptions, with_file
from statecfg.problems.frozen import dataclass

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Selection:
    """The options that decide what is compiled: hosts, resources and variables.

    :param inventory: a file; None for the project's inventory
    :param limit: a host pattern
    :param tags: tags of resources
    :param extra_vars: as written on the command line
    :param prune: remove orphans: resources that are no longer defined
    :param prune_hosts: remove the playbook from hosts that it no longer names
    :param max_fact_age: the maximum age of recorded facts, as an ISO 8601 duration
    :param vault_ids: passwords of Ansible Vault, as written on the command line
    :param age_identities: files with identities of age
    """

    inventory: str | None = None
    limit: str | None = None
    tags: tuple[str, ...] = ()
    extra_vars: tuple[str, ...] = ()
    prune: bool = False
    prune_hosts: bool = False
    max_fact_age: str | None = None
    vault_ids: tuple[str, ...] = ()
    age_identities: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConnectionOptions:
    """How to connect to hosts and run there. None means that the option was not given.

    :param forks: maximum number of concurrent hosts
    :param become: act as another user on the host
    :param become_user: that user
    :param ask_become_pass: ask for the password that becoming requires
    :param user: the user to log in as
    :param ssh_config: a file, or "none"
    :param accept_new_host_keys: trust and record the keys of unknown hosts
    :param keep_going: after a failure, skip only dependent resources
    :param lock_timeout: seconds to wait for another run on a host
    :param connect_rate: maximum number of new connections per second; None for no limit
    :param verify_content: read the content of all files on the hosts
    :param engine: which processes hold the connections to hosts
    """

    forks: int | None = None
    become: bool | None = None
    become_user: str | None = None
    ask_become_pass: bool = False
    user: str | None = None
    ssh_config: str | None = None
    accept_new_host_keys: bool | None = None
    keep_going: bool | None = None
    lock_timeout: float | None = None
    connect_rate: float | None = None
    verify_content: bool = False
    engine: str | None = None

    def with_settings(self, settings: Any) -> ConnectionOptions:
        """Return these options. Options that were not given get the project's settings, or else the defaults."""
        explicit = {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}
        found = {name: getattr(settings, name, getattr(settings.connections, name, None)) for name in _SETTINGS}
        configured = {name: value for name, value in found.items() if value is not None}
        return replace(self, **{**_DEFAULTS, **configured, **explicit})


_DEFAULTS: dict[str, Any] = {"forks": 16, "lock_timeout": 0.0, "engine": "threads"}
_SETTINGS = (*_DEFAULTS, "become", "become_user", "ssh_config", "accept_new_host_keys", "keep_going")


def take(cls: type[Any], values: dict[str, Any]) -> Any:
    """Remove the fields of a dataclass from click's values, and return an object of the class with these values.

    :param cls: the dataclass
    :param values: click's values; they are changed
    """
    return cls(**{field.name: values.pop(field.name) for field in fields(cls) if field.name in values})


def taken(values: dict[str, Any]) -> tuple[Selection, ConnectionOptions, OutputOptions]:
    """Remove the options of a run on hosts from click's values, and return them.

    :raises click.UsageError: two of them can't be combined
    """
    chosen, how, output = take(Selection, values), take(ConnectionOptions, values), take(OutputOptions, values)
    if output.json and output.json_lines:
        raise click.UsageError("--json and --json-lines both write to standard output: use one of them.")
    if output.json or output.json_lines:
        from statecfg.views.json_document import JsonDocument
        from statecfg.views.json_lines import JsonLines

        output = replace(output, stream=JsonDocument(sys.stdout) if output.json else JsonLines(sys.stdout))
        click.get_current_context().obj.append(output.stream)  # `main` tells it about an error that ends the command
    return chosen, how, with_file(output)


def _all(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def apply(function: F) -> F:
        for decorate in reversed(decorators):
            function = decorate(function)
        return function

    return apply


def _option(*flags: str, from_environment: bool = True, **keywords: Any) -> Callable[[F], F]:
    """Return a click option that an environment variable can set too: `--forks` is STATECFG_FORKS."""
    name = next(flag for flag in flags if flag.startswith("--"))
    variable = "STATECFG_" + name[2:].replace("-", "_").upper() if from_environment else None
    return click.option(*flags, envvar=variable, **keywords)


def _user_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the value.

    :raises click.BadParameter: it cannot be a user name
    """
    if value is None:
        return None
    from statecfg.remote.graph.wrong_values import show
    from statecfg.transport import become, route

    allowed = become.is_user(value) if parameter.name == "become_user" else route.is_user(value)
    if not allowed:
        raise click.BadParameter(f"{show(value)} is not a user name: use letters, digits, `_`, `-` and `.`")
    return value


inventory_option = _option(
    "-i",
    "--inventory",
    metavar="FILE",
    type=click.Path(),
    help="Inventory: a file, a directory or a program. Default: the one that statecfg.toml names, or inventory.yml.",
)


def _offered(name: str) -> Callable[..., Any]:
    """Return a shell completion function from `offered`. It imports that module when a shell calls it."""

    def offer(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from statecfg.cli import offered

        return getattr(offered, name)(context, parameter, incomplete)

    return offer


offer_hosts = _offered("hosts")
offer_units = _offered("units")
offer_services = _offered("services")
offer_services_and_units = _offered("services_and_units")
offer_plans = _offered("plans")

_limit_option = _option(
    "-l",
    "--limit",
    metavar="PATTERN",
    shell_complete=offer_hosts,
    help="Only these hosts: a name, a group, a glob, ~regex; join with ',', exclude with '!', intersect with '&'.",
)
_tags_option = _option(
    "-t",
    "--tags",
    metavar="TAG",
    shell_complete=_offered("tags"),
    multiple=True,
    help="Only resources with one of these tags, and what they require. Repeatable; accepts a comma-separated list.",
)
_extra_vars_option = _option(
    "-e",
    "--extra-vars",
    metavar="VARS",
    multiple=True,
    from_environment=False,
    help="Variables that override all others: key=value, a JSON object, or @FILE. Repeatable.",
)
_max_fact_age_option = _option(
    "--max-fact-age",
    metavar="DURATION",
    help="Maximum age of the facts of other hosts, as an ISO 8601 duration such as P1D or PT12H. Default: any age.",
)
selection = _all(inventory_option, _limit_option, _tags_option, _extra_vars_option, _max_fact_age_option)
# For commands that need the whole definition: without --tags.
selection_of_all = _all(inventory_option, _limit_option, _extra_vars_option, _max_fact_age_option)
prune_option = _option(
    "--prune",
    is_flag=True,
    help="Remove what earlier runs created and the playbook no longer defines. Cannot be combined with -t.",
)
prune_hosts_option = _option(
    "--prune-hosts",
    is_flag=True,
    from_environment=False,
    help="Remove the playbook from hosts that it was applied to and no longer names. An apply also requires --yes.",
)
yes_option = _option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask for confirmation. Required if statecfg cannot ask. On the command line, not in the environment, "
    "it also allows the removal of more than half of a host's resources.",
)

conversation = _all(
    _option(
        "-f",
        "--forks",
        metavar="N",
        type=click.IntRange(1, 1000),
        help="Maximum number of hosts to process at the same time. Default: 16.",
    ),
    _option(
        "--connect-rate",
        metavar="N",
        type=click.FloatRange(0.01, 10_000),
        help="Maximum number of hosts to connect to per second. Default: no limit.",
    ),
    _option("--engine", metavar="ENGINE", help="How to connect: threads (default), processes[:N], tls://HOST:PORT."),
    _option(
        "-b",
        "--become",
        is_flag=True,
        default=None,
        help="Act as another user on the hosts, with sudo or with the method that the inventory sets.",
    ),
    _option("--become-user", metavar="USER", callback=_user_name, help="Become this user. Default: root."),
    _option(
        "-K",
        "--ask-become-pass",
        is_flag=True,
        help="Ask for the password that -b or the inventory requires. Without a terminal, read it from stdin.",
    ),
    _option("-u", "--user", metavar="USER", callback=_user_name, help="Log in as this user."),
    _option("--ssh-config", metavar="FILE", help="Use this ssh_config; 'none' uses no file. Default: ~/.ssh/config."),
    _option(
        "--accept-new-host-keys",
        is_flag=True,
        default=None,
        help="Trust and record the key of a host that is not known yet. A changed key is still refused.",
    ),
    _option(
        "--lock-timeout",
        metavar="SECONDS",
        type=click.FloatRange(0),
        help="Wait this long for another run on the host to finish. Default: 0.",
    ),
)

output = _all(
    _option(
        "-v",
        "--verbose",
        count=True,
        help="Show unchanged resources and every action; -vv also shows the output of commands.",
    ),
    _option("--diff", is_flag=True, help="Show complete differences, however long they are."),
    _option("--json", is_flag=True, help="Write the report as JSON (format 1) to stdout, each host when it finishes."),
    _option("--json-lines", is_flag=True, help="Write the report to stdout as JSON lines, each host when it finishes."),
    _option(
        "--json-into",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Also write the JSON report to this file. Until the end of the run, finished hosts are in FILE.*.part.",
    ),
    _option(
        "--markdown-into",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Also write the report to this file, as Markdown for a pull request.",
    ),
    _option(
        "--no-color", is_flag=True, help="Do not use colors. NO_COLOR and FORCE_COLOR in the environment also work."
    ),
)

detailed_option = _option("--detailed-exitcode", is_flag=True, help="Exit with code 2 if changes are pending.")
keep_going_option = _option(
    "--keep-going",
    is_flag=True,
    default=None,
    help="After a failure, skip only the resources that depend on it. A plan that fails starts, too.",
)
verify_content_option = _option(
    "--verify-content",
    is_flag=True,
    help="Read every file. Otherwise, statecfg skips files whose inode, size and times are unchanged.",
)
out_option = _option(
    "-o",
    "--out",
    metavar="PLAN",
    type=click.Path(dir_okay=False),
    help="Save the plan to this file, for `statecfg apply PLAN`.",
)
project_option = _option(
    "--project",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False),
    help="Apply a saved plan in this project. Default: the project of the working directory.",
)
store_option = _option(
    "--store",
    metavar="URL",
    help="The controller's database: a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE. Default: the "
    "store that statecfg.toml names, or a file in the user's state directory.",
)
no_hooks_option = _option(
    "--no-hooks",
    is_flag=True,
    from_environment=False,
    help="Do not call hooks. Requires Full Control of every hook that would be called.",
)
# The options of a verb that changes hosts.
changes = _all(conversation, yes_option, keep_going_option, no_hooks_option, store_option, output)
no_color_option = _option("--no-color", is_flag=True, help="Do not use colors.")
json_option = _option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")


class Command(click.Command):
    """A command whose help ends with examples. Their line breaks are kept."""

    def __init__(self, *args: Any, examples: str = "", **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.examples, formatter)


class VerbGroup(Command, click.Group):
    """A verb with subcommands. Its help ends with examples."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands in the order of their definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. The error for an unknown one suggests a similar name."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from statecfg.problems import did_you_mean, sentence

            hint = did_you_mean(args[0], self.commands) or f"commands: {', '.join(self.commands)}."
            ctx.fail(f"`{ctx.command_path}` has no command `{args[0]}`.{sentence(hint)}")
        return super().resolve_command(ctx, args)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write the examples of a command, one per line."""
    if examples:
        with formatter.section("Examples"):
            for one in examples.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{one.strip()}\n")
