"""`statecfg schema`: JSON Schemas for editors."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from statecfg.cli import exit_codes
from statecfg.cli.options import Command

EXAMPLES = """
statecfg schema --write           write the schemas that the first line of each file names
statecfg schema                   print the schema of playbooks
statecfg schema inventory         print the schema of inventories
"""
SCHEMA_NAMES = ("playbook", "include", "role", "inventory", "settings")


@click.command("schema", cls=Command, examples=EXAMPLES)
@click.argument("kind", type=click.Choice(SCHEMA_NAMES), required=False)
@click.option("--write", is_flag=True, help="Write all schemas into .statecfg/, and statecfg_project.pyi.")
def command(kind: str | None, write: bool) -> int:
    """Print a JSON Schema for editors.

    KIND is playbook (the default), include (a file that playbooks include), role (role.yml), inventory or settings
    (statecfg.toml). The schemas contain the node types of this project, the names of its nodes, hosts and groups, and
    the descriptions of all attributes. Run it with --write again after you add a node type or a host. It also writes
    statecfg_project.pyi, from which type checkers learn the attributes of the project's own node types.

    Editors find the schema of a file by its first line, which `statecfg init` writes:
    `# yaml-language-server: $schema=../.statecfg/playbook.json`.
    """
    if write and kind:
        raise click.UsageError("--write writes all schemas. Leave out KIND.")
    from statecfg.editors import files
    from statecfg.playbook import project

    here = project.find(Path.cwd())
    if not write:
        sys.stdout.write(files.text(kind or "playbook", here))
        return exit_codes.DONE
    try:
        written = list(files.write(here))
    except OSError as error:
        raise click.FileError(error.filename or str(here.root), error.strerror or str(error)) from error
    for path in written:
        sys.stdout.write(f"wrote {path.relative_to(here.root)}\n")
    if not written:
        sys.stdout.write("The schemas are up to date.\n")
    return exit_codes.DONE
