"""The store and the engine of exec hooks for the commands of `statecfg hook`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecfg.hooks.exec.engine import Engine
    from statecfg.hooks.registration.model import Registration
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store
    from statecfg.store.hooks.records import HookObject
    from statecfg.store.hosts import HostRecord


class HookStore:
    """While entered, the open store and the engine of the current project."""

    def __init__(self, url: str | None) -> None:
        from statecfg.playbook import project

        self.project: Project = project.find(Path.cwd())
        self._url = url

    def __enter__(self) -> HookStore:
        from statecfg.hooks.exec import engine as exec_hooks
        from statecfg.store import opened

        self.store: Store = opened(self.project, self._url)
        try:
            self.engine: Engine = exec_hooks.of_project(self.project, self.store)
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def hook(self, name: str) -> HookObject:
        """Return a hook.

        :raises InvalidInput: there is no such hook
        """
        return self.engine.hooks.find(name)

    def over_http(self, name: str) -> Registration | None:
        """Return the HTTP hook of this name that the project declares, or None.

        :raises InvalidInput: a declaration is wrong
        """
        from statecfg.hooks.registration import files

        declared = files.load(self.project)
        return next((each for each in declared if each.protocol == "http" and each.name == name), None)

    def schema(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the keys that a hook's configuration may have, with their rules.

        :raises InvalidInput: there is no such hook, or its type is wrong
        """
        hook = self.hook(name)
        return self.engine.types.find(hook.type, Path(hook.folder)).schema

    def host(self, name: str) -> HostRecord:
        """Return a host in the store.

        :raises InvalidInput: the store does not have it
        """
        from statecfg.problems import InvalidInput, problem, suggest
        from statecfg.store import hosts

        found = hosts.get(self.store, name)
        if found is None:
            names = [record.name for record in hosts.every(self.store)]
            raise InvalidInput(
                [problem("SC0404", f"the store has no host `{name}`", suggest(name, names, "there are"))]
            )
        return found
