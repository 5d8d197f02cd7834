"""The project of the working directory and its store, for commands that read or change the store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from statecfg.problems import InvalidInput, problem, suggest

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store
    from statecfg.store.hosts import HostRecord


class ProjectStore:
    """The current project and, while entered, its open store.

    :param url: the store's address; None for the default
    """

    def __init__(self, url: str | None) -> None:
        from statecfg.playbook import project

        self.project: Project = project.find(Path.cwd())
        self._url = url

    def __enter__(self) -> Self:
        from statecfg.store import opened

        self.store: Store = opened(self.project, self._url)
        try:
            self._read()
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        self.store.close()

    def _read(self) -> None:
        """Read from the open store what all commands need."""

    def host(self, name: str, note: str = "") -> HostRecord:
        """Return a host in the store.

        :param note: added to the error
        :raises InvalidInput: the store does not have it
        """
        from statecfg.store import hosts

        record = hosts.get(self.store, name)
        if record is None:
            raise self.unknown_host(f"the store has no host `{name}`{note}", name)
        return record

    def unknown_host(self, detail: str, name: str, others: Iterable[str] = ()) -> Exception:
        """Return the error for an unknown host. It suggests a similar name.

        :param others: names to suggest besides those of the hosts in the store
        """
        from statecfg.store import hosts

        names = sorted({record.name for record in hosts.every(self.store)} | set(others))
        return InvalidInput([problem("SC0404", detail, suggest(name, names, "available"))])
