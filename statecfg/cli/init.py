"""`statecfg init`: create a project that works immediately."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from statecfg.cli import exit_codes
from statecfg.cli.options import Command

EXAMPLES = """
statecfg init demo     create a project in ./demo
statecfg init          create a project in this directory
"""

# The file → the name of its schema: its first line tells editors where the schema is.
SCHEMAS = {"statecfg.toml": "settings", "inventory.yml": "inventory", "playbooks/hello.yml": "playbook"}
FILES = {
    "statecfg.toml": """\
# Settings of this project; its directory is where playbooks look for files and templates.
inventory = "inventory.yml"
""",
    "inventory.yml": """\
# The machines, and groups of them. Without an address, statecfg connects to the host's name.
# Other settings come from ~/.ssh/config, as for ssh itself.
hosts:
  "@local":             # this machine
  # web1:
  #   address: 192.0.2.10
  #   user: deploy
  #   become: true
# groups:
#   web:
#     hosts: [web1]
#     vars:
#       port: 8080
""",
    "playbooks/hello.yml": """\
# The wanted state of these hosts. Preview:  statecfg plan playbooks/hello.yml
# Apply it:                                  statecfg apply playbooks/hello.yml
hosts: "@local"
vars:
  directory: /tmp/statecfg-hello
resources:
  - directory: "{{ directory }}"
    mode: "0755"
  - file: "{{ directory }}/hello.txt"
    content: "Hello from statecfg.\\n"
    mode: "0644"
    requires: ["directory:{{ directory }}"]
""",
    "resources/README.md": """\
Put your own node types here, one Python or Hy file each. Playbooks use them like the built-in ones.
""",
}


@click.command("init", cls=Command, examples=EXAMPLES)
@click.argument("directory", default=".", type=click.Path(file_okay=False))
def command(directory: str) -> int:
    """Create a project in DIRECTORY: an inventory and a playbook that works immediately, on this machine.

    Also writes the schemas from which editors learn what these files can contain (`statecfg schema --write`). Never
    overwrites files: if one of the files already exists, nothing is written.
    """
    from statecfg.editors import files
    from statecfg.playbook import project
    from statecfg.problems import InvalidInput

    base = Path(directory)
    standing = [name for name in FILES if (base / name).exists() or (base / name).is_symlink()]
    if standing:
        click.echo(
            f"error: {', '.join(standing)} exist{'s' if len(standing) == 1 else ''} in {base}; nothing was written.",
            err=True,
        )
        return exit_codes.BAD_INPUT
    for name, text in FILES.items():
        path = base / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            first = files.line(SCHEMAS[name], name) if name in SCHEMAS else ""
            path.write_text(first + text, encoding="utf-8")
        except OSError as problem:
            raise click.FileError(str(path), problem.strerror or str(problem)) from problem
        sys.stdout.write(f"created {path}\n")
    try:
        for path in files.write(project.Project(base.resolve())):
            sys.stdout.write(f"created {base / path.relative_to(base.resolve())}\n")
    except InvalidInput:  # a node type that was there before
        sys.stdout.write("No schemas for editors: a node type is wrong. See statecfg schema --write.\n")
    except OSError as problem:
        raise click.FileError(str(base / files.DIRECTORY), problem.strerror or str(problem)) from problem
    change = "" if base.resolve() == Path.cwd() else f"cd {base} && "
    sys.stdout.write(f"\nNext:  {change}statecfg plan playbooks/hello.yml\n")
    return exit_codes.DONE
