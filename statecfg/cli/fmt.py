"""`statecfg fmt`: lay out YAML files."""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from statecfg.cli import exit_codes
from statecfg.cli.options import Command

if TYPE_CHECKING:
    from statecfg.playbook.project import Project

EXAMPLES = """
statecfg fmt                          lay out the playbooks and the inventory of this project
statecfg fmt playbooks/web.yml        one file
statecfg fmt --check --diff           show what would change, and exit with 2 if anything would
statecfg fmt -                        read standard input and write standard output, as editors do
"""
ENDINGS = (".yml", ".yaml")


@click.command("fmt", cls=Command, examples=EXAMPLES)
@click.argument("files", metavar="[FILE|DIRECTORY]…", nargs=-1, type=click.Path(exists=True, allow_dash=True))
@click.option("--check", is_flag=True, help="Write nothing. Exit with 2 if a file would change.")
@click.option("--diff", is_flag=True, help="Show the differences.")
def command(files: tuple[str, ...], check: bool, diff: bool) -> int:
    """Format YAML files: two spaces for each level, lists indented, one space after colons and dashes.

    Comments, blank lines, order, quotes and line breaks stay. Without arguments, formats all YAML files in the
    project's playbooks/, and the inventory if it is a YAML file in statecfg's own format.

    A file is replaced in one step, and only if its data stays the same. If a file is not valid YAML, nothing is
    written, and the exit status is 5.
    """
    from statecfg.dialects import yaml_layout
    from statecfg.playbook import project
    from statecfg.problems import InvalidInput

    if files == ("-",):
        return _stream(check, diff)
    texts: dict[Path, tuple[str, str]] = {}
    problems = []
    for path in _found(files, project.find(Path.cwd())):
        try:
            text = _read(path)
            texts[path] = (text, yaml_layout.laid_out(text, str(path)))
        except InvalidInput as wrong:
            problems += wrong.problems
        except yaml_layout.OtherData:
            raise click.ClickException(_OTHER.format(path)) from None
    if problems:
        raise InvalidInput(problems)
    changed = {path: pair for path, pair in texts.items() if pair[0] != pair[1]}
    for path, (before, after) in changed.items():
        if not check:
            _write(path, after)
        sys.stdout.write(_difference(path, before, after) if diff else "")
        sys.stdout.write(f"{'would format' if check else 'formatted'} {path}\n")
    if not changed:
        sys.stdout.write(f"{len(texts)} file{'' if len(texts) == 1 else 's'} already formatted\n")
    return exit_codes.PENDING if check and changed else exit_codes.DONE


_OTHER = "{} can't be formatted without changing its data, so it stays as it is. Please report this file."


def _stream(check: bool, diff: bool) -> int:
    from statecfg.dialects import yaml_layout

    before = sys.stdin.read()
    try:
        after = yaml_layout.laid_out(before, "standard input")
    except yaml_layout.OtherData:
        raise click.ClickException(_OTHER.format("standard input")) from None
    sys.stdout.write(_difference(Path("-"), before, after) if diff else "" if check else after)
    return exit_codes.PENDING if check and before != after else exit_codes.DONE


def _found(names: Sequence[str], project: Project) -> Iterator[Path]:
    """Yield the files to format, each once."""
    from statecfg.dialects import inventories

    chosen = [Path(name) for name in names]
    if not names:
        inventory = project.inventory_file
        own = [inventory] if inventory and inventories.is_own(inventory) else []
        chosen = [Path(os.path.relpath(path)) for path in (project.root / "playbooks", *own) if path.exists()]
    every = (path for one in chosen for path in (_below(one) if one.is_dir() else [one]))
    yield from dict.fromkeys(every)


def _below(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.suffix in ENDINGS and path.is_file())


def _read(path: Path) -> str:
    from statecfg.dialects import yaml_text

    return yaml_text.text_of(path)


def _write(path: Path, text: str) -> None:
    """Replace a file in one step; a link stays, and so do the permissions."""
    from statecfg.remote.machine import durable

    target = path.resolve()
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
        durable.replace(str(target), [text.encode()], mode)
        os.chmod(target, mode)
    except OSError as problem:
        raise click.FileError(str(path), problem.strerror or str(problem)) from problem


def _difference(path: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), str(path), n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
