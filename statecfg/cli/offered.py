"""Shell completion of hosts, groups, tags, services, units and plan files.

Completion runs no programs, opens no connections and creates no files. It ignores errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from statecfg import dialects

_PATTERN = re.compile(r"(?P<before>.*[,:])?(?P<sign>[!&]?)(?P<name>[^,:]*)", re.S)
# Matches `tags: [a, b]`, `tags=["a"]`, `:tags ["a"]`, `tags: a`, and a list with one tag per line.
_TAGS = re.compile(r"""\btags["']?[ \t]*[:=]?[ \t]*(?:\[([^\]]*)\]|((?:\n\s*-\s*\S+)+)|([\w.-]+))""")
_WORD = re.compile(r"[\w.-]*\w")
_INCLUDE = re.compile(r"\binclude:\s*(?:\[([^\]]*)\]|(\S+))")
_LARGEST = 1 << 20  # maximum number of bytes of a playbook that are searched for tags
_HEAD = 200


def hosts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of a pattern: with the hosts and groups of the inventory."""
    match = _PATTERN.fullmatch(incomplete)
    if match is None:
        return []
    before = (match["before"] or "") + match["sign"]
    return [before + name for name in _hosts(context.params.get("inventory")) if name.startswith(match["name"])]


def _hosts(file: str | None) -> list[str]:
    from statecfg.playbook import project, secrets
    from statecfg.playbook.inventory import ALL
    from statecfg.problems import InvalidInput

    try:
        with secrets.placeholders():
            inventory = dialects.inventory(project.find(Path.cwd()), Path(file) if file else None)
            return [ALL, *sorted({*inventory.groups, *(host.name for host in inventory.select(ALL))} - {ALL})]
    except (InvalidInput, OSError):
        return []


def tags(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the tags that occur in the playbook and in the files that it includes by name."""
    before, comma, word = incomplete.rpartition(",")
    # Until `-t` has a value, click leaves the earlier arguments in `args`.
    names = (context.params.get("playbook"), context.params.get("source"), *context.args)
    playbook = next((word for word in names if isinstance(word, str) and os.path.isfile(word)), None)
    all_tags = {tag for text in _texts(playbook) for tag in _tags(text)} if playbook else set()
    return [before + comma + tag for tag in sorted(all_tags) if tag.startswith(word)]


def _texts(playbook: str) -> Iterator[str]:
    left, seen = [Path(playbook)], set[Path]()
    while left:
        path = left.pop()
        if path in seen or len(seen) > 100:
            continue
        seen.add(path)
        try:
            with path.open("rb") as stream:
                text = stream.read(_LARGEST).decode("utf-8", "replace")
        except OSError:
            continue
        yield text
        for many, one in _INCLUDE.findall(text):
            left += [path.parent / name.strip(" \"'") for name in (many or one).split(",")]


def _tags(text: str) -> Iterator[str]:
    for groups in _TAGS.findall(text):
        for group in groups:
            yield from _WORD.findall(group)


def units(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the units of the project that the store knows."""
    return [name for name in _services_and_units(context)[1] if name.startswith(incomplete)]


def services(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the services of the project that the store knows."""
    return [name for name in _services_and_units(context)[0] if name.startswith(incomplete)]


def services_and_units(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the services and the units of the project that the store knows."""
    return services(context, parameter, incomplete) + units(context, parameter, incomplete)


def _services_and_units(context: click.Context) -> tuple[list[str], list[str]]:
    from statecfg.cli.service_store import ServiceStore
    from statecfg.playbook import project
    from statecfg.problems import InvalidInput
    from statecfg.store import StoreError, address

    url: Any = context.params.get("store") or (context.parent.params.get("store") if context.parent else None)
    try:
        if not address.chosen(project.find(Path.cwd()), url).there():
            return [], []
        with ServiceStore(url) as store:
            return list(store.snapshot.services), list(store.snapshot.units)
    except (InvalidInput, StoreError, OSError):
        return [], []


def plans(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the saved plans in a directory. If it has none, let the shell offer its files."""
    folder, name = os.path.split(incomplete)
    try:
        entries = sorted(entry for entry in os.listdir(folder or ".") if entry.startswith(name))
    except OSError:
        entries = []
    paths = [os.path.join(folder, entry) for entry in entries if _is_plan(os.path.join(folder, entry))]
    return [CompletionItem(path) for path in paths] or [CompletionItem(incomplete, type="file")]


def _is_plan(path: str) -> bool:
    from statecfg.run.saved import plan_file

    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as stream:
            return plan_file.is_plan(stream.read(_HEAD))
    except OSError:
        return False
