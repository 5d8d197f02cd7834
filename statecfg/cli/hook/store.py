"""The store and the engine of exec hooks for the commands of `statecfg hook`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.cli.project_store import ProjectStore

if TYPE_CHECKING:
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.exec.types import Schema
    from statecfg.hooks.registration.model import Registration
    from statecfg.store.hooks.records import HookObject


class HookStore(ProjectStore):
    """While entered, the open store and the engine of the current project."""

    def _read(self) -> None:
        from statecfg.hooks.exec import engine as exec_hooks

        self.engine: HookEngine = exec_hooks.of_project(self.project, self.store)

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
        return next((hook for hook in declared if hook.protocol == "http" and hook.name == name), None)

    def schema(self, name: str) -> Schema:
        """Return the keys that a hook's configuration may have, with their rules.

        :raises InvalidInput: there is no such hook, or its type is wrong
        """
        hook = self.hook(name)
        return self.engine.types.find(hook.type, Path(hook.folder)).schema
