"""A run on the hosts, from the playbook to the report. `plan`, `apply`, `facts` and others share it."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes, known_facts, next_command, output_files, preflight, reach, show
from statecfg.cli.interrupt import Interrupts, confirmed, interactive
from statecfg.cli.masks import Masks
from statecfg.cli.options import ConnectionOptions, Selection
from statecfg.cli.output_options import OutputOptions
from statecfg.cli.vars import extra_vars
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.views import safe, stream
from statecfg.views.choose import progress
from statecfg.views.lines import Line, make
from statecfg.views.outcome import outcome_lines
from statecfg.views.plan import Detail, plan_lines
from statecfg.views.tally import pending

if TYPE_CHECKING:
    from statecfg.cli.lifecycle import Later
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.project import Settings
    from statecfg.run.deployment import Deployment
    from statecfg.run.job import Job
    from statecfg.run.options import Expected
    from statecfg.run.prepare import Choice, Work
    from statecfg.run.report_model import HostData, Report


@dataclass(frozen=True)
class Finished:
    """How a run ended.

    :param report: the report, redacted
    :param seconds: the duration, without the time that the user took to answer
    :param cancelled: a signal stopped the run
    :param declined: the user answered no
    :param asked: the user saw the plan and was asked
    :param stopped: the exit code if the run was cancelled
    """

    report: Report
    seconds: float
    cancelled: bool = False
    declined: bool = False
    asked: bool = False
    stopped: int = exit_codes.INTERRUPTED


def choice(chosen: Selection) -> Choice:
    """Convert the command line's selection to a `Choice`.

    :raises click.BadParameter: a variable is wrong
    :raises click.UsageError: pruning is combined with an option that selects only a part
    """
    from statecfg.playbook.secret_keys import Keys
    from statecfg.run.choice import Choice, KnownFacts

    tags = tuple(tag.strip() for text in chosen.tags for tag in text.split(",") if tag.strip())
    inventory = Path(chosen.inventory) if chosen.inventory else None
    if chosen.prune and tags:
        raise click.UsageError("--prune requires the whole definition: it can't be combined with -t.")
    if chosen.prune_hosts and (tags or chosen.limit):
        raise click.UsageError("--prune-hosts concerns all hosts of the playbook: it can't be combined with -l or -t.")
    extra = extra_vars(chosen.extra_vars, Path.cwd())
    oldest = known_facts.seconds(chosen.max_fact_age)
    keys = Keys.of(chosen.vault_ids, chosen.age_identities, Path.cwd())
    known = KnownFacts(oldest=oldest)
    return Choice(inventory, chosen.limit, tags, extra, chosen.prune, given=frozenset(extra), known=known, keys=keys)


def prepare(
    playbook: Path, chosen: Selection, events: Bus | Preview | Later | None = None, store: str | None = None
) -> Work:
    """Compile a playbook for all its hosts.

    :param events: calls the HTTP hooks, which may change the graphs, or foresees their changes; None does neither
    :param store: the address of the store, which knows the units that a user added; None for the default
    :raises InvalidInput: with all mistakes
    :raises StoreError: the store can't be used
    """
    from statecfg.cli import lifecycle
    from statecfg.run import prepare as prepared

    def added() -> Mapping[str, Sequence[str]]:
        from statecfg.store import left_hosts  # it loads SQLAlchemy, which takes longer than most playbooks

        with lifecycle.read(playbook, store) as opened:
            return {} if opened is None else left_hosts.added(opened, lifecycle.owner(playbook))

    wanted = choice(chosen)
    known = replace(wanted.known, stored=lambda: known_facts.stored(playbook, store))
    wanted = replace(wanted, added=added, known=known)
    return warned(prepared.playbook(playbook, wanted, events.reconciler if events is not None else None))


def warned(work: Work) -> Work:
    """Print the warnings about a playbook and about names and paths with misleading characters; return the work."""
    from statecfg.problems.lookalikes import lookalikes

    warnings = dict.fromkeys(work.warnings)
    for layers in {id(job.definition.layers): job.definition.layers for job in work.jobs}.values():
        for node in (node for layer in layers for node in layer):
            paths = (text for text in node.get("attrs", {}).values() if isinstance(text, str) and text[:1] == "/")
            for text in dict.fromkeys((node["provides"], *paths)):
                where = f"{node['position']}: " if node.get("position") else ""
                warnings.update((f"{where}{node['provides']}: {what}", None) for what in lookalikes(text))
    for text in warnings:
        click.echo(f"warning: {safe.line(text)}", err=True)
    return work


def of_hosts(pattern: str, chosen: Selection) -> Work:
    """Return jobs without a definition for the hosts of a pattern.

    :raises InvalidInput: the pattern, the inventory or a variable is wrong
    """
    from statecfg.run import prepare as prepared

    return prepared.hosts(pattern, choice(chosen))


def owner(playbook: str) -> str:
    """Return the name under which hosts record a playbook. If the file does not exist, return the text itself."""
    from statecfg.cli import lifecycle

    path = Path(playbook)
    return lifecycle.owner(path) if path.exists() else playbook


class _Interaction:
    """Callbacks of a run: its progress, and the question before an apply."""

    def __init__(self, work: Work, output: OutputOptions, interrupts: Interrupts) -> None:
        self.interrupts = interrupts
        self.redactor, self.output, self.work = Masks(work.secrets), output, work
        self.declined = self.asked = False
        self.thinking = 0.0  # seconds that the user took to answer
        color = stream.coloured(sys.stderr, output.no_color)
        self.progress = progress(sys.stderr, len(work.jobs), self.redactor, color, output.verbose)

    def learn(self, jobs: dict[str, Job]) -> dict[str, Job]:
        """Mask the secrets of definitions that depended on facts, before a host gets them; return the jobs."""
        self.redactor.learn(self.work.completed.secrets)
        return jobs

    def confirm(self, report: Report) -> bool:
        """Show the plan, ask, and return the answer. Return True without asking if nothing would change."""
        hosts = {name: _so_far(host) for name, host in report["hosts"].items()}
        clean = self.redactor.report(known_facts.with_ages({**report, "hosts": hosts}, self.work))
        if not pending(clean):
            return True
        self.progress.pause()
        show.lines(plan_lines(clean, detail(self.output), dry=False), self.output, sys.stderr)
        question = "Apply these changes?" if report["mode"] == Mode.APPLY else "Remove these resources?"
        started = time.monotonic()
        with self.interrupts.asking():
            agreed = confirmed(f"\n{question} [y/N]: ")
        self.thinking = time.monotonic() - started
        self.declined, self.asked = not agreed, True
        self.progress.resume()
        return agreed


def _with_units(work: Work, mode: str) -> int:
    """Return the number of hosts that stay connected until no unit of a service has a hook left.

    :raises InvalidInput: there are too many
    """
    if not work.services or mode not in (Mode.PLAN, *Mode.ACTING):
        return 0
    from statecfg.run import deployment

    placed = {name for service in work.services for name in service.hosts}
    hosts = len(placed.intersection(job.host.name for job in work.jobs))
    deployment.check_hosts(hosts)
    return hosts if mode in Mode.ACTING else 0


def _so_far(host: HostData) -> HostData:
    """Return a host's report for the question during a run. A host that has planned and waits counts as ok."""
    unfinished = host["status"] == HostStatus.UNREACHABLE and not host.get("error")
    waits = "fingerprints" in host and unfinished
    return {**host, "status": HostStatus.OK} if waits else host


