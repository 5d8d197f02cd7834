"""`statecfg graph`: draw the requirements between resources."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, file_types, known_facts, options, output_files
from statecfg.cli.options import Command, Selection, take

EXAMPLES = """
statecfg graph playbooks/web.yml                              layers as text
statecfg graph playbooks/web.yml -o web.svg                   a picture (also .png, with the extra "png")
statecfg graph playbooks/web.yml --format mermaid             for Markdown
statecfg graph playbooks/web.yml --format dot | dot -Tpdf     for Graphviz
"""
FORMATS = ("text", "dot", "mermaid", "svg", "png")


@click.command("graph", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=file_types.PlaybookFile())
@options.selection
@click.option(
    "--format",
    "picture_format",
    type=click.Choice(FORMATS),
    help="Output format. Default: from the file extension of -o, or text.",
)
@click.option("-o", "--output", "target", metavar="FILE", type=click.Path(dir_okay=False), help="Write to this file.")
@known_facts.facts_option
@options.no_color_option
def command(
    playbook: str, picture_format: str | None, target: str | None, facts: str | None, no_color: bool, **values: Any
) -> int:
    """Draw the requirements between resources, as text or as a picture. No host is contacted.

    Resources are arranged in layers. The resources of a layer can be applied concurrently once the earlier layers are
    done. Hosts with the same graph are drawn once. `⇠`, or a dotted line, marks a requirement that is not in the
    playbook: statecfg adds it because one resource needs another: for example, a file needs its directory.

    Resources that depend on facts of a host are drawn only with --facts.
    """
    chosen: Selection = take(Selection, values)
    picture_format = picture_format or _of_name(target)
    if picture_format == "png" and target is None and sys.stdout.isatty():
        raise click.UsageError("Cannot print a PNG picture to a terminal. Name a file with -o.")
    from statecfg.cli import session
    from statecfg.run.prepare import offline
    from statecfg.views import drawing, pictures, safe

    recorded = known_facts.read(facts, Path(playbook))
    choice = session.choice(chosen)
    choice = replace(choice, known=replace(choice.known, facts=recorded))
    work = session.warned(offline(Path(playbook), choice))
    for note in known_facts.notes(work):
        click.echo(f"note: {safe.line(note)}", err=True)
    automatic = {job.host.name: job.definition.automatic for job in work.jobs}
    drawings = drawing.fold(((job.host.name, job.definition.layers) for job in work.jobs), automatic)
    if picture_format == "text":
        _text(pictures.text_lines(drawings), target, no_color)
        return exit_codes.DONE
    _put(pictures.draw(picture_format, drawings), target)
    return exit_codes.DONE


def _of_name(target: str | None) -> str:
    ending = Path(target).suffix[1:].lower() if target else ""
    formats = {"gv": "dot", "mmd": "mermaid", "txt": "text"}
    ending = formats.get(ending, ending)
    return ending if ending in FORMATS else "text"


def _text(lines: Any, target: str | None, no_color: bool) -> None:
    from statecfg.views import stream
    from statecfg.views.lines import plain

    if target:
        _put(plain(lines).encode(), target)
    else:
        stream.write(lines, sys.stdout, stream.coloured(sys.stdout, no_color))


def _put(data: bytes, target: str | None) -> None:
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return

    output_files.into_file(target, data)
