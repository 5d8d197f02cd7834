"""Errors of many hosts that are equal apart from the hosts' own names, addresses and ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from statecfg.run.report_model import HostError

LISTED = 200  # hosts whose names and addresses are listed

_ADDRESS = r"(?<![\w.:])(?P<ADDRESS>\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*[0-9A-Fa-f](?:%\w+)?)(?!\w)"
_PORT = r"(?<=\bport )(?P<PORT>\d+)|(?<= -p )(?P<P>\d+)"
_OWN = re.compile(f"{_ADDRESS}|{_PORT}")


class _Text(NamedTuple):
    """The text of an error, divided at what belongs to its host.

    :param fixed: the pieces of text between the values
    :param placeholders: "HOST", "ADDRESS" or "PORT", for each value
    :param values: what belongs to the host
    """

    fixed: tuple[str, ...]
    placeholders: tuple[str, ...]
    values: tuple[str, ...]


def template(error: HostError, name: str) -> str:
    """Return a string that is equal for errors that differ only in what belongs to their hosts.

    :param name: the host's name
    """
    return repr([(text.fixed, text.placeholders) for text in (_divided(part, name) for part in _parts(error))])


def merged(errors: Mapping[str, HostError]) -> HostError:
    """Return one error in place of those of several hosts, which have the same template. Its detail lists the hosts.

    :param errors: the host's name → its error
    """
    first = next(iter(errors.values()))
    if all(error == first for error in errors.values()):
        return first
    parts: list[str] = []
    own: dict[str, dict[str, None]] = {name: {} for name in errors}  # host → its values that others don't have
    for texts in zip(
        *([_divided(part, name) for part in _parts(error)] for name, error in errors.items()), strict=True
    ):
        shown = []
        for placeholder, values in zip(
            texts[0].placeholders, zip(*(text.values for text in texts), strict=True), strict=True
        ):
            differ = len(set(values)) > 1
            shown.append(placeholder if differ else values[0])
            if differ and placeholder != "HOST":
                for name, value in zip(own, values, strict=True):
                    own[name][value] = None
        parts.append("".join(a + b for a, b in zip(texts[0].fixed, [*shown, ""], strict=True)))
    summary, detail, hint = parts
    listed = [f"{name} ({', '.join(values)})" if values else name for name, values in own.items()]
    more = f" and {len(listed) - LISTED:,} more" if len(listed) > LISTED else ""
    hosts = f"Hosts: {', '.join(listed[:LISTED])}{more}"
    return {"summary": summary, "detail": f"{detail}\n{hosts}".lstrip(), "hint": hint}


def _parts(error: HostError) -> Iterator[str]:
    return (str(text or "") for text in (error["summary"], error.get("detail"), error.get("hint")))


def _divided(text: str, name: str) -> _Text:
    pattern = _OWN
    if name in text:
        pattern = re.compile(rf"{_ADDRESS}|{_PORT}|(?<![\w.-])(?P<HOST>{re.escape(name)}(?:\.[\w-]+)*)(?![\w-])")
    fixed, placeholders, values, end = [], [], [], 0
    for match in pattern.finditer(text):
        placeholder = match.lastgroup or ""
        if placeholder == "ADDRESS" and not _is_address(match.group()):
            continue
        fixed.append(text[end : match.start()])
        placeholders.append("PORT" if placeholder == "P" else placeholder)
        values.append(match.group())
        end = match.end()
    return _Text((*fixed, text[end:]), tuple(placeholders), tuple(values))


def _is_address(text: str) -> bool:
    import ipaddress  # takes time to import

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
