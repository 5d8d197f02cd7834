"""`statecfg store`: the controller's database itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from statecfg.cli import options
from statecfg.cli.options import Command, Group

if TYPE_CHECKING:
    from statecfg.store.address import Address

EXAMPLES = """
statecfg store url                     where it is
statecfg store check                   whether it is sound
statecfg store backup hosts.db         a copy, made while others write
statecfg store migrate                 bring an older PostgreSQL schema forward
"""


@click.group("store", cls=Group, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Look after the controller's database: hosts, hook objects and their settings, the history of runs.

    It is a SQLite file, made on first use, or a PostgreSQL database that a team shares.
    """
    context.obj = store


@command.command("url", cls=Command, examples="statecfg store url")
@click.pass_obj
def url(store: str | None) -> None:
    """Print where the store is, without a password. It is neither opened nor made."""
    click.echo(_address(store).shown)


@command.command("check", cls=Command, examples="statecfg store check")
@click.pass_obj
def check(store: str | None) -> None:
    """Look whether the store is sound: exit code 8 where it is not. Nothing is repaired."""
    from statecfg.store import StoreError, sqlite
    from statecfg.store.database import Store

    with Store(_address(store)) as opened:
        found = opened.check()
        if found:
            raise StoreError(f"{opened.shown}: it is damaged:\n" + "\n".join(found), sqlite.RESTORE)
        click.echo(f"{opened.shown}: sound, schema {opened.schema()}")


@command.command("backup", cls=Command, examples="statecfg store backup /var/backups/statecfg.db")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Replace the file if there is one.")
@click.pass_obj
def backup(store: str | None, file: str, yes: bool) -> None:
    """Copy a SQLite store into FILE, while others write to it. To use it, put it where the store was."""
    from statecfg.store.database import Store

    target = Path(file).resolve()
    if target.exists() and not yes:
        raise click.UsageError(f"{file} is there already. --yes replaces it.")
    address = _address(store)
    if address.path is not None and target == address.path.resolve():
        raise click.UsageError(f"{file} is the store itself.")
    with Store(address) as opened:
        opened.backup(target)
    click.echo(f"{address.shown} → {file}")


@command.command("migrate", cls=Command, examples="statecfg store migrate")
@click.pass_obj
def migrate(store: str | None) -> None:
    """Bring the schema of the store forward to this version's. Versions before it refuse the store from then on.

    A SQLite file is brought forward when it is opened; a PostgreSQL database, which others may use, only by this.
    """
    from statecfg.store.database import Store

    with Store(_address(store), migrate=True) as opened:
        click.echo(f"{opened.shown}: schema {opened.schema()}")


def _address(store: str | None) -> Address:
    from statecfg.playbook import project
    from statecfg.store import address

    return address.chosen(project.find(Path.cwd()), store)
