"""The arguments of a command that does what a plan shows."""

from __future__ import annotations

import click

from statecfg.cli.options import ConnectionOptions, Selection


def written(option: str) -> bool:
    """Return whether an option is on the command line, and not only in the environment."""
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def apply_arguments(playbook: str, chosen: Selection, how: ConnectionOptions) -> list[str]:
    """Return the arguments for the same selection. Values of variables become `…`, because they may be secrets."""
    arguments = [playbook]
    for flag, value in (("-i", chosen.inventory), ("-l", chosen.limit)):
        arguments += [flag, value] if value else []
    for flag, values in (("-t", chosen.tags), ("-e", chosen.extra_vars)):
        for value in values:
            arguments += [flag, value if flag == "-t" or value.startswith("@") else "…"]
    arguments += ["--max-fact-age", chosen.max_fact_age] if chosen.max_fact_age else []
    arguments += ["--prune"] if chosen.prune else []
    arguments += ["--prune-hosts", "--yes"] if chosen.prune_hosts else []
    return arguments + key_arguments(chosen) + connection_arguments(how)


def key_arguments(chosen: Selection) -> list[str]:
    """Return the arguments for the same keys of encrypted secrets."""
    named = (("--vault-id", chosen.vault_ids), ("--age-identity", chosen.age_identities))
    return [text for flag, values in named for value in values for text in (flag, value)]


def history_arguments(how: ConnectionOptions) -> list[str]:
    """Return the arguments with which `run-history` reaches the hosts of the present command."""
    inventory = click.get_current_context().params.get("inventory")
    return [*(["-i", inventory] if inventory else []), *_login_arguments(how)]


def connection_arguments(how: ConnectionOptions, saved: bool = False) -> list[str]:
    """Return the arguments for the same connection options and store.

    :param saved: a saved plan is applied, which contains all connection options except `-K`
    """
    arguments = ["-K"] * how.ask_become_pass if saved else _login_arguments(how)
    return [*arguments, "--store", click.get_current_context().params["store"]] if written("store") else arguments


def _login_arguments(how: ConnectionOptions) -> list[str]:
    options = (("-u", how.user), ("--become-user", how.become_user), ("--ssh-config", how.ssh_config))
    arguments = [text for flag, value in options if value for text in (flag, value)]
    return [*arguments, *["-b"] * bool(how.become), *["-K"] * how.ask_become_pass]
