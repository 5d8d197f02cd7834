"""The context that a node type's `to_wire` receives: the host's variables, project files, templates."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.facts.catalogue import Facts
from statecfg.facts.variables import Vars
from statecfg.graph import host_items, host_text
from statecfg.playbook.file_blobs import FileBlob
from statecfg.playbook.plays import HostContext
from statecfg.problems import InvalidInput, inputs, positions, problem, report, suggest_file
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.model import Blob

if TYPE_CHECKING:
    from statecfg.graph.nodes import Node
    from statecfg.playbook.ansible_modules import AnsibleModule
    from statecfg.resources.shared.tree import SourceEntry

HELD = 1 << 16  # bytes; of a larger file, and the files of a larger tree, only path and digest are kept in memory


@dataclass(frozen=True)
class WireContext:
    """Access to the project while the nodes of one host are prepared.

    :param target: the host, with its merged variables
    :param base: the project's directory
    :param own: node name → variables of the play that declares the node; `vars` applies to all other nodes
    :param declared_again: node name → the source locations of its declarations in other plays, each with the variables
        of its play
    """

    target: HostContext = field(default_factory=lambda: HostContext("localhost"))
    base: Path = field(default_factory=Path.cwd)
    own: Mapping[str, Vars] = field(default_factory=dict)
    declared_again: Mapping[str, Sequence[tuple[SourceLocation, Vars]]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The name of the host."""
        return self.target.name

    @property
    def vars(self) -> Vars:
        """Its merged variables."""
        return self.target.vars

    @property
    def groups(self) -> Sequence[str]:
        """The groups that contain it."""
        return self.target.groups

    @property
    def facts(self) -> Facts:
        """Its facts."""
        return self.target.facts

    def relative(self, location: SourceLocation) -> SourceLocation:
        """Return a source location with its file relative to the project's directory."""
        return positions.relative(location, os.path.abspath(self.base))

    def variants(self, node: Node) -> Iterator[tuple[Node, WireContext]]:
        """Yield the other declarations of a node that `find` and `render` may treat differently, each with its context.

        These are declarations in another directory or role, or in a play or role with other variables.
        """
        first = self.own.get(node.provides, self.vars)
        variables = dict(self.declared_again.get(node.provides, ()))
        seen = {(os.path.dirname(node.position.file), id(first), node.role)}
        for position, role in node.declarations:
            own = variables.get(position, first)
            variant = os.path.dirname(position.file), id(own), role
            if variant not in seen:
                seen.add(variant)
                uses = ((position, role),) if role is not None else ()
                one = node.replace(position=position, others=(), uses=uses)
                yield one, replace(self, own={node.provides: own}, declared_again={})

    def find(self, node: Node, path: str, below: str = "files", directory: bool = False) -> Path:
        """Find a file or directory: beside the file that declares the node, in its role, then in the project.

        :param path: its path, relative to one of these directories
        :param below: the directory of the project to search first: "files" or "templates"; the other one is next
        :param directory: find a directory instead of a file
        :raises InvalidInput: it is missing, unreadable, of the wrong type, or a link leads outside the project
        """
        beside = Path(self.base, os.path.dirname(node.position.file))
        other = "templates" if below == "files" else "files"
        roots = [self.base] if node.role is None else [Path(node.role.directory), self.base]
        tried = [beside / path, *(Path(root, folder, path) for root in roots for folder in (below, other))]
        for candidate in tried:
            if os.path.lexists(candidate):
                self._accept(node, path, candidate, directory)
                return candidate
        if os.path.isabs(path):
            nearby = suggest_file(path)
            help_text = nearby or "the path refers to this machine, not to the host"
            raise self._unreadable(node, f"{path} does not exist", help_text)
        looked = ", ".join(dict.fromkeys(os.path.relpath(item, self.base) for item in tried))
        nearby = next(filter(None, map(suggest_file, tried)), "")
        help_text = " ".join(filter(None, (nearby, f"searched for {looked} in {self.base}")))
        raise self._unreadable(node, f"{path} does not exist", help_text)

    def _accept(self, node: Node, path: str, candidate: Path, directory: bool) -> None:
        real = Path(os.path.realpath(candidate))
        resolved = "" if real == candidate else f" (which is {real})"
        root = Path(os.path.realpath(self.base))
        inside = root in real.parents or (
            node.role is not None and Path(os.path.realpath(node.role.directory)) in real.parents
        )
        if not os.path.isabs(path) and not inside:
            raise self._unreadable(node, f"{path}{resolved} is outside the project", f"copy it into {root}")
        try:
            mode = real.stat().st_mode
        except OSError as error:
            raise self._unreadable(node, f"{path}{resolved}: {error.strerror}") from None
        if not (stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode)):
            what = "a directory" if stat.S_ISDIR(mode) else "not a directory" if directory else "not a regular file"
            expected = "a directory" if directory else "a regular file"
            raise self._unreadable(node, f"{path}{resolved} is {what}", f"write the path of {expected}")
        if not os.access(real, os.R_OK):
            raise self._unreadable(node, f"{path}{resolved} can't be read: permission denied")

    @staticmethod
    def _unreadable(node: Node, detail: str, help: str = "") -> InvalidInput:
        detail += f" (in the role {node.role.name})" if node.role is not None else ""
        return InvalidInput([problem("SC0118", f"{node.provides}: {detail}", help, *node.positions)])

    def read(self, node: Node, relative_path: str) -> Blob:
        """Return the content of a file of the project; see `find`.

        :raises InvalidInput: the file can't be read
        """
        return self._blob(node, relative_path, self.find(node, relative_path))

    def _blob(self, node: Node, relative_path: str, file: Path) -> Blob:
        try:
            size = file.stat().st_size
            if size <= HELD:
                blob = Blob.of(file.read_bytes())
                inputs.note("file", file, sha256=blob.sha256)
                return blob
            large = FileBlob(file)
        except OSError as error:
            raise self._unreadable(node, f"{relative_path}: {error.strerror}") from None
        inputs.note("file", file, sha256=large.sha256)
        return large

    def tree(
        self, node: Node, relative_path: str, skip: Callable[[str], bool] = lambda name: False
    ) -> dict[str, SourceEntry]:
        """Return the content of a directory of the project.

        :param relative_path: the directory; see `find`
        :param skip: tells whether to leave out a path below the directory; a directory with everything in it
        :returns: path below the directory → entry, sorted
        :raises InvalidInput: something can't be read, or is neither a file, a directory nor a symbolic link
        """
        root = self.find(node, relative_path, directory=True)
        entries: dict[str, SourceEntry] = {}
        for folder, directories, files in os.walk(root, onerror=self._failed(node, relative_path)):
            above = Path(folder).relative_to(root)
            directories[:] = sorted(name for name in directories if not skip(str(above / name)))
            for name in (*directories, *files):
                if not skip(str(above / name)):
                    path = Path(folder, name)
                    entries[str(above / name)] = self._entry(node, os.path.join(relative_path, name), path)
        contents = {name: entry["content"] for name, entry in entries.items() if "content" in entry}
        if sum(len(content.data or b"") for content in contents.values()) > HELD:
            # Compiled like large files, so that a host receives only the content that it lacks.
            for name, content in contents.items():
                entries[name]["content"] = Blob(content.sha256, content.size, None, str(root / name))
        return dict(sorted(entries.items()))

    def _failed(self, node: Node, path: str) -> Callable[[OSError], None]:
        def fail(error: OSError) -> None:
            raise self._unreadable(node, f"{path}: {error.filename}: {error.strerror}")

        return fail

    def _entry(self, node: Node, name: str, path: Path) -> SourceEntry:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return {"kind": "symlink", "target": os.readlink(path)}
        if stat.S_ISDIR(mode):
            return {"kind": "directory"}
        if not stat.S_ISREG(mode):
            detail = f"{name} is neither a file, a directory nor a symbolic link"
            raise self._unreadable(node, detail, "remove it from the directory")
        entry: SourceEntry = {"kind": "file", "content": self._blob(node, name, path)}
        if mode & 0o100:
            entry["executable"] = True
        return entry

    def render(self, node: Node, template: str, variables: Mapping[str, Any] | None = None) -> str:
        """Return a rendered Jinja2 template with its secrets revealed.

        :param template: a file of the project; or the text itself, if it contains a line break or `{`
        :param variables: variables in addition to those of the host
        :raises InvalidInput: the file is missing, the template is wrong, or a variable is undefined
        """
        return self._rendered(node, template, variables)

    def render_public(self, node: Node, template: str, help: str, variables: Mapping[str, Any] | None = None) -> str:
        """Return a rendered Jinja2 template for a file that every user of the host can read.

        :param help: where to put a secret instead
        :raises InvalidInput: as with `render`, or the template uses a secret
        """
        from statecfg.graph import opaque

        with opaque.recording() as used:
            text = self._rendered(node, template, variables)
        if used:
            detail = f"`template` of {node.provides} uses {', '.join(f'the secret {name}' for name in sorted(used))}, "
            raise InvalidInput(
                [problem("SC0425", f"{detail}and every user of the host can read the file", help, *node.positions)]
            )
        return text

    def _rendered(self, node: Node, template: str, variables: Mapping[str, Any] | None) -> str:
        text = self._text_of(node, template, variables)
        if host_text.was_read():
            from statecfg.graph import host_text_rules

            for _, detail, help in host_text_rules.problems(
                node.type, {"content": text, "path": node.attrs.get("path"), "mode": node.attrs.get("mode")}
            ):
                detail = f"{node.provides}: {detail.replace('`content`', '`template`')}"
                raise InvalidInput([problem(host_text_rules.CODE, detail, help, *node.positions)])
        return text

    def _text_of(self, node: Node, template: str, variables: Mapping[str, Any] | None) -> str:
        from statecfg.templates import render_file, render_text

        host_vars = self.own.get(node.provides, self.vars).unrecorded
        in_role = node.role.variables if node.role is not None else {}
        values = {**self.target.in_templates, **host_vars, **in_role, **(variables or {})}
        values = host_items.scope(node.options, values)
        if "\n" in template or "{" in template:
            return render_text(template, values, node.position)
        file = self.find(node, template, "templates")
        if node.role is None:
            return render_file(file, values, node.position, self.base)
        more = os.path.join(node.role.directory, "templates")
        if node.role.templates:
            values = {"ansible_role_name": node.role.name, **values}
        return render_file(file, values, node.position, self.base, more, node.role.templates)

    @staticmethod
    def secret(name: str, value: str) -> Any:
        """Return a value as a secret: it is sent to the host, and masked in all output.

        :param name: the name in its mask
        """
        from statecfg.graph.opaque import Secret

        return Secret(name, value)

    @staticmethod
    def ansible_module(name: str) -> AnsibleModule:
        """Return an Ansible module that is installed on this machine.

        :raises Wrong: Ansible is not installed, there is no such module, or hosts can't run it
        """
        from statecfg.playbook import ansible_modules  # takes time to import

        return ansible_modules.find(name)

    def report(self, node: Node, detail: str, help: str = "") -> None:
        """Report that a node can't be prepared.

        :param detail: the reason
        :param help: what to do; "" if there is no advice
        """
        report(problem("SC0116", f"{node.provides}: {detail}", help, *node.positions))
