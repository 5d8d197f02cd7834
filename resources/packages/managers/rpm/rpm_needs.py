"""Which packages the packages of rpm need. zypper has no command for this, so rpm answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from statecfg.resources.packages.managers.rpm import rpm
from statecfg.resources.shared import records

_FORMAT = "".join(
    "[%%{=NAME}\\t%%{=ARCH}\\t%s\\t%%{%s}\\n]" % row
    for row in (("provides", "PROVIDENAME"), ("hard", "REQUIRENAME"), ("soft", "RECOMMENDNAME"))
)
_OWNERS = "[%{=NAME}\\t%{=ARCH}\\t%{FILENAMES}\\n]"
_MERGED = re.compile(r"/usr(?=/(s?bin|lib(64)?)/)")
_WORD = re.compile(r"(?:[^\s()]|\([^\s()]*\))+")


def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages.

    Versions don't count: rpm keeps the needs of the installed packages fulfilled.

    :raises CheckError: if rpm fails
    """
    native = rpm.native(host)
    providers: dict[str, set[str]] = {}
    needs: dict[str, dict[str, set[str]]] = {}
    for line in rpm.query(host, ["--query", "--all", "--queryformat", _FORMAT]):
        name, architecture, dependency_type, relation = line.split("\t")
        key = name if architecture in native else f"{name}:{architecture}"
        if name == rpm.KEYS:
            continue
        entry = needs.setdefault(key, {"hard": set(), "soft": set()})
        if dependency_type == "provides":
            providers.setdefault(relation, set()).add(key)
        elif not relation.startswith("rpmlib("):
            entry[dependency_type].update(_words(relation))
    files = {word for entry in needs.values() for words in entry.values() for word in words if word.startswith("/")}
    _add_owners(host, sorted(files - {*providers}), providers, native)

    def installed(words: Iterable[str], key: str) -> list[str]:
        return sorted({each for word in words for each in providers.get(word, ())} - {key})

    return {
        key: {dependency_type: installed(words, key) for dependency_type, words in entry.items()}
        for key, entry in needs.items()
    }


def _words(relation: str) -> list[str]:
    """Return the names in a relation; a condition such as `(a if b)` has several."""
    return _WORD.findall(relation[1:-1]) if relation.startswith("(") else [relation]


def _add_owners(host: Any, files: list[str], providers: dict[str, set[str]], native: Iterable[str]) -> None:
    """Add the packages that own files which others need."""
    if not files:
        return
    wanted = {_MERGED.sub("", path): path for path in files}
    # The exit status is the number of files that no package owns.
    argv = ["--query", "--file", "--queryformat", _OWNERS, "--", *files]
    for line in rpm.query(host, argv, tuple(range(256))):
        name, tab, rest = line.partition("\t")
        architecture, _, path = rest.partition("\t")
        if tab and _MERGED.sub("", path) in wanted:
            key = name if architecture in native else f"{name}:{architecture}"
            providers.setdefault(wanted[_MERGED.sub("", path)], set()).add(key)
