"""`statecfg completion`: print a shell completion script."""

from __future__ import annotations

import click

from statecfg.cli.options import Command

EXAMPLES = """
eval "$(statecfg completion bash)"                                   put this into ~/.bashrc
eval "$(statecfg completion zsh)"                                    put this into ~/.zshrc
statecfg completion fish > ~/.config/fish/completions/statecfg.fish  run once
"""


@click.command("completion", cls=Command, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a shell completion script for verbs, options, files, hosts, groups, tags and units."""
    from click.shell_completion import get_completion_class

    from statecfg.cli.main import COMPLETION, statecfg

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(statecfg, {}, "statecfg", COMPLETION).source())
