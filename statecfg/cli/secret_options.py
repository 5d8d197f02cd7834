"""The options of commands that need the values of encrypted secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def secret_keys(function: F) -> F:
    """Add the options that name the keys of encrypted secrets. Their values are fields of `options.Selection`."""
    age = click.option(
        "--age-identity",
        "age_identities",
        metavar="FILE",
        multiple=True,
        type=click.Path(),
        envvar="STATECFG_AGE_IDENTITY",
        help="File with an age identity or an SSH private key that decrypts secrets. Repeatable.",
    )
    vault = click.option(
        "--vault-id",
        "vault_ids",
        metavar="[LABEL@]SOURCE",
        multiple=True,
        callback=_vault_ids,
        envvar="STATECFG_VAULT_ID",
        help="Ansible Vault password: a file, a program that prints it, or LABEL@prompt. Repeatable. Default: ask "
        "if a secret needs it.",
    )
    return vault(age(function))


def _vault_ids(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values.

    :raises click.BadParameter: a value has no source
    """
    for text in value:
        if not text or text.endswith("@"):
            raise click.BadParameter(f"`{text}` names no source: write PATH, LABEL@PATH or LABEL@prompt")
    return value
