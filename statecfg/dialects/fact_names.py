"""Find the facts that the files of a playbook mention, so that one request to a host asks for all of them.

Evaluating a playbook finds only the facts that it reads before a condition stops it. A fact that this search misses,
such as one in a module of a library, costs the host another round trip, but nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from statecfg.facts import catalogue
from statecfg.playbook import role_path
from statecfg.playbook.role import CODE, FILE
from statecfg.templates import ansible

MOST_FILES = 1000
LARGEST = 1 << 20  # bytes of a file that is searched
_FACT = re.compile(r"\bfacts\W{1,4}(own\W{1,4})?(\w+)")
_ANSIBLE = re.compile(r"\bansible_(?:facts\W{1,4})?(\w+)")
_OTHERS = re.compile(r"\b(?:hosts|groups)\s*[\[.]|\bin\s+(?:hosts|groups)\b|\((?:get|\.)\s+(?:hosts|groups)\b")
_PATH = re.compile(r"[\w.@/-]+")


def mentioned(path: str, root: str, own: Collection[str]) -> tuple[set[str], bool]:
    """Return the names of the facts that a playbook and the files that it mentions contain.

    The second value is whether these files seem to read other hosts.

    :param path: the playbook
    :param root: directory of the project
    :param own: the names of the project's own facts
    """
    names: set[str] = set()
    others = False
    known, roles = set(role_path.names(root)), dict[str, str]()
    waiting, seen = [os.path.abspath(path)], {os.path.abspath(path)}
    while waiting and len(seen) <= MOST_FILES:
        file = waiting.pop()
        text = _text(file)
        others = others or _OTHERS.search(text) is not None
        for owner, name in _FACT.findall(text):
            if owner and name in own:
                names.add(f"{catalogue.OWN}.{name}")
            elif not owner and name in catalogue.NAMES:
                names.add(name)
        for name in _ANSIBLE.findall(text):
            names.update(ansible.FACTS[name].facts if name in ansible.FACTS else ())
        words = dict.fromkeys(_PATH.findall(text))
        for name in known.intersection(words).difference(roles):
            found = role_path.find(root, name)
            if found is not None:
                roles[name] = found.directory
        for other in _files(words, file, root, roles):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return names, others


def _files(words: Iterable[str], file: str, root: str, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that words of a file name: by their paths, as roles and, in code, as modules.

    :param roles: name of a role → its directory
    """
    beside = os.path.dirname(file)
    below = [os.path.join(folder, name) for folder in (beside, root) for name in ("templates", "files")]
    folders = dict.fromkeys((beside, root, *below))
    allowed = tuple(folder + os.sep for folder in (root, *roles.values()))
    modules = (".py", ".hy") if file.endswith((".py", ".hy")) else ()
    for word in words:
        endings = ("",) if "." in word or "/" in word else modules
        found = [os.path.join(roles[word], name) for name in (FILE, *CODE.values())] if word in roles else []
        found += [os.path.normpath(os.path.join(folder, word + ending)) for folder in folders for ending in endings]
        yield from (path for path in found if path.startswith(allowed) and os.path.isfile(path))


def _text(file: str) -> str:
    try:
        if os.path.getsize(file) > LARGEST:
            return ""
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
