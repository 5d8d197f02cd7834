"""The body of a webhook request: the default JSON, or the rendered template of the behavior.

Templates use a subset of FreeMarker: `${path.to.value}`, optionally followed by `!"default"`, `?json_string` or `?c`;
`<#assign NAME = "text" />`, where `header_NAME` sets a header of the request; and `<#-- comments -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError

HEADER = "header_"
LARGEST = 8 << 20  # characters of all rendered texts: an assigned text may repeat others many times
_TAG = re.compile(
    r"""<\#--.*?-->
      | <\#assign\s+(?P<name>[A-Za-z_](?:[\w.:-]|\\[.:-])*)\s*=\s*
        (?P<quote>["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)\s*/?>
      | \$\{(?P<expression>[^{}]*)\}
      | (?P<wrong></?[\#@][^>]*>?|\$\{[^}]*\}?)""",
    re.VERBOSE | re.DOTALL,
)
_STEP = re.compile(
    r"""\s*+(?:(?:\.\s*+)?(?P<name>[A-Za-z_$@](?:[\w$@]|\\[.:-])*)|\[\s*(?:"(?P<key>[^"\\]*)"|(?P<number>\d{1,6}))\s*\])"""
)
_DEFAULT = re.compile(r"""\s*!\s*(?:"(?P<text>[^"\\]*)")?""")
_BUILTIN = re.compile(r"\s*\?\s*(\w+)")
_BUILTINS = ("json_string", "c")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
# Headers of the connection and the signature. A template must not set them.
_RESERVED = ("host", "date", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade")


class TemplateError(StatecfgError):
    """A template is invalid, or does not fit its data; the message says why."""


@dataclass(frozen=True)
class _Placeholder:
    """`${…}`: the steps to a value, the default for a missing value, and the built-ins to apply."""

    written: str
    steps: Sequence[str | int]
    default: str | None
    builtins: Sequence[str]


@dataclass(frozen=True)
class _Assign:
    name: str
    pieces: Sequence[str | _Placeholder]


def compact(value: Any) -> bytes:
    """Return JSON without spaces and without keys whose value is null.

    Source: VMware's verifier expects bodies in this form.
    """
    return json.dumps(_without_nulls(value), ensure_ascii=False, separators=(",", ":")).encode()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


def check(template: str) -> None:
    """Check the syntax of a template.

    :raises TemplateError: it is invalid
    """
    _parsed(template)


def rendered(template: str, data: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Return the body that a template renders from the data, and the headers that it sets.

    :raises TemplateError: the template is invalid or does not fit the data
    """
    values = {**data, **{f"{key}_string": json.dumps(data[key], ensure_ascii=False) for key in ("arguments", "entity")}}
    headers: dict[str, str] = {}
    parts: list[str] = []
    size = 0

    def render(piece: str | _Placeholder) -> str:
        nonlocal size
        text = _rendered(piece, values)
        size += len(text)
        if size > LARGEST:
            raise TemplateError(f"the template makes more than {LARGEST:,} characters")
        return text

    for piece in _parsed(template):
        if isinstance(piece, _Assign):
            values[piece.name] = "".join(map(render, piece.pieces))
            if piece.name.startswith(HEADER):
                name = piece.name.removeprefix(HEADER)
                headers[name] = _header(name, values[piece.name])
        else:
            parts.append(render(piece))
    return "".join(parts).encode(), headers


def _parsed(template: str) -> list[str | _Placeholder | _Assign]:
    pieces: list[str | _Placeholder | _Assign] = []
    end = 0
    for tag in _TAG.finditer(template):
        pieces.append(template[end : tag.start()])
        end = tag.end()
        if tag["wrong"]:
            raise TemplateError(
                f'the template has {tag["wrong"][:60]!r}; only ${{value}}, <#assign NAME = "text" /> and comments are'
                " understood"
            )
        if tag["expression"] is not None:
            pieces.append(_value(tag["expression"]))
        elif tag["name"] is not None:
            pieces.append(_assign(tag["name"].replace("\\", ""), _ESCAPE.sub(_plain, tag["text"])))
    return [*pieces, template[end:]]


def _plain(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])


def _assign(name: str, text: str) -> _Assign:
    pieces = _parsed(text)
    if any(isinstance(piece, _Assign) for piece in pieces):
        raise TemplateError(f"the template's {name} contains another <#assign>")
    if name.startswith(HEADER):
        _header(name.removeprefix(HEADER), "")
    return _Assign(name, [piece for piece in pieces if not isinstance(piece, _Assign)])


def _header(name: str, value: str) -> str:
    """Return the value of a header.

    :raises TemplateError: a template must not set this header, or the value is invalid
    """
    if not _HEADER_NAME.match(name) or name.lower() in _RESERVED or name.lower().startswith("x-vcloud-"):
        raise TemplateError(f"the template can't set the header {name!r}")
    if not value.isascii() or any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise TemplateError(f"the template gives the header {name} a value that headers can't have")
    return value


def _value(text: str) -> _Placeholder:
    steps: list[str | int] = []
    at = 0
    while (match := _STEP.match(text, at)) is not None:
        number = match["number"]
        name = match["key"] if match["key"] is not None else (match["name"] or "").replace("\\", "")
        steps.append(int(number) if number is not None else name)
        at = match.end()
    default = None
    if steps and (match := _DEFAULT.match(text, at)) is not None:
        default, at = match["text"] or "", match.end()
    builtins = []
    while (match := _BUILTIN.match(text, at)) is not None:
        builtins.append(match[1])
        at = match.end()
    unknown = [name for name in builtins if name not in _BUILTINS]
    if not steps or isinstance(steps[0], int) or text[at:].strip() or unknown:
        raise TemplateError(
            f"the template's ${{{text[:60]}}} is not supported: write ${{path.to.value}}, "
            'maybe with !"default" or ?json_string'
        )
    return _Placeholder(text.strip(), steps, default, builtins)


def _rendered(piece: str | _Placeholder, data: Mapping[str, Any]) -> str:
    if isinstance(piece, str):
        return piece
    value: Any = data
    for step in piece.steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    if value is None:
        if piece.default is None:
            raise TemplateError(f"the template's ${{{piece.written}}} has no value here, and no default")
        value = piece.default
    if isinstance(value, Mapping | list):
        raise TemplateError(
            f"the template's ${{{piece.written}}} is not a single value; use entity_string for the whole entity"
        )
    text = json.dumps(value) if isinstance(value, bool | int | float) else str(value)
    return json.dumps(text, ensure_ascii=False)[1:-1] if "json_string" in piece.builtins else text
