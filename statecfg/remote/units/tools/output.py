"""The output of the hooks' tools: by default one value as text and several as JSON, or in the requested format."""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional

    Formatter = Callable[[Any], str]

_NAMED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")  # characters of names of shell variables
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_")


def sink(path: str) -> int:
    """Return the descriptor to print to: standard output for "" and "-", otherwise a file.

    :raises OSError: the file can't be opened
    """
    return 1 if path in ("", "-") else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def write(value: Any, form: str, descriptor: int, formatters: Mapping[str, Formatter]) -> None:
    """Print a value.

    :param form: the name of a format; for an unknown one, print a complaint and use `smart`
    :param descriptor: where to print; a file is truncated first
    :param formatters: additional formats of the tool
    :raises OSError: the value can't be written
    """
    formatter: Optional[Formatter] = formatters.get(form) or FORMATTERS.get(form)
    if formatter is None:
        complain(f"unknown output format: {form}")
        formatter = smart if value else lambda _: ""
    data = formatter(value).encode("utf-8", "surrogateescape")
    if descriptor != 1 and stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)
    put(descriptor, data)


def put(descriptor: int, data: bytes) -> None:
    """Write all data to a descriptor. Bypass Python's stdout, whose encoding depends on the locale.

    :raises OSError: the data can't be written
    """
    while data:
        data = data[os.write(descriptor, data) :]


def complain(text: str) -> None:
    """Print an error to stderr. Ignore failures: then only the exit status reports the error."""
    try:
        put(2, (text + "\n").encode("utf-8", "surrogateescape"))
    except OSError:
        sys.stderr = None  # so that Python does not try to flush it at exit


def json_text(value: Any) -> str:
    """Return a value as a line of JSON."""
    import json

    return json.dumps(value) + "\n"


def yaml_text(value: Any) -> str:
    """Return a value as YAML. Every JSON without surrogates is YAML."""
    import json

    return json.dumps(value, ensure_ascii=False) + "\n"


def smart(value: Any) -> str:
    """Return a value in the default format, for users and shells.

    None gives no output, a string is unchanged, a list of strings has one line each, and other lists and maps are JSON.
    """
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "".join(item + "\n" for item in value)
    return json_text(value) if isinstance(value, (dict, list)) else f"{value}\n"


def shell(value: Any) -> str:
    """Return a map as assignments of shell variables, VAR_NAME='value'. Clear such variables in the environment."""
    if not value:
        return ""
    stale = sorted(name for name in os.environ if name.startswith("VAR_"))
    lines = [f"{name.upper()}=\n" for name in stale]
    for key in sorted(value):
        # Another unit chose the name: it must not contain characters with a meaning for the evaluating shell.
        name = "".join(letter if letter in _NAMED else "_" for letter in key.upper())
        lines.append(f"VAR_{name}={_quoted(value[key])}\n")
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
    """Return names of units as an assignment for a shell."""
    return f'export JUJU_MEMBERS="{" ".join(value)}"\n'


FORMATTERS = {"json": json_text, "smart": smart, "yaml": yaml_text}
