"""`statecfg roles`: show roles and their parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from statecfg.cli import exit_codes, options, output_files
from statecfg.cli.options import Command

EXAMPLES = """
statecfg roles                              all roles, and where each comes from
statecfg roles web                          the parameters of a role
statecfg roles web --markdown -o web.md     the same as a page for your docs
"""


@click.command("roles", cls=Command, examples=EXAMPLES)
@click.argument("names", metavar="[NAME…]", nargs=-1)
@click.option("--markdown", is_flag=True, help="Print pages in Markdown.")
@click.option("-o", "--output", "target", metavar="FILE", type=click.Path(dir_okay=False), help="Write to this file.")
@options.no_color_option
def command(names: tuple[str, ...], markdown: bool, target: str | None, no_color: bool) -> int:
    """Show the roles that the project in the current directory can use, and their parameters.

    Without NAME, lists the roles of the project, of its `roles_path` and of installed packages. With NAME, shows the
    parameters: types, defaults and descriptions. With --markdown, the output is a page for each role.
    """
    from statecfg.dialects import role_files
    from statecfg.playbook import project
    from statecfg.views import roles as view
    from statecfg.views import stream
    from statecfg.views.lines import plain

    root = str(project.find(Path.cwd()).root)
    roles = role_files.described(root, names)
    if markdown:
        text = view.pages(roles)
    else:
        lines = [line for role in roles for line in view.role_lines(role)] if names else list(view.table_lines(roles))
        if target is None:
            stream.write(lines, sys.stdout, stream.coloured(sys.stdout, no_color))
            return exit_codes.DONE
        text = plain(lines)
    if target is None:
        click.echo(text, nl=False)
    else:
        output_files.into_file(target, text.encode())
    return exit_codes.DONE
