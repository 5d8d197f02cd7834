"""Write small files together: each is synced before it gets its name, and each directory once for all of its files.

`durable.replace` would sync each file and its directory in turn, and follow the path again.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Tuple

from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import files
from statecfg.remote.machine.mount_points import install
from statecfg.remote.machine.paths import normal, open_parent, sync_directory


class _Trial:
    """A complete file that waits for its name.

    :param opened: the open file
    :param info: `lstat` of the file that it replaces, None if there is none
    :ivar result: the result of the action; an error if a later step fails
    """

    __slots__ = ("folder", "info", "name", "opened", "path", "result", "temporary")

    def __init__(
        self, path: str, folder: str, name: str, temporary: str, opened: int, info: Optional[os.stat_result]
    ) -> None:
        self.path, self.folder, self.name, self.temporary = path, folder, name, temporary
        self.opened, self.info = opened, info
        self.result = ok()

    def fail(self, result: Result) -> None:
        self.result.update(result)


class Batch:
    """Files that are written together. Nothing of it is durable, and no file has its name, before `finish`.

    The directories stay open until then, so the path of each is followed only once.
    """

    def __init__(self) -> None:
        self.folders: Dict[str, Tuple[int, str]] = {}  # path → descriptor, and path without links
        self.trials: List[_Trial] = []

    def open_parent(self, path: str) -> Tuple[int, str, str]:
        """Do the same as `paths.open_parent`, but open each directory only once."""
        folder, name = os.path.split(normal(path))
        if not name:
            return open_parent(path)
        if folder not in self.folders:
            parent, _, directory = open_parent(path)
            self.folders[folder] = parent, directory
        parent, directory = self.folders[folder]
        return os.dup(parent), name, directory

    def add(self, path: str, temporary: str, opened: int, info: Optional[os.stat_result]) -> Result:
        """Add a complete file, which `finish` closes; return its result, which is final after `finish`.

        :param path: the path that the file gets
        :param temporary: its present name in the same directory
        :param info: `lstat` of the file that it replaces, None if there is none
        """
        folder, name = os.path.split(normal(path))
        trial = _Trial(path, folder, name, temporary, opened, info)
        self.trials.append(trial)
        return trial.result

    def finish(self) -> None:
        """Sync the files, give them their names, and sync their directories."""
        try:
            for trial in self.trials:
                # The kernel starts to write the file to the disk now, so that the syncs below wait less.
                os.posix_fadvise(trial.opened, 0, 0, os.POSIX_FADV_DONTNEED)
            for trial in self.trials:
                try:
                    os.fsync(trial.opened)
                except OSError as problem:
                    trial.fail(files.failed("write", trial.path, problem))
            folders: Dict[str, List[_Trial]] = {}
            for trial in self.trials:
                if "reason" not in trial.result and self._name(trial):
                    folders.setdefault(trial.folder, []).append(trial)
            for folder, trials in folders.items():
                try:
                    sync_directory(self.folders[folder][0])
                except OSError as problem:
                    for trial in trials:
                        trial.fail(files.failed("write", trial.path, problem))
        finally:
            self._close()

    def _name(self, trial: _Trial) -> bool:
        """Give a file its name; return whether it has it."""
        parent = self.folders[trial.folder][0]
        try:
            if files.same(trial.info, files.lstat(trial.name, parent)):
                install(trial.temporary, trial.name, parent)
                trial.temporary = ""
                return True
            trial.fail(error(files.OVERTAKEN % trial.path))
        except OSError as problem:
            trial.fail(files.failed("write", trial.path, problem))
        return False

    def _close(self) -> None:
        for trial in self.trials:
            os.close(trial.opened)
            if trial.temporary:
                files.unlink(trial.temporary, self.folders[trial.folder][0])
        for parent, _ in self.folders.values():
            os.close(parent)
