"""Interpret plain YAML scalars if their meaning is certain, and explain text that is not valid YAML."""

from __future__ import annotations

import re
from typing import Any

from statecfg.graph.value import Value
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+\Z")
_LIMIT = 2**63
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_SWITCHES = frozenset(("y", "n", "yes", "no", "on", "off"))
# Ambiguous spellings, each with the reason. `re` compiles and keeps them on first use: most files need none of them.
_DOUBTFUL = (
    (r"[-+]?0[0-9_]+\Z", "YAML readers disagree: octal, decimal or a string"),
    (r"[-+]?0[oO][0-7_]+\Z", "YAML readers disagree: octal or a string"),
    (r"[-+]?0[xX][0-9a-fA-F_]+\Z", "YAML readers disagree: hexadecimal or a string"),
    (r"[-+]?0[bB][01_]+\Z", "YAML readers disagree: binary or a string"),
    (r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z", "YAML 1.1 reads it as a number in base 60"),
    (r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?\Z", "the number would lose this spelling"),
    (r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]+[eE][-+]?[0-9]+\Z", "YAML readers disagree: a number or a string"),
    (r"[-+]?\.[0-9_]+\Z", "YAML readers disagree: a number or a string"),
    (r"[-+]?[0-9][0-9_]*\.[0-9_]*[eE][-+]?[0-9]+\Z", "YAML readers disagree: a number or a string"),
    (r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z", "it is not a finite number"),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?\Z", "YAML 1.1 reads it as a date"),
    (r"=\Z", "YAML 1.1 reads it as a special value"),
)
# The characters that YAML forbids. `re` takes ten times as long to compile the complement of those that it allows.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: .*)?$", re.MULTILINE)


def read(text: str) -> tuple[Any, tuple[str, str] | None]:
    """Return the value of a plain (unquoted) scalar, and (detail, help) if its meaning is ambiguous.

    Everything is text except `true` and `false`, `null` and `~`, and decimal numbers in their shortest spelling.
    Source: the type repository of YAML 1.1 and the schemas of YAML 1.2, which disagree on the other spellings.
    """
    if text in _NULLS:
        return None, None
    if text in _WORDS:
        return _WORDS[text], None
    if text.lower() in _SWITCHES:
        answer = "true" if text.lower() in ("y", "yes", "on") else "false"
        return text, (f"YAML 1.1 reads it as {answer}, YAML 1.2 as a string", f'write {answer}, or quote it: "{text}"')
    if not (text[0].isdigit() or text[0] in "+-.="):
        return text, None
    if _INTEGER.match(text) and text != "-0" and len(text) < 25 and -_LIMIT <= int(text) < _LIMIT:
        return int(text), None
    if _DECIMAL.match(text) and len(text) < 25 and repr(float(text)) == text:
        return float(text), None
    if text.count(".") > 1 and "-" not in text:  # an address or a version: only dates may contain more than one dot
        return text, None
    for pattern, why in _DOUBTFUL:
        if re.match(pattern, text):
            if _INTEGER.match(text) and text != "-0":
                why = "the number is too large"
            return text, (why, f"quote it: {quoted(text)}")
    return text, None


def quoted(text: str) -> str:
    """Return a string in quotes, shortened for a message."""
    return f'"{text}"' if len(text) <= 40 else f'"{text[:20]}…"'


def shorten(text: str) -> str:
    """Return a string of at most 40 characters for a message."""
    return text if len(text) <= 40 else text[:39] + "…"


def describe(value: Any) -> str:
    """Return a description of a value for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"the value {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {shorten(value)!r}"
    if isinstance(value, Value):
        return repr(value)
    return "a map" if isinstance(value, dict) else "a list" if isinstance(value, (list, tuple)) else "something else"


def decode(data: bytes, file: str) -> str:
    """Return bytes as text.

    :param file: the name of the file in source locations
    :raises InvalidInput: the bytes are not plain UTF-8; the problem has the offset and a guess of the encoding
    """
    for mark, name in ((b"\xff\xfe", "UTF-16 (little end first)"), (b"\xfe\xff", "UTF-16 (big end first)")):
        if data.startswith(mark):
            raise _unreadable(file, data, 0, f"the file starts with the byte order mark of {name}")
    if data.startswith(b"\xef\xbb\xbf"):
        raise _unreadable(file, data, 0, "the file starts with a byte order mark")
    zero = data.find(b"\0")
    if zero >= 0:
        even, odd = data[:200:2].count(0), data[1:200:2].count(0)
        guess = "; it looks like UTF-16" if max(even, odd) > len(data[:200]) // 4 else ""
        raise _unreadable(file, data, zero, "a NUL byte" + guess)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        guess = "it looks like Latin-1" if data[error.start] >= 0xA0 else "it is not UTF-8 text"
        raise _unreadable(file, data, error.start, f"byte 0x{data[error.start]:02x}; {guess}") from None
    control = _CONTROL.search(text)
    if control:
        offset = len(text[: control.start()].encode("utf-8"))
        raise _unreadable(file, data, offset, f"character U+{ord(control.group()):04X} is not allowed in YAML")
    conflict = _CONFLICT.search(text)
    if conflict:
        location = SourceLocation(file, text.count("\n", 0, conflict.start()) + 1, 1)
        help_text = "resolve the conflict: keep one side and delete the marker lines"
        raise InvalidInput([problem("SC0314", "this looks like an unfinished merge", help_text, location)])
    return text


def _unreadable(file: str, data: bytes, offset: int, what: str) -> InvalidInput:
    start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[start:offset].decode("utf-8", "replace")) + 1
    location = SourceLocation(file, data.count(b"\n", 0, offset) + 1, column)
    help_text = "save the file as UTF-8 without a byte order mark"
    return InvalidInput([problem("SC0313", f"at byte offset {offset}: {what}", help_text, location)])


def reader_problem(error: Any, text: str, file: str) -> Problem:
    """Return the problem of a character that the parser refuses."""
    position = int(getattr(error, "position", 0) or 0)
    line = text.count("\n", 0, position) + 1
    return problem("SC0313", str(error.reason), "remove the character", SourceLocation(file, line))


def syntax_problem(error: Any, text: str, file: str) -> Problem:
    """Return the problem of a syntax error, with the source location of the unclosed part if there is one."""
    mark = error.problem_mark or error.context_mark
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    locations = [SourceLocation(file, mark.line + 1, mark.column + 1)]
    opener = error.context_mark
    if opener is not None and (opener.line, opener.column) != (mark.line, mark.column):
        locations.append(SourceLocation(file, opener.line + 1, opener.column + 1))
    detail = " ".join(part for part in (error.context, error.problem) if part)
    if "maximum nesting depth" in detail:  # newer versions of libyaml stop at 1,000 levels
        return problem("SC0305", "nested more than 1,000 levels deep", "flatten it", locations[0])
    return problem("SC0315", detail, _cure(line, mark.column, str(error.problem), opener), *locations)


def _cure(line: str, column: int, problem: str, opener: Any) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    here = line[column : column + 1]
    if "\t" in indent:
        return "indent with spaces: YAML forbids tabs there"
    if "mapping values are not allowed" in problem:
        return "quote the value if it contains ': '; otherwise check the indentation"
    if here and here in "@`%" and "start any token" in problem:
        return f"quote a value that starts with {here}"
    if "end of stream" in problem or "stream end" in problem:
        return "close the bracket or quote" + (f": it was opened on line {opener.line + 1}" if opener else "")
    if "',' or" in problem:
        return f"close the bracket opened on line {opener.line + 1}, or add the missing comma"
    if "escape" in problem:
        return "write \\\\ for a backslash in double quotes, or use single quotes"
    if "block" in problem or "expected key" in problem or "'-'" in problem:
        begins = f" as the block that starts on line {opener.line + 1}" if opener else ""
        return f"check the indentation: this line must start in the same column{begins}"
    if "could not find expected ':'" in problem:
        return "add the missing ': ', or check the indentation of the lines above"
    return "check this line and the line above it"
