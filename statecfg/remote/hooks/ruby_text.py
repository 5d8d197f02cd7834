"""JSON values as text in the style of Ruby (before 3.4), for the errors and actions of exec hooks."""

from __future__ import annotations

from typing import Any

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\f": "\\f",
    "\v": "\\v",
    "\b": "\\b",
    "\a": "\\a",
    "\x1b": "\\e",
}


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def as_text(value: Any) -> str:
    """Return a JSON value as Ruby interpolates it: a string unchanged, "" for nil, otherwise as `inspect` does."""
    if isinstance(value, str):
        return value
    return "" if value is None else inspect(value)


def inspect(value: Any) -> str:
    """Return a JSON value as Ruby (before 3.4) displays it: `{"a"=>[1, nil]}`."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(inspect, value))}]"
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s=>%s" % (inspect(key), inspect(item)) for key, item in value.items())
    return _float(value) if isinstance(value, float) else str(value)


def _float(value: float) -> str:
    """Return a float as Ruby displays it: with an exponent from 1.0e+15 on, and always with a fraction (1.0e-05)."""
    text = repr(value)
    if text.endswith(".0") and abs(value) >= 1e15:  # Python switches to exponents one digit later
        sign, digits = text[: value < 0], text.lstrip("-").replace(".", "").rstrip("0")
        return f"{sign}{digits[0]}.{digits[1:] or '0'}e+15"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _quoted(text: str) -> str:
    import unicodedata

    pieces = []
    for at, letter in enumerate(text):
        if letter in _ESCAPES:
            pieces.append(_ESCAPES[letter])
        elif letter == "#" and text[at + 1 : at + 2] in ("{", "$", "@"):
            pieces.append("\\#")
        elif letter == "\x85" or unicodedata.category(letter) not in ("Cc", "Cs", "Cn", "Zl", "Zp"):
            pieces.append(letter)
        else:
            pieces.append(f"\\u{ord(letter):04X}" if ord(letter) < 0x10000 else "\\u{%X}" % ord(letter))
    return f'"{"".join(pieces)}"'
