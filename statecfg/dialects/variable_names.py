"""Find the variables that the YAML files of a playbook declare or read, without evaluating the files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from statecfg import templates
from statecfg.dialects import yaml_text
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode
from statecfg.playbook import role_path
from statecfg.playbook.role import CODE, FILE
from statecfg.problems import InvalidInput

_WORD = re.compile(r"[A-Za-z_]\w*")
_INCLUDES = re.compile(r"\{%[-+]?\s*(include|import|extends|from)\b")
MOST_FILES = 1000  # the number of files to search in a directory of templates
_EXPRESSIONS = ("when", "for_each")


class VariableNames:
    """The names in a playbook and in the files that it includes.

    :param root: directory of the project
    :ivar names: the names that are declared or read
    :ivar maybe: all words of files that are not parsed: included templates, and playbooks in Python or Hy
    :ivar complete: whether the playbook reads no other names: all playbooks are YAML, and no path is a template
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: set[str] = set()
        self.maybe: set[str] = set()
        self.complete = True
        self._seen: set[str] = set()

    def add(self, path: str) -> None:
        """Add the names of a playbook or an included file."""
        path = os.path.normpath(path)
        if path in self._seen or not os.path.isfile(path):
            return
        self._seen.add(path)
        if not path.endswith((".yml", ".yaml")):
            self.complete = False
            self.maybe.update(_words(path))
            return
        try:
            self._walk(yaml_text.read(path, "a playbook"), path)
        except InvalidInput:
            self.complete = False  # loading the playbook reports it

    def _walk(self, node: YamlNode, file: str, key: str = "") -> None:
        if isinstance(node, Mapping):
            for name, value in node.items.items():
                if name == "vars" and isinstance(value, Mapping):
                    self.names.update(value.items)
                self._walk(value, file, name)
        elif isinstance(node, Sequence):
            for item in node.items:
                self._walk(item, file, key)
        elif isinstance(node, Scalar) and isinstance(node.value, str):
            self._text(node.value, file, key)

    def _text(self, text: str, file: str, key: str) -> None:
        if key in _EXPRESSIONS or templates.is_template(text):
            self.names.update(templates.names(text, key in _EXPRESSIONS))
        if key == "include" and role_path.is_name(text):
            self._role(text)
        if key in ("include", "playbook", "template"):
            for path in self._files(text, file):
                if key in ("include", "playbook"):
                    self.add(path)
                else:
                    self._template(path)

    def _role(self, name: str) -> None:
        found = None
        with contextlib.suppress(InvalidInput):  # loading the playbook reports it
            found = role_path.find(self.root, name)
        if found is not None:
            for file in (FILE, *CODE.values()):
                self.add(os.path.join(found.directory, file))

    def _template(self, path: str) -> None:
        """Add the names of a template. If it includes templates, also add all words of the files it could include."""
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        self.names.update(templates.names(text))
        if _INCLUDES.search(text):
            for folder in {os.path.dirname(path), os.path.join(self.root, "templates")}:
                for beside in sorted(Path(folder).glob("*"))[:MOST_FILES]:
                    self.maybe.update(_words(str(beside)))

    def _files(self, text: str, file: str) -> Iterator[str]:
        """Yield the files that a path can refer to; none if the path is a template."""
        folders = [os.path.dirname(file), os.path.join(os.path.dirname(file), "templates")]
        folders.append(os.path.join(self.root, "templates"))
        if templates.is_template(text):
            self.complete = False
            return
        for folder in folders:
            path = os.path.join(folder, text)
            if os.path.isfile(path):
                yield path


def _words(path: str) -> set[str]:
    """Return all words of a file, which include the names of all variables that it reads."""
    try:
        return set(_WORD.findall(Path(path).read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return set()
