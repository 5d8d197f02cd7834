"""Load the registrations of a project: the files `hooks/*.yml`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.dialects import yaml_text
from statecfg.hooks.registration import yaml
from statecfg.hooks.registration.model import Registration
from statecfg.playbook import trust
from statecfg.problems import InvalidInput, collecting, problem, report, reporting
from statecfg.problems.positions import SourceLocation

if TYPE_CHECKING:
    from statecfg.playbook.project import Project


def load(project: Project) -> list[Registration]:
    """Return the registrations of a project, by order and name; [] if it has no `hooks/`.

    :raises InvalidInput: all errors in them: shapes, names, values, and files that other users could change
    """
    folder = project.root / "hooks"
    if not folder.is_dir():
        return []
    found: list[Registration] = []
    with collecting() as wrong, reporting():
        _refuse_foreign(folder)
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml")):
            with reporting():
                _refuse_foreign(path)
                made = _read(path, project.relative(path))
                if made is not None:
                    found.append(made)
        _refuse_twins(found)
    if wrong:
        changeable = [each for each in wrong if each.code == "SC0601"]
        rest = [each for each in wrong if each.code != "SC0601"]
        one = [trust.together(changeable)] if changeable else []
        raise InvalidInput(sorted([*rest, *one], key=lambda item: item.places[:1]))
    return sorted(found, key=lambda each: (each.order, each.name))


def _read(path: Path, shown: str) -> Registration | None:
    root = yaml_text.load(path, yaml.SHAPE, shown)
    return yaml.parse(root)


def _refuse_foreign(path: Path) -> None:
    """Report a path that other users could change. Source: promise E5; CVE-2018-10875."""
    try:
        found = path.stat()
    except OSError as error:
        report(problem("SC0301", f"{path}: {error.strerror}", "check the path", SourceLocation(str(path), 0)))
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, os.geteuid()):
        detail = f"{path} belongs to user {found.st_uid}, not to you (user {os.geteuid()}), with mode {mode:04o}"
        report(
            problem("SC0601", detail, f"look at it, then: chown {os.geteuid()} {path}", SourceLocation(str(path), 0))
        )
    elif mode & 0o022 and not (mode & 0o022 == 0o020 and trust.private(found.st_uid, found.st_gid)):
        detail = f"{path} of user {found.st_uid} has mode {mode:04o}"
        report(problem("SC0601", detail, f"look at it, then: chmod go-w {path}", SourceLocation(str(path), 0)))


def _refuse_twins(found: Iterable[Registration]) -> None:
    first: dict[str, Registration] = {}
    for each in found:
        # Names of Razor's hooks are case-insensitive, and both kinds of hooks share one log.
        other = first.setdefault(each.name.lower(), each)
        if other is not each:
            detail = f"two hooks are called {each.name}"
            report(problem("SC0607", detail, "rename one", each.position, other.position))
