"""Records the inputs of a playbook that are not read file by file: node types, modules, charms and hooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg import resources
from statecfg.playbook.user_code import LIBRARIES
from statecfg.problems import inputs

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.run.declared import ServiceWork

_SKIPPED = ("__pycache__",)
_SOURCES = (".py", ".hy")


def note(project: Project, services: Sequence[ServiceWork]) -> None:
    """Record a project's node types and hooks, the modules its playbooks imported, and the charms of services.

    Does nothing unless inputs are being recorded.
    """
    if not inputs.active():
        return
    for folder in resources.__path__[1:]:  # those of the project and of its roles
        if not folder.startswith(LIBRARIES):
            _all("node type", _sources(Path(folder)))
    _all("module", _modules())
    for service in services:
        if service.charm is not None:
            for name, sha256 in service.charm.contents.items():
                inputs.note("charm", service.charm.files[name][1], sha256=sha256)
    _all("hook", _hooks(project.root / "hooks"))


def _all(category: str, paths: Iterable[str | Path]) -> None:
    for path in paths:
        inputs.note(category, path)


def _sources(folder: Path) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (os.path.join(here, name) for name in sorted(files) if name.endswith(_SOURCES))


def _modules() -> Sequence[str]:
    from statecfg.dialects import modules

    return modules.files()


def _hooks(folder: Path) -> Iterator[Path]:
    """Yield registrations, and the configuration and programs of each hook type. Its other files may be data."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix in (".yml", ".yaml"):
            yield path
        elif path.suffix == ".hook" and path.is_dir():
            for file in sorted(path.iterdir()):
                if file.name == "configuration.yaml" or os.access(file, os.X_OK):
                    yield file
