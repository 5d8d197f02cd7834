"""Extras of distributions in virtual environments: whether what they need is installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World

LARGEST = 1 << 20  # bytes of metadata
MOST = 500  # extras that one extra needs
# A condition of a requirement, such as `extra == "std"` or `python_version < "3.8"`.
_CONDITION = re.compile(r"""[\s(]*(\w+)\s*(==|!=|<=|>=|<|>|in|not in)\s*["']([^"']*)["'][\s)]*\Z""")
_NEED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")


def normal(name: str) -> str:
    """Return the normalized name of a distribution or an extra. Source: the specification of Python's package names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def of(requirement: str) -> list[str]:
    """Return the extras of a requirement such as `name[extra]==1.0`."""
    inside = re.search(r"\[([^\]]*)\]", requirement)
    return [normal(word.strip()) for word in inside[1].split(",") if word.strip()] if inside is not None else []


class Extras:
    """The needs of the extras of installed distributions.

    :param version: the version of Python in the environment, such as `3.11`
    :param metadata: distribution → the directory with its metadata
    """

    def __init__(self, world: World, version: str, metadata: Mapping[str, str]) -> None:
        self.world, self.version, self.metadata = world, version, metadata

    def missing(self, name: str, extras: Iterable[str]) -> bool:
        """Return whether something that the extras of a distribution need is not installed.

        :raises CheckError: if the distribution has no such extra, or if too many extras need each other: a user may
            have written the metadata
        """
        asked = dict.fromkeys((name, extra) for extra in extras)
        seen, waiting = set(asked), [*asked]
        while waiting:
            one, extra = pair = waiting.pop()
            text = self._text(one)
            if pair in asked and text:
                self._require(name, extra, text)
            for need, further in self._needs(text, extra):
                if need not in self.metadata:
                    return True
                new = {(need, word) for word in further} - seen
                seen |= new
                waiting += new
            if len(seen) > MOST:
                raise CheckError(f"{name}[{extra}] needs more than {MOST} extras of other distributions")
        return False

    @staticmethod
    def _require(name: str, extra: str, text: str) -> None:
        known = {normal(word) for word in re.findall(r"^Provides-Extra:[ \t]*(\S+)", text, re.M)}
        if extra not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise CheckError(f"the installed {name} has no extra {extra}; {has}")

    def _text(self, name: str) -> str:
        """Return the metadata of a distribution; "" if it can't be read."""
        for file in ("METADATA", "PKG-INFO"):
            path = f"{self.metadata[name]}/{file}"
            stat = self.world.stat(path)
            if stat is not None and stat.file_type == "file" and (stat.size or 0) <= LARGEST:
                return self.world.read(path).decode("utf-8", "replace").partition("\n\n")[0]
        return ""

    def _needs(self, text: str, extra: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the distributions that an extra adds, with their own extras."""
        for line in re.findall(r"^Requires-Dist:(.*)", text, re.M):
            need, _, marker = line.partition(";")
            found = _NEED.match(need.strip())
            if found is not None and self._applies(marker, extra):
                yield normal(found[1]), [normal(word.strip()) for word in (found[2] or "").split(",") if word.strip()]

    def _applies(self, marker: str, extra: str) -> bool:
        """Return whether a requirement is certainly one of an extra. One with an unknown condition is not."""
        if "extra" not in marker:
            return False
        return any(
            all(self._holds(part, extra) for part in re.split(r"\band\b", choice))
            for choice in re.split(r"\bor\b", marker)
        )

    def _holds(self, condition: str, extra: str) -> bool:
        found = _CONDITION.match(condition.strip())
        if found is None:
            return False
        variable, sign, value = found.groups()
        if variable == "extra":
            return (normal(value) == extra) is (sign == "==")
        words = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
        if variable in words and sign in ("==", "!="):
            return (words[variable] == value) is (sign == "==")
        if variable == "python_version" and re.fullmatch(r"\d+(\.\d+)*", value) and self.version:
            here, there = ([int(part) for part in text.split(".")] for text in (self.version, value))
            signs = {"==": here == there, "!=": here != there, "<": here < there, ">": here > there}
            return signs.get(sign, here <= there if sign == "<=" else here >= there)
        return False
