"""What the hooks' tools print: one value as it is, several as JSON, or the form that was asked for."""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional

    Formatter = Callable[[Any], str]

_NAMED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")  # what names of shell variables are made of
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_")


def sink(path: str) -> int:
    """Return the descriptor to print to: that of standard output, for "" and "-", or of a file. Raises OSError."""
    return 1 if path in ("", "-") else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def write(value: Any, form: str, descriptor: int, formatters: Mapping[str, Formatter]) -> None:
    """Print a value.

    :param form: the name of a format; one that nobody knows is said so, and taken for `smart` where there is something
    :param descriptor: where to; what a file held before is gone
    :param formatters: what the tool has beside the formats that all have
    :raises OSError: where it can't be written
    """
    found: Optional[Formatter] = formatters.get(form) or FORMATTERS.get(form)
    if found is None:
        complain("unknown output format: %s" % form)
        found = smart if value else lambda _: ""
    data = found(value).encode("utf-8", "surrogateescape")
    if descriptor != 1 and stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)
    put(descriptor, data)


def put(descriptor: int, data: bytes) -> None:
    """Write all of it to a descriptor: what Python makes of stdout depends on the locale. Raises OSError."""
    while data:
        data = data[os.write(descriptor, data) :]


def complain(text: str) -> None:
    """Say what is wrong, on stderr; where nobody can be told, the exit status must do."""
    try:
        put(2, (text + "\n").encode("utf-8", "surrogateescape"))
    except OSError:
        sys.stderr = None  # nor shall Python try at its end


def json_text(value: Any) -> str:
    """Return a value as a line of JSON."""
    import json

    return json.dumps(value) + "\n"


def yaml_text(value: Any) -> str:
    """Return a value as YAML: every JSON is that, where it has no surrogates."""
    import json

    return json.dumps(value, ensure_ascii=False) + "\n"


def smart(value: Any) -> str:
    """Return a value as people and shells want it.

    Nothing for None; text as it is; several names a line each; what is several values otherwise, as JSON.
    """
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "".join(item + "\n" for item in value)
    return json_text(value) if isinstance(value, (dict, list)) else "%s\n" % value


def shell(value: Any) -> str:
    """Return a map as assignments of shell variables, VAR_NAME='value'; what the environment has of them is emptied."""
    if not value:
        return ""
    stale = sorted(name for name in os.environ if name.startswith("VAR_"))
    lines = ["%s=\n" % name.upper() for name in stale]
    for key in sorted(value):
        # The name is another unit's word: nothing in it may mean something to the shell that evaluates this.
        name = "".join(letter if letter in _NAMED else "_" for letter in key.upper())
        lines.append("VAR_%s=%s\n" % (name, _quoted(value[key])))
    if stale:
        complain(
            "The following were omitted from the environment.  VAR_ prefixed variables indicate a usage error.\n%s"
            % "".join(stale)
        )
    return "".join(lines)


def _quoted(value: Any) -> str:
    text = "" if value is None else str(value)
    if text and _PLAIN.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def members(value: Any) -> str:
    """Return names of units as the assignment that a shell evaluates."""
    return 'export JUJU_MEMBERS="%s"\n' % " ".join(value)


FORMATTERS = {"json": json_text, "smart": smart, "yaml": yaml_text}
