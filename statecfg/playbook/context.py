"""What a node type's `to_wire` may use of the controller: the host's variables, project files, templates."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg import problems
from statecfg.problems import InvalidInput, inputs, positions, problem, suggest_file
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.model import Blob

if TYPE_CHECKING:
    from statecfg.graph.graph import Node

HELD = 1 << 16  # bytes of a file that is kept in memory; of a larger one, its path and digest


@dataclass(frozen=True)
class WireContext:
    """The controller's side of preparing the nodes of one host.

    :param host: the host's name
    :param vars: its variables, merged
    :param groups: the groups it is in
    :param base: the project's directory
    :param own: by node name, the variables of the play that declares it; `vars` for others
    """

    host: str = "localhost"
    vars: Mapping[str, Any] = field(default_factory=dict)
    groups: Sequence[str] = ()
    base: Path = field(default_factory=Path.cwd)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def relative(self, place: SourceLocation) -> SourceLocation:
        """Return a place with its file relative to the project's directory."""
        return positions.relative(place, os.path.abspath(self.base))

    def find(self, node: Node, path: str, below: str = "files", directory: bool = False) -> Path:
        """Return the file, or the directory, that `path` names: beside the file that declares the node, then in the
        project's `files/` and `templates/`.

        Raises InvalidInput, at the node's place, where it is missing, of another kind, unreadable, or outside the
        project by a link.
        """
        beside = Path(self.base, os.path.dirname(node.position.file))
        tried = [beside / path, Path(self.base, below, path)]
        other = "templates" if below == "files" else "files"
        tried.append(Path(self.base, other, path))
        for candidate in tried:
            if os.path.lexists(candidate):
                self._accept(node, path, candidate, directory)
                return candidate
        if os.path.isabs(path):
            nearby = suggest_file(path)
            help_text = nearby or "it is looked for on this machine, not on the host"
            raise self._unreadable(node, f"{path} is not there", help_text)
        looked = ", ".join(dict.fromkeys(os.path.relpath(item, self.base) for item in tried))
        nearby = next(filter(None, map(suggest_file, tried)), "")
        help_text = " ".join(filter(None, (nearby, f"looked for {looked} in {self.base}")))
        raise self._unreadable(node, f"{path} is not there", help_text)

    def _accept(self, node: Node, path: str, found: Path, directory: bool) -> None:
        real = Path(os.path.realpath(found))
        leads = "" if real == found else f" (which is {real})"
        root = Path(os.path.realpath(self.base))
        if not os.path.isabs(path) and root not in real.parents:
            raise self._unreadable(node, f"{path}{leads} is outside the project", f"copy it to {root}")
        try:
            kind = real.stat().st_mode
        except OSError as error:
            raise self._unreadable(node, f"{path}{leads}: {error.strerror}") from None
        if not (stat.S_ISDIR(kind) if directory else stat.S_ISREG(kind)):
            what = "a directory" if stat.S_ISDIR(kind) else "no directory" if directory else "no regular file"
            wanted = "a directory" if directory else "a regular file"
            raise self._unreadable(node, f"{path}{leads} is {what}", f"name {wanted}")
        if not os.access(real, os.R_OK):
            raise self._unreadable(node, f"{path}{leads} can't be read: permission denied")

    @staticmethod
    def _unreadable(node: Node, detail: str, help: str = "") -> InvalidInput:
        return InvalidInput([problem("SC0118", f"{node.provides}: {detail}", help, node.position)])

    def read(self, node: Node, relative_path: str) -> Blob:
        """Return the content of a file of the project (see `find`). Raises InvalidInput."""
        return self._blob(node, relative_path, self.find(node, relative_path))

    def _blob(self, node: Node, relative_path: str, found: Path) -> Blob:
        try:
            size = found.stat().st_size
            if size <= HELD:
                blob = Blob.of(found.read_bytes())
                inputs.note("file", found, sha256=blob.sha256)
                return blob
            total, size = hashlib.sha256(), 0
            with found.open("rb") as stream:
                while piece := stream.read(1 << 20):
                    total.update(piece)
                    size += len(piece)
        except OSError as error:
            raise self._unreadable(node, f"{relative_path}: {error.strerror}") from None
        inputs.note("file", found, sha256=total.hexdigest())
        return Blob(total.hexdigest(), size, None, str(found))

    def tree(self, node: Node, relative_path: str) -> dict[str, dict[str, Any]]:
        """Return what a directory of the project holds, by path below it, sorted.

        Each entry has a `kind`: "directory"; "file", with `content` and, where it is so, `executable`; or "symlink",
        with `target`. Raises InvalidInput for what can't be read or is nothing of these.
        """
        root = self.find(node, relative_path, directory=True)
        found: dict[str, dict[str, Any]] = {}
        for here, directories, files in os.walk(root, onerror=self._failed(node, relative_path)):
            directories.sort()
            for name in (*directories, *files):
                path = Path(here, name)
                found[str(path.relative_to(root))] = self._entry(node, os.path.join(relative_path, name), path)
        return dict(sorted(found.items()))

    def _failed(self, node: Node, path: str) -> Callable[[OSError], None]:
        def fail(error: OSError) -> None:
            raise self._unreadable(node, f"{path}: {error.filename}: {error.strerror}")

        return fail

    def _entry(self, node: Node, shown: str, path: Path) -> dict[str, Any]:
        kind = path.lstat().st_mode
        if stat.S_ISLNK(kind):
            return {"kind": "symlink", "target": os.readlink(path)}
        if stat.S_ISDIR(kind):
            return {"kind": "directory"}
        if not stat.S_ISREG(kind):
            raise self._unreadable(node, f"{shown} is neither file, directory nor link", "take it out of the tree")
        entry = {"kind": "file", "content": self._blob(node, shown, path)}
        return {**entry, "executable": True} if kind & 0o100 else entry

    def render(self, node: Node, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """Return a Jinja2 template rendered with the host's variables and `variables`, secrets revealed.

        :param template: a file of the project, or the text itself where it holds a line break or `{`
        Raises InvalidInput: an undefined variable, a template that is wrong, a file that is missing.
        """
        from statecfg import templates

        known = self.own.get(node.provides, self.vars)
        given = {"host": {"name": self.host, "groups": list(self.groups)}, **known, **(variables or {})}
        if "\n" in template or "{" in template:
            return templates.render_text(template, given, node.position)
        return templates.render_file(self.find(node, template, "templates"), given, node.position, self.base)

    @staticmethod
    def secret(name: str, value: str) -> Any:
        """Return a value as a secret: it is sent to the host, and shown nowhere.

        :param name: what reports show in its place
        """
        from statecfg.graph.opaque import Secret

        return Secret(name, value)

    def report(self, node: Node, detail: str, help: str = "") -> None:
        """Report that a node can't be prepared, and why."""
        problems.report(problem("SC0116", f"{node.provides}: {detail}", help, node.position))
