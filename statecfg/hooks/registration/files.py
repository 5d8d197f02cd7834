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
    registrations: list[Registration] = []
    with collecting() as problems, reporting():
        _refuse_foreign(folder)
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml")):
            with reporting():
                _refuse_foreign(path)
                registration = _read(path, project.relative(path))
                if registration is not None:
                    registrations.append(registration)
        _refuse_twins(registrations)
    if problems:
        changeable = [item for item in problems if item.code == "SC0601"]
        rest = [item for item in problems if item.code != "SC0601"]
        one = [trust.together(changeable)] if changeable else []
        raise InvalidInput(sorted([*rest, *one], key=lambda item: item.locations[:1]))
    return sorted(registrations, key=lambda registration: (registration.order, registration.name))


def _read(path: Path, label: str) -> Registration | None:
    root = yaml_text.load(path, yaml.SHAPE, label)
    return yaml.parse(root)


def _refuse_foreign(path: Path) -> None:
    """Report a path that other users could change. Source: promise E5; CVE-2018-10875."""
    try:
        status = path.stat()
    except OSError as error:
        report(problem("SC0301", f"{path}: {error.strerror}", "check the path", SourceLocation(str(path), 0)))
        return
    mode, location = stat.S_IMODE(status.st_mode), SourceLocation(str(path), 0)
    if status.st_uid not in (0, os.geteuid()):
        detail = f"{path} belongs to user {status.st_uid}, not to you (user {os.geteuid()}), with mode {mode:04o}"
        report(problem("SC0601", detail, f"check its content, then: chown {os.geteuid()} {path}", location))
    elif mode & 0o022 and not (mode & 0o022 == 0o020 and trust.private(status.st_uid, status.st_gid)):
        detail = f"{path} of user {status.st_uid} has mode {mode:04o}"
        report(problem("SC0601", detail, f"check its content, then: chmod go-w {path}", location))


def _refuse_twins(registrations: Iterable[Registration]) -> None:
    first: dict[str, Registration] = {}
    for registration in registrations:
        # Names of Razor's hooks are case-insensitive, and both types of hooks share one log.
        other = first.setdefault(registration.name.lower(), registration)
        if other is not registration:
            detail = f"two hooks have the name {registration.name}"
            report(problem("SC0607", detail, "rename one", registration.position, other.position))
