"""The options of a saved plan, where it is applied: the plan's, with paths in the present copy of the project."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from statecfg.cli import save_plan
from statecfg.cli.options import ConnectionOptions, Selection
from statecfg.playbook.project import Project
from statecfg.playbook.secret_keys import Keys
from statecfg.run.saved.model import SavedPlan

# Field of a selection → its option on the command line.
_FLAGS = {"limit": "--limit", "tags": "--tags", "extra_vars": "--extra-vars", "prune": "--prune"}


def selection(plan: SavedPlan, project: Project, requested: Selection, moved: dict[str, Path]) -> Selection:
    """Return the plan's selection, with paths in this project.

    The command line may name an inventory or a file of variables again. Its content must be the same.

    :param moved: is filled with these files: path in the plan → file
    :raises click.UsageError: an option contradicts the plan
    """
    choices = plan["choices"]
    inventory = choices.get("inventory")
    if requested.inventory:
        was = [entry["path"] for entry in plan["inputs"] if entry["kind"] == "inventory"]
        moved.update((path, Path(os.path.abspath(requested.inventory))) for path in was)
        inventory = os.path.abspath(requested.inventory)
    elif inventory:
        inventory = str(project.root / inventory)
    variables = [f"@{project.root / text[1:]}" if text.startswith("@") else text for text in choices["extra_vars"]]
    if requested.extra_vars:
        files = [text for text in choices["extra_vars"] if text.startswith("@")]
        again = [os.path.abspath(text[1:]) for text in requested.extra_vars if text.startswith("@")]
        in_words = [text for text in requested.extra_vars if not text.startswith("@")]
        if len(again) != len(files) or in_words != [text for text in choices["extra_vars"] if text[:1] != "@"]:
            raise _contradiction("--extra-vars", choices["extra_vars"])
        paths = dict(zip(files, again, strict=True))
        moved.update((text[1:], Path(path)) for text, path in paths.items())
        variables = [f"@{paths[text]}" if text in paths else text for text in choices["extra_vars"]]
    for field in ("limit", "tags", "prune"):
        value, planned = getattr(requested, field), choices.get(field)
        if value and value != (tuple(planned) if isinstance(planned, list) else planned):
            raise _contradiction(_FLAGS[field], planned)
    # Another directory may be the current one when the playbook is compiled.
    keys = Keys.of(requested.vault_ids, requested.age_identities, Path.cwd())
    return Selection(
        inventory,
        choices.get("limit"),
        tuple(choices["tags"]),
        tuple(variables),
        choices["prune"],
        max_fact_age=requested.max_fact_age,
        vault_ids=tuple(map("@".join, keys.vault_ids)),
        age_identities=keys.age_identities,
    )


def _contradiction(flag: str, planned: Any) -> click.UsageError:
    if isinstance(planned, list | tuple):
        planned = ",".join(map(str, planned))
    choice = f"with {flag}" + ("" if planned is True else f" {planned}") if planned else f"without {flag}"
    return click.UsageError(
        f"{flag} contradicts the plan, which was made {choice}. A plan is applied unchanged: omit {flag} here "
        "(on the command line and in the environment), or plan again with it."
    )


def connection(plan: SavedPlan, project: Project, requested: ConnectionOptions) -> ConnectionOptions:
    """Return the connection options with those that the plan contains.

    :raises click.UsageError: an option contradicts the plan
    """
    choices = plan["choices"]
    for key in save_plan.REMEMBERED:
        value = getattr(requested, key)
        if value is not None and value != choices.get(key):
            raise _contradiction("--" + key.replace("_", "-"), choices.get(key))
    config = choices.get("ssh_config")
    if requested.ssh_config is not None or not config:
        config = requested.ssh_config
    elif config != "none":
        config = str(project.root / config)
    become, become_user = choices.get("become"), choices.get("become_user")
    return replace(requested, become=become, become_user=become_user, user=choices.get("user"), ssh_config=config)
