"""`statecfg serve`: serve the HTTP API and the page until a signal ends it."""

from __future__ import annotations

import logging
import os
import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from statecfg.cli import exit_codes, options
from statecfg.cli.entity import access as entity_access
from statecfg.cli.options import VerbGroup
from statecfg.problems.frozen import dataclass

if TYPE_CHECKING:
    import socket
    import ssl

    from statecfg.problems import Problem

PORT = 8470
EXAMPLES = """
statecfg serve                                                 on http://127.0.0.1:8470, for this machine only
statecfg serve token create alice --role author --org shop     create a token for a user
statecfg serve --bind 0.0.0.0 --tls-cert c.pem --tls-key k.pem --allow-host entities.example.com
"""


@dataclass(frozen=True)
class Serving:
    """The options of `statecfg serve`.

    :param bind: an address or a host name
    :param port: 0 for any free port
    :param tls_cert: a PEM file with the certificate and its chain
    :param tls_key: a PEM file
    :param allow_host: more host names that clients may use for the server
    """

    bind: str
    port: int
    tls_cert: str | None
    tls_key: str | None
    allow_host: tuple[str, ...]


@click.group("serve", cls=VerbGroup, examples=EXAMPLES, invoke_without_command=True)
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", help="Listen on this address. Default: 127.0.0.1.")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=PORT,
    help=f"Listen on this port; 0 chooses a free port. Default: {PORT}.",
)
@click.option("--tls-cert", metavar="FILE", type=click.Path(), help="The server's certificate, with its chain (PEM).")
@click.option("--tls-key", metavar="FILE", type=click.Path(), help="The key of the certificate (PEM).")
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="Also answer requests for this host name, besides localhost and the bind address. Repeatable.",
)
@options.store_option
@click.pass_context
def command(context: click.Context, /, store: str | None, **values: object) -> int | None:
    """Serve the entity API and the page that shows hosts, runs, entities and tasks.

    Every request needs a token; create one with `statecfg serve token create`. Without TLS only this machine can
    connect. The server runs until SIGTERM or Ctrl-C.
    """
    context.obj = store
    if context.invoked_subcommand is not None:
        return None
    return _serve(options.take(Serving, dict(values)), store)


command.add_command(entity_access.token)


def _serve(how: Serving, url: str | None) -> int:
    from statecfg import store
    from statecfg.playbook import project
    from statecfg.problems import report
    from statecfg.server import auth, running

    problems, tls = _problems(how)
    report(*problems)
    logging.basicConfig(format="statecfg serve: %(message)s", level=logging.WARNING)
    here = project.find(Path.cwd())
    with store.opened(here, url) as opened, _listener(how) as listener:
        address = running.address(listener, how.bind, tls is not None)

        def ready() -> None:
            click.echo(f"statecfg serves on {address}. Press Ctrl-C to stop.")
            click.echo(f"It accepts these host names: {', '.join(sorted(guard.hosts))}.")
            if how.bind.strip("[]") in auth.EVERYWHERE:
                click.echo("If other machines use another name, allow it with --allow-host NAME.")
            click.echo("Create a token: statecfg serve token create NAME --role author --org ORG")

        guard = auth.OriginGuard.for_address(how.bind, how.allow_host)
        ended = running.serve(listener, here, opened, guard, ready, tls)
    return exit_codes.INTERRUPTED if ended == signal.SIGINT else exit_codes.DONE


def _problems(how: Serving) -> tuple[list[Problem], ssl.SSLContext | None]:
    """Return the problems of the command line, and the TLS context (None without TLS)."""
    from statecfg.problems import problem
    from statecfg.server import auth, running

    if (how.tls_cert is None) != (how.tls_key is None):
        return [problem("SC0450", "--tls-cert and --tls-key belong together.", "Give both, or neither.")], None
    if how.tls_cert is None or how.tls_key is None:
        if auth.is_loopback(how.bind):
            return [], None
        detail = f"--bind {how.bind} can be reached from other machines, which would send their tokens unencrypted."
        return [problem("SC0450", detail, "Pass --tls-cert and --tls-key, or omit --bind.")], None
    certificate, key = Path(how.tls_cert), Path(how.tls_key)
    try:
        mode = os.stat(key).st_mode
        if stat.S_IMODE(mode) & 0o007:
            return [problem("SC0450", f"{key} can be read or changed by every user.", f"chmod o= {key}")], None
        return [], running.context(certificate, key)
    except OSError as failed:
        detail = f"TLS can't use {certificate} and {key}: {failed.strerror or failed}"
        return [problem("SC0450", detail, "Both must be PEM files, and the key must belong to the certificate.")], None


def _listener(how: Serving) -> socket.socket:
    from statecfg.problems import problem, report
    from statecfg.server import running

    try:
        return running.listen(how.bind, how.port)
    except OSError as failed:
        why = (failed.strerror or str(failed)).partition(" (while attempting")[0]  # the message has the address
        detail = f"can't listen on {how.bind} port {how.port}: {why}"
        report(problem("SC0450", detail, "Choose another --port, or 0 for any. --bind needs an address of this host."))
        raise