def run(
    work: Work,
    mode: str,
    how: ConnectionOptions,
    output: OutputOptions,
    *,
    expected: Expected | None = None,
    asks: bool = False,
    agreed: bool = False,
    history: Mapping[str, Any] | None = None,
    events: Bus | Preview | Later | None = None,
    deploys: bool = True,
    facts: Mapping[str, Any] | None = None,
) -> Finished:
    """Run on all hosts and return the result.

    :param mode: as in `fleet.Options`
    :param expected: what a saved plan expects
    :param asks: show the plan and ask before making the changes
    :param agreed: allow the removal of more than half of a host's resources
    :param history: which runs to return, in mode "history"; `name` of the secret, in mode "reveal"
    :param events: calls the hooks and stores the run
    :param deploys: apply the playbook's declarations of services; False only runs the pending hooks of units
    :param facts: which facts to return in addition to the usual ones, in mode "facts"
    """
    from statecfg.cli import lifecycle
    from statecfg.cli.streamed import Streamed
    from statecfg.engines import engine as engines
    from statecfg.run import fleet

    output_files.check_files(output.json_into, output.markdown_into)
    settings = work.project.settings
    work = replace(work, jobs=[replace(job, host=_with_options(job.host, how, settings)) for job in work.jobs])
    how = how.with_settings(settings)
    password = _password(work) if how.ask_become_pass else None
    if password is None:
        _open_passwords(work)
    interrupts = Interrupts()
    interaction = _Interaction(work, output, interrupts)
    started = time.monotonic()
    with interrupts, interaction.progress, contextlib.closing(engines.opened(how.engine or "threads")) as engine:
        for text in engine.warnings:
            click.echo(f"warning: {safe.line(text)}", err=True)
        wait = asks or work.awaited is not None
        hosts = [job.host for job in work.jobs]
        preflight.check(
            hosts, reach.settings(how) if engine.here else None, how.forks or 1, wait, _with_units(work, mode)
        )
        options = fleet.Options(
            mode=mode,
            access=reach.access(how, engine, password),
            limits=fleet.Limits(
                how.forks or 1,
                bool(how.keep_going),
                how.lock_timeout or 0.0,
                how.connect_rate,
                verify_content=how.verify_content,
            ),
            expected=expected,
            confirm=interaction.confirm if asks else None,
            cancel=interrupts.cancel,
            agreed=agreed,
            query=history if history is not None else facts,
            deployment=_deployment(work, deploys),
            hooks=fleet.RunHooks(mask=interaction.redactor.report),
        )
        if work.awaited is not None:
            work.awaited.then.append(interaction.learn)
        if events is not None:
            options = replace(options, run=events.run, join=events.join)
        options = replace(options, run=options.run or uuid.uuid4().hex[:12])
        streamed = Streamed(output.streams, work, interaction.redactor, events, options)
        report = fleet.run(work.jobs, options, interaction.progress, work.awaited, streamed)
    report = known_facts.with_ages(report, work, streamed.began)
    clean = interaction.redactor.report(lifecycle.complete(report, work, events))
    if events is not None:
        events.enter(clean)
    took = time.monotonic() - started - interaction.thinking
    return Finished(clean, took, interrupts.cancel.is_set(), interaction.declined, interaction.asked, interrupts.code)


