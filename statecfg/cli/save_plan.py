"""Save plans, with everything that any machine needs to check later whether a plan is still valid."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.cli.main import VERSION
from statecfg.cli.options import ConnectionOptions, Selection

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.problems.inputs import Inputs
    from statecfg.run.prepare import Work
    from statecfg.run.saved.model import Choices, SavedPlan

REMEMBERED = ("become", "become_user", "user")  # the connection options that a plan contains as they are


def save(
    path: Path,
    work: Work,
    chosen: Selection,
    how: ConnectionOptions,
    report: Mapping[str, Any],
    read: Inputs,
    store: str,
) -> None:
    """Save a plan with everything needed to check later, on any machine, whether it is still valid.

    :param report: the report of the plan, redacted
    :param read: the input files of the compiled playbook
    :param store: the identity of the store; "" for a playbook that needs none
    :raises InvalidInput: the file can't be written, or a variable on the command line contains a secret
    """
    from statecfg.run.saved import digests, origin, plan_file

    project, complete = work.project, work.completed
    secrets = complete.secrets
    _refuse_secrets(chosen, secrets)
    salt = os.urandom(16).hex()
    defined = digests.definitions(complete.jobs, secrets)
    hosts = {job.host.name: job.host for job in work.jobs}
    plan: SavedPlan = {
        "run": report.get("run", ""),
        "made": origin.origin(project.root, [file for _, file, _ in read]),
        "project": project.name,
        "playbook": project.relative(work.playbook or Path()),
        "directory": _inside(Path.cwd(), project),
        "store": store,
        "salt": salt,
        "executor": digests.executor(work.jobs),
        "choices": _choices(chosen, how, project),
        "inputs": [
            {"kind": category, "path": project.relative(Path(file)), "sha256": sha} for category, file, sha in read
        ],
        "secrets": digests.of_secrets(secrets),
        "hosts": {
            name: {
                **defined[name],
                "inventory": digests.of_host(hosts[name], salt),
                "report": host,
                "facts": digests.of_facts(work.facts.used(name)),
            }
            for name, host in report["hosts"].items()
            if name in defined
        },
    }
    plan_file.write(path, plan_file.text(plan, VERSION))


def store_of(work: Work, store: str | None) -> str:
    """Return the identity of the store with the units of a playbook's services.

    :param store: the address of the store; None for the default
    :raises StoreError: the store can't be used
    """
    from statecfg.store import identity

    return identity.of(work.project, store)


def _refuse_secrets(chosen: Selection, secrets: Mapping[str, str]) -> None:
    from statecfg.problems import InvalidInput, problem
    from statecfg.remote.machine.redact import Redactor

    redactor = Redactor(secrets)
    for text in chosen.extra_vars:
        if redactor.text(text) != text:
            detail = f"-e {redactor.text(text)}: the plan file would contain this value, and with it a secret"
            raise InvalidInput([problem("SC0430", detail, "declare it as a secret: `!secret {env: NAME}`")])


def _choices(chosen: Selection, how: ConnectionOptions, project: Project) -> Choices:
    variables = ["@" + _portable(text[1:], project) if text.startswith("@") else text for text in chosen.extra_vars]
    complete = how.with_settings(project.settings)
    config = how.ssh_config
    return {
        "inventory": _portable(chosen.inventory, project) if chosen.inventory else None,
        "limit": chosen.limit,
        "tags": list(chosen.tags),
        "extra_vars": variables,
        "prune": chosen.prune,
        "prune_hosts": chosen.prune_hosts,
        "become": complete.become,
        "become_user": complete.become_user,
        "user": complete.user,
        "ssh_config": _portable(config, project) if config and config != "none" else config,
    }


def _portable(text: str, project: Project) -> str:
    """Return a path that is valid in any checkout: relative to the project, unless `text` is absolute and outside."""
    path = Path(os.path.abspath(text))
    if path.is_relative_to(project.root) or not os.path.isabs(text):
        return os.path.relpath(path, project.root)
    return str(path)


def _inside(path: Path, project: Project) -> str:
    return str(path.relative_to(project.root)) if path.is_relative_to(project.root) else "."
