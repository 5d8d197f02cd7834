"""`statecfg store`: maintain the controller's database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from statecfg.cli import options
from statecfg.cli.options import VerbGroup

if TYPE_CHECKING:
    from statecfg.store.address import StoreAddress

EXAMPLES = """
statecfg store url                     print its location
statecfg store check                   check its integrity
statecfg store backup hosts.db         copy it, even while it is in use
statecfg store migrate                 upgrade an older PostgreSQL schema
"""


@click.group("store", cls=VerbGroup, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Maintain the controller's database: hosts, hook objects and their settings, the history of runs.

    The store is a SQLite file, created on first use, or a PostgreSQL database that a team shares.
    """
    context.obj = store


@command.command("url", examples="statecfg store url")
@click.pass_obj
def url(store: str | None) -> None:
    """Print the location of the store without its password. The store is neither opened nor created."""
    click.echo(_address(store).label)


@command.command("check", examples="statecfg store check")
@click.pass_obj
def check(store: str | None) -> None:
    """Check the integrity of the store. Exit 8 if it is damaged. Nothing is repaired."""
    from statecfg.store import StoreError, sqlite
    from statecfg.store.database import Store

    with Store(_address(store)) as opened:
        damage = opened.check()
        if damage:
            raise StoreError(f"{opened.label}: it is damaged:\n" + "\n".join(damage), sqlite.RESTORE)
        click.echo(f"{opened.label}: sound, schema {opened.schema()}")


@command.command("backup", examples="statecfg store backup /var/backups/statecfg.db")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Replace the file if it exists.")
@click.pass_obj
def backup(store: str | None, file: str, yes: bool) -> None:
    """Copy a SQLite store to FILE, even while it is in use. To restore the copy, put it in the place of the store."""
    from statecfg.store.database import Store

    target = Path(file).resolve()
    if target.exists() and not yes:
        raise click.UsageError(f"{file} already exists. --yes replaces it.")
    address = _address(store)
    if address.path is not None and target == address.path.resolve():
        raise click.UsageError(f"{file} is the store itself.")
    with Store(address) as opened:
        opened.backup(target)
    click.echo(f"{address.label} → {file}")


@command.command("migrate", examples="statecfg store migrate")
@click.pass_obj
def migrate(store: str | None) -> None:
    """Upgrade the schema of the store to this version. Older versions of statecfg then refuse the store.

    A SQLite file is upgraded when it is opened. A PostgreSQL database, which others may use, is upgraded only by this
    command.
    """
    from statecfg.store.database import Store

    with Store(_address(store), migrate=True) as opened:
        click.echo(f"{opened.label}: schema {opened.schema()}")


def _address(store: str | None) -> StoreAddress:
    from statecfg.playbook import project
    from statecfg.store import address

    return address.chosen(project.find(Path.cwd()), store)
