"""Parse the YAML that charms' libraries pass to `relation-set --file`: a map of strings and nulls.

Either each key starts at the left margin, or the map is in braces, as PyYAML wrote it until 2019.
"""

from __future__ import annotations

import re

from statecfg.remote.units.tools.options import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Match, Optional

NULLS = ("", "~", "null", "Null", "NULL")
# The letters of YAML's escapes → the characters that they mean.
ESCAPES = dict(zip('0abt\tnvfre "/\\N_LP', '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029'))
QUOTED = r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\""""
# A plain text ends before a colon followed by a space, or before a comment. It does not start like other nodes.
REST = r"(?:[^\s:]|:(?=\S)|[ \t]+(?=[^\s:#]|:\S))*"
PLAIN = r"""(?:[^\s\-?:,\[\]{}#&*!|>'"%@`]|[-?:](?=\S))""" + REST
FOLDED = PLAIN + r"(?:(?:[ \t]*\n)+[ ]+[ \t]*(?:[^\s:#]|:(?=\S))" + REST + ")*"
SKIPPED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[ \t]*(?:#[^\n]*)?\Z|\.\.\.\s*\Z)?")
ENTRY = re.compile(
    r"(?:\?[ ]+(?P<long>" + QUOTED + "|" + FOLDED + r")[ \t]*\n|(?P<key>" + QUOTED + "|" + PLAIN + r"))[ \t]*"
    r":(?=[ \n]|\Z)[ \t]*(?:\n[ \t\n]*[ ]+(?=[^\s#]))?(?P<value>" + QUOTED + "|" + FOLDED + r")?"
    r"(?:[ \t]+#[^\n]*)?[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
# In braces, a plain text contains no comma, bracket or brace, and may continue at the left margin.
INSIDE = r"(?:[^\s:,\[\]{}]|:(?=[^\s,\[\]{}])|\s+(?=[^\s:#,\[\]{}]|:[^\s,\[\]{}]))*"
BRACED = QUOTED + r"""|(?:[^\s\-?:,\[\]{}#&*!|>'"%@`]|[-?:](?=[^\s,\[\]{}]))""" + INSIDE
ITEM = re.compile(
    r"\s*(?:(?:\?\s+)?(?P<key>" + BRACED + r")\s*:(?:\s*(?P<value>" + BRACED + r"))?\s*(?P<end>[,}])|(?P<last>\}))",
    re.DOTALL,
)
BREAK = r"[ \t]*\n[ \t\n]*"
IN_QUOTES = re.compile(r"\\(?:x(?P<x>..)|u(?P<u>.{4})|U(?P<U>.{8})|\n[ \t]*|(?P<sign>.))|" + BREAK, re.DOTALL)


def parse(text: str, name: str) -> Dict[str, str]:
    """Parse a map. A null value becomes ""; any other plain value is a string.

    :param name: name of the source, for errors
    :raises ToolError: the text is anything else; the error names the line
    """
    text = text.replace("\r\n", "\n")
    position = 4 if text.startswith(("---\n", "--- {")) else 0
    values: Dict[str, str] = {}
    inside = over = False
    while True:
        skipped = None if inside else SKIPPED.match(text, position)
        position = skipped.end() if skipped is not None else position
        if position >= len(text) and not inside:
            return values
        if text[position : position + 1] == "{" and not (values or inside or over):
            inside, position = True, position + 1
        where = "%s:%d" % (name, text.count("\n", 0, position) + 1)
        entry = None if over else (ITEM if inside else ENTRY).match(text, position)
        if entry is None:
            raise ToolError(f"{where}: expected KEY: VALUE, where VALUE is a string or null")
        over = inside and (entry.group("last") or entry.group("end")) == "}"
        inside, position = inside and not over, entry.end()
        if over and entry.group("last"):
            continue
        try:
            key, value = _text(entry.groupdict().get("long") or entry.group("key")), entry.group("value") or ""
            if key in values:
                raise ToolError(f"{where}: {key} is given twice")
            values[key] = "" if value in NULLS else _text(value)
        except (ValueError, OverflowError) as problem:
            raise ToolError(f"{where}: {problem}") from None


def _text(scalar: str) -> str:
    """Return the text of a scalar.

    :raises ValueError, OverflowError: an escape is invalid
    """
    if scalar[0] == "'":
        return re.sub(BREAK, _fold, scalar[1:-1]).replace("''", "'")
    if scalar[0] == '"':
        return IN_QUOTES.sub(_unescape, scalar[1:-1])
    return re.sub(BREAK, _fold, scalar)


def _fold(breaks: Match[str]) -> str:
    """Return the text that line breaks and the spaces around them mean."""
    return "\n" * (breaks.group().count("\n") - 1) or " "


def _unescape(match: Match[str]) -> str:
    if not match.group().startswith("\\"):
        return _fold(match)
    digits: Optional[str] = match.group("x") or match.group("u") or match.group("U")
    if digits:
        return chr(int(digits, 16))
    sign: Optional[str] = match.group("sign")
    if sign is None:
        return ""  # an escaped line break
    if sign not in ESCAPES:
        raise ValueError(f"unknown escape \\{sign}")
    return ESCAPES[sign]