def _deployment(work: Work, deploys: bool) -> Deployment | None:
    """Return the services of a playbook, or None if only some of its resources were selected."""
    from statecfg.run import deployment

    jobs = work.jobs
    if not jobs or any(job.partial and (job.definition.layers or job.needs) for job in jobs):
        return None
    owner = jobs[0].owner or jobs[0].playbook
    services = deployment.of_work(work, work.project.name, owner, any(job.prune for job in jobs))
    return services if deploys else replace(services, as_is=True)


def _with_options(host: Host, how: ConnectionOptions, settings: Settings) -> Host:
    """Return the host with the project's settings, and the login options of the command line, which override both."""
    login = host.login.with_settings(settings.become if how.become is None else how.become, settings.become_user)
    login = replace(login.with_become(None, how.become_user), user=how.user or login.user)
    return replace(host, login=login)


def _password(work: Work) -> str | None:
    """Ask for the password, or read the first line of stdin if stdin is not a terminal.

    :returns: None if no host needs a password
    :raises click.UsageError: stdin has no password
    """
    if not any(job.host.login.become for job in work.jobs):
        click.echo("warning: -K has no effect: no host becomes another user (-b makes all hosts do it).", err=True)
        return None
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass("Password for becoming another user: ")
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise click.UsageError("-K reads the password from the first line of stdin, and stdin is empty.")
    return text


def _open_passwords(work: Work) -> None:
    """Read the passwords of the inventory with which hosts become another user, before the first connection.

    :raises InvalidInput: one of them can't be read
    :raises click.UsageError: the command does not read secrets of the inventory
    """
    for host in (job.host for job in work.jobs):
        password = host.login.become_password
        if host.login.become not in (None, "doas") and password is not None and not password.available:
            raise click.UsageError(f"{host.name} needs a password that this command does not read: pass -K.")


def detail(output: OutputOptions) -> Detail:
    """Return the level of detail for the views."""
    return Detail(verbose=output.verbose > 0, full=output.diff)


def show_plan(finished: Finished, output: OutputOptions, arguments: Sequence[str]) -> None:
    """Show a plan and the command that applies it.

    :param arguments: the arguments of `statecfg apply` in that command
    """
    lines = list(plan_lines(finished.report, detail(output)))
    hosts = finished.report["hosts"].values()
    if all(host["status"] == HostStatus.OK for host in hosts) and pending(finished.report):
        needs_yes = "--yes" not in arguments and any(map(_needs_yes, hosts))
        lines.insert(len(lines) - 1, _to_do([*arguments, "--yes"] if needs_yes else arguments))
    show.report(finished.report, lines, output)


def _needs_yes(host: HostData) -> bool:
    """Return whether a host warns that it would refuse an apply without --yes."""
    from statecfg.remote.ledger.orphans import CONFIRM

    return any(text.endswith(CONFIRM) for text in host.get("warnings") or ())


def _to_do(arguments: Sequence[str]) -> Line:
    return make(("To apply it: ", "dim"), f"statecfg apply {shlex.join(arguments)}")._replace(whole=True)


def asks(yes: bool, help: str = "Pass --yes.") -> bool:
    """Return whether to ask before making changes.

    :param yes: `--yes` was given
    :param help: what to do if statecfg can't ask
    :raises click.UsageError: statecfg must ask, but has no terminal
    """
    if not yes and not interactive():
        raise click.UsageError(f"Cannot ask for confirmation: stdin is not a terminal. {help}")
    return not yes


def agreed() -> bool:
    """Return whether --yes was given on the command line. The environment can't allow the removal of most resources."""
    return next_command.written("yes")


def end(finished: Finished, output: OutputOptions, problems: Sequence[str] = ()) -> int:
    """Show the outcome of a run and the store's problems; return the exit code."""
    for text in problems:
        click.echo(f"error: {text}", err=True)
    if finished.declined:
        click.echo("Nothing was changed.", err=True)
        return exit_codes.INTERRUPTED
    codes = [exit_codes.of_report(finished.report), exit_codes.STORE if problems else exit_codes.DONE]
    code = finished.stopped if finished.cancelled else exit_codes.worst(codes)
    with output_files.telling(code):
        show_outcome(finished, output)
    return code


def show_outcome(finished: Finished, output: OutputOptions) -> None:
    """Show what an apply did. Include the differences unless the user already saw them in the plan."""
    level = detail(output)._replace(done=not finished.asked)
    show.report(finished.report, outcome_lines(finished.report, level, finished.seconds), output)
