"""What the hooks' tools are given to set: KEY=VALUE, KEY=@FILE, JSON on standard input or in a file, or YAML."""

from __future__ import annotations

import os
import select

from statecfg.remote.units.tools.options import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple

MOST = 16 << 20  # bytes read of a file: more than can be set, and no endless device
FIRST = 1.0  # seconds for the first byte of a standard input that nobody named: a hook's is empty, others may be idle


def settings(words: Sequence[str], file: str) -> Dict[str, str]:
    """Return what is to be set, key → value, "" where the key goes.

    :param words: KEY=VALUE, KEY=@FILE, KEY=@- (the data of standard input), `-` or @- (JSON there), @FILE (JSON in it)
    :param file: a file of YAML, `-` for standard input, "" for none
    :raises ToolError: where something is amiss, and then nothing is set
    """
    found: Dict[str, str] = {}
    source = Input()
    if file:
        found.update(_file(_text(source.read(file), file), file))
    for word in words:
        if word in ("-", "@-"):
            found.update(_json(_text(source.read("-"), "standard input"), "standard input"))
        elif word.startswith("@") and "=" not in word:
            found.update(_json(_text(source.read(word[1:]), word[1:]), word[1:]))
        else:
            key, value = _pair(word, source)
            found[key] = value
    if not words and not file and source.waits():
        text = _text(source.read("-"), "standard input")
        found.update(_json(text, "standard input") if text.strip() else {})
    for key, value in found.items():
        _check(key, value)
    return found


def _file(text: str, path: str) -> Dict[str, str]:
    """Return the settings of a file: JSON where it is that, YAML otherwise. Raises ToolError."""
    from statecfg.remote.units.tools.yaml_text import parse

    try:
        found = _loaded(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):  # braces are YAML's as well
        found = None
    return parse(text, path) if found is None else _texts(found, path)


def _pair(word: str, source: Input) -> Tuple[str, str]:
    """Return the key and the value of KEY=VALUE; as the original, a value that begins with @ names a file."""
    key, is_there, value = word.partition("=")
    if not is_there or not key:
        raise ToolError("Expected `option=value`. Found `%s`" % word)
    if value.startswith("@"):
        try:
            value = _text(source.read(value[1:]), value[1:])
        except FileNotFoundError:
            raise ToolError("No such file or directory: %s (argument:%s)" % (value[1:], key)) from None
    return key, value


class Input:
    """The files that words name; standard input can be read once."""

    def __init__(self) -> None:
        self.taken = False

    def read(self, path: str) -> bytes:
        """Return what a file holds, `-` being standard input. Raises ToolError, FileNotFoundError."""
        if path == "-":
            if self.taken:
                raise ToolError("standard input can be read once")
            self.taken = True
        try:
            with open(0 if path == "-" else path, "rb", closefd=path != "-") as stream:
                data = stream.read(MOST + 1)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise ToolError("%s can't be read: %s" % (path, problem.strerror)) from None
        if len(data) > MOST:
            raise ToolError("%s has more than %d bytes" % (path, MOST))
        return data

    def waits(self) -> bool:
        """Tell whether something is to be read from a standard input that no word names."""
        try:
            return not os.isatty(0) and bool(select.select([0], [], [], FIRST)[0])
        except (OSError, ValueError):  # it is closed
            return False


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ToolError("%s is no UTF-8 text (byte %d)" % (path, problem.start)) from None


def _json(text: str, path: str) -> Dict[str, str]:
    """Return the settings of a JSON text. Raises ToolError."""
    try:
        return _texts(_loaded(text), path)
    except (ValueError, RecursionError) as problem:
        raise ToolError("%s: no JSON: %s" % (path, problem)) from None


def _loaded(text: str) -> Any:
    """Return what a JSON text says, its numbers as they are written. Raises ValueError, RecursionError."""
    import json

    return json.loads(text, parse_int=str, parse_float=str, parse_constant=_constant)


def _texts(found: Any, path: str) -> Dict[str, str]:
    if not isinstance(found, dict):
        raise ToolError("%s: a JSON map of settings is needed" % path)
    return {key: _value(key, value, path) for key, value in found.items()}


def _constant(name: str) -> Any:
    raise ValueError("%s is no JSON" % name)


def _value(key: str, value: Any, path: str) -> str:
    """Return a value as the text that KEY=VALUE would have given, numbers as they are written; null is what deletes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    raise ToolError("%s: the value of %s must be a text, a number, true, false or null" % (path, key))


def _check(key: str, value: str) -> None:
    """Refuse what no store can keep: settings are text. Raises ToolError."""
    if not key:
        raise ToolError("a key is empty")
    try:
        (key + value).encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("the value of %s is no UTF-8 text" % ascii(key)) from None
    if "\0" in key + value:
        raise ToolError("the value of %s has a NUL character" % ascii(key))
