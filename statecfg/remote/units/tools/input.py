"""Read the settings that hooks pass to the tools: KEY=VALUE, KEY=@FILE, JSON on stdin or in a file, or YAML."""

from __future__ import annotations

import os
import select

from statecfg.remote.units.tools.options import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple

MOST = 16 << 20  # maximum bytes of a file: more than can be set, but a limit for endless devices
FIRST = 1.0  # seconds to wait for data on standard input that no word names: a hook's is empty, others may be idle


def settings(words: Sequence[str], file: str) -> Dict[str, str]:
    """Return the settings: key → value; "" deletes the key.

    :param words: KEY=VALUE, KEY=@FILE, KEY=@- (value on stdin), `-` or @- (JSON on stdin), @FILE (JSON in a file)
    :param file: a file of YAML or JSON; `-` for standard input; "" for none
    :raises ToolError: the input is invalid or can't be read
    """
    values: Dict[str, str] = {}
    source = ToolInput()
    if file:
        values.update(_file(_text(source.read(file), file), file))
    for word in words:
        if word in ("-", "@-"):
            values.update(_json(_text(source.read("-"), "standard input"), "standard input"))
        elif word.startswith("@") and "=" not in word:
            values.update(_json(_text(source.read(word[1:]), word[1:]), word[1:]))
        else:
            key, value = _pair(word, source)
            values[key] = value
    if not words and not file and source.waits():
        text = _text(source.read("-"), "standard input")
        values.update(_json(text, "standard input") if text.strip() else {})
    for key, value in values.items():
        _check(key, value)
    return values


def _file(text: str, path: str) -> Dict[str, str]:
    """Parse the settings of a file as JSON or, if it is not JSON, as YAML.

    :raises ToolError: the text is neither
    """
    from statecfg.remote.units.tools.yaml_text import parse

    try:
        loaded = _loaded(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):  # YAML may also start with a brace
        loaded = None
    return parse(text, path) if loaded is None else _texts(loaded, path)


def _pair(word: str, source: ToolInput) -> Tuple[str, str]:
    """Return key and value of KEY=VALUE. As in the original, a value that starts with @ names a file."""
    key, is_there, value = word.partition("=")
    if not is_there or not key:
        raise ToolError(f"Expected `option=value`. Found `{word}`")
    if value.startswith("@"):
        try:
            value = _text(source.read(value[1:]), value[1:])
        except FileNotFoundError:
            raise ToolError(f"No such file or directory: {value[1:]} (argument:{key})") from None
    return key, value


class ToolInput:
    """Reads the files that words name. Standard input can be read once."""

    def __init__(self) -> None:
        self.taken = False

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        :param path: the file; `-` for standard input
        :raises FileNotFoundError: the file does not exist
        :raises ToolError: the file can't be read or is too large
        """
        if path == "-":
            if self.taken:
                raise ToolError("standard input can be read only once")
            self.taken = True
        try:
            with open(0 if path == "-" else path, "rb", closefd=path != "-") as stream:
                data = stream.read(MOST + 1)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise ToolError(f"{path} can't be read: {problem.strerror}") from None
        if len(data) > MOST:
            raise ToolError(f"{path} has more than {MOST} bytes")
        return data

    def waits(self) -> bool:
        """Return whether there is data on standard input, for calls that don't name it."""
        try:
            return not os.isatty(0) and bool(select.select([0], [], [], FIRST)[0])
        except (OSError, ValueError):  # it is closed
            return False


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ToolError(f"{path} is not UTF-8 text (byte {problem.start})") from None


def _json(text: str, path: str) -> Dict[str, str]:
    """Parse settings from JSON.

    :raises ToolError: the text is not a JSON map of settings
    """
    try:
        return _texts(_loaded(text), path)
    except (ValueError, RecursionError) as problem:
        raise ToolError(f"{path}: not JSON: {problem}") from None


def _loaded(text: str) -> Any:
    """Parse JSON, keeping numbers as they are written.

    :raises ValueError, RecursionError: the text is not JSON
    """
    import json

    return json.loads(text, parse_int=str, parse_float=str, parse_constant=_constant)


def _texts(loaded: Any, path: str) -> Dict[str, str]:
    if not isinstance(loaded, dict):
        raise ToolError(f"{path}: expected a JSON map of settings")
    return {key: _value(key, value, path) for key, value in loaded.items()}


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _value(key: str, value: Any, path: str) -> str:
    """Return a JSON value as the text that KEY=VALUE would contain; "" for null, which deletes the key."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    raise ToolError(f"{path}: the value of {key} must be a string, a number, true, false or null")


def _check(key: str, value: str) -> None:
    """Refuse empty keys and characters that the store can't contain.

    :raises ToolError: the key or the value is invalid
    """
    if not key:
        raise ToolError("a key is empty")
    try:
        (key + value).encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(f"the value of {key!a} is not UTF-8 text") from None
    if "\0" in key + value:
        raise ToolError(f"the value of {key!a} has a NUL character")
