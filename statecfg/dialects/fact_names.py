"""Find the facts that the files of a playbook mention, so that one request to a host asks for all of them.

Evaluating a playbook finds only the facts that it reads before a condition stops it. A fact that this search misses,
such as one in a module of a library, costs the host another round trip, but nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from statecfg.facts import catalogue

MOST_FILES = 1000
LARGEST = 1 << 20  # bytes of a file that is searched
_FACT = re.compile(r"\bfacts\W{1,4}(own\W{1,4})?(\w+)")
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
        for other in _files(text, file, root):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return names, others


def _files(text: str, file: str, root: str) -> Iterator[str]:
    """Yield the files of the project whose paths a string contains; for code, also the modules that it may import."""
    folders = dict.fromkeys((os.path.dirname(file), root, os.path.join(root, "templates"), os.path.join(root, "files")))
    modules = (".py", ".hy") if file.endswith((".py", ".hy")) else ()
    for word in dict.fromkeys(_PATH.findall(text)):
        endings = ("",) if "." in word or "/" in word else modules
        for place in folders:
            for ending in endings:
                file = os.path.normpath(os.path.join(place, word + ending))
                if file.startswith(root + os.sep) and os.path.isfile(file):
                    yield file


def _text(file: str) -> str:
    try:
        if os.path.getsize(file) > LARGEST:
            return ""
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
