"""The differences of one node: fields as before → after, texts as unified diffs, long ones cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from statecfg.run.report_model import Change, Node
from statecfg.views import safe
from statecfg.views.as_json import plain
from statecfg.views.lines import Line, Span, Style, make
from statecfg.views.tally import of_changes, plural

DIFF_LINES = 40
OBJECTS = 12
_VALUE = 160
_DIGEST = re.compile(r"sha256:([0-9a-f]{12})[0-9a-f]{52} \((\d+) bytes\)\Z")
_SIGNS: dict[str, Style] = {"+": "add", "-": "remove", "@": "hunk"}
_OBJECT_SIGN: dict[str, Span] = {"add": ("+ ", "add"), "destroy": ("- ", "remove"), "replace": ("-/+ ", "change")}


def change_lines(node: Node, full: bool) -> Iterator[Line]:
    """Yield the lines for a node's changes.

    :param node: a node of a report
    :param full: whether to show everything, regardless of its length
    """
    objects = by_object(node.get("changes") or [])
    most = len(objects) if full else OBJECTS
    for number, (name, changes) in enumerate(objects.items()):
        if number == most:
            yield make((f"      … {plural(len(objects) - most, 'more object')} (--diff shows all)", "dim"), hang=8)
            return
        if names_itself(node, name) and len(objects) == 1:
            yield from _fields(changes, 6, full)
        else:
            yield from _object(name, changes, full)


def _object(name: str, changes: Sequence[Change], full: bool) -> Iterator[Line]:
    sign, style = _OBJECT_SIGN.get(of_changes(changes), ("~ ", "change"))
    visible = [change for change in changes if not says_nothing(change)]
    if len(visible) == 1 and diff_of(visible[0]) is None:
        # A single field fits on the line of its object, so that a tree of files takes one line per file.
        field = field_line(visible[0], 2, len(str(visible[0].get("field") or "")))
        head = make("      ", (sign, style), name, hang=10)
        yield head._replace(spans=(*head.spans, *field.spans))
        return
    yield make("      ", (sign, style), name, hang=10)
    yield from _fields(changes, 10, full)


def by_object(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Return object → its changes, in order."""
    objects: dict[str, list[Change]] = {}
    for change in changes:
        objects.setdefault(str(change.get("object") or ""), []).append(change)
    return objects


def names_itself(node: Node, name: str) -> bool:
    """Return whether the node's own name already identifies the object."""
    argument = str(node["name"]).partition(":")[2] or str(node["name"])
    return name.rsplit(" ", 1)[-1] in ("", argument, f"{argument}.service")


def _fields(changes: Sequence[Change], indent: int, full: bool) -> Iterator[Line]:
    short = [
        change for change in changes if diff_of(change) is None and not (len(changes) > 1 and says_nothing(change))
    ]
    width = max((len(str(change.get("field") or "")) for change in short), default=0)
    for change in short:
        yield field_line(change, indent, width)
    for change in changes:
        diff = diff_of(change)
        if diff is not None:
            yield make(" " * indent, (str(change.get("field") or "content"), ""), hang=indent + 2)
            yield from diff_lines(diff, indent + 2, full)


def says_nothing(change: Change) -> bool:
    """Return whether a field only repeats that an object is added or removed, such as `kind: file` of a new file."""
    before, after = change.get("before"), change.get("after")
    if before is not None and after is not None:
        return False
    return change.get("field") in ("kind", "present") or (before if after is None else after) in ("", [], {})


def diff_of(change: Change) -> list[str] | None:
    """Return a change as lines of a unified diff, or None if it is better shown as before → after."""
    if change.get("diff"):
        return _body(str(change["diff"]))
    before, after = change.get("before"), change.get("after")
    if before is None and isinstance(after, str) and "\n" in after:
        return ["+" + text for text in after.removesuffix("\n").split("\n")]
    if after is None and isinstance(before, str) and "\n" in before:
        return ["-" + text for text in before.removesuffix("\n").split("\n")]
    return None


def _body(diff: str) -> list[str]:
    """Return a unified diff without its header; for a whole file, also without the useless line numbers."""
    lines = diff.removesuffix("\n").split("\n")
    if lines[0].startswith("--- ") and len(lines) > 1:
        lines = lines[2:]
    if lines and re.match(r"@@ -0,0 |@@ -\S+ \+0,0 @@", lines[0]):
        lines = lines[1:]
    return lines


def diff_lines(diff: Sequence[str], indent: int, full: bool) -> Iterator[Line]:
    """Yield the lines of a unified diff, colored by their signs; without `full`, at most `DIFF_LINES`."""
    texts = list(diff)
    left = 0 if full else max(0, len(texts) - DIFF_LINES)
    for text in texts[: len(texts) - left]:
        sign = text[:1]
        body = safe.line(text[1:].expandtabs(8)) if sign in ("+", "-", " ") else safe.line(text[1:])
        yield make(
            " " * indent,
            (sign + (" " if sign in ("+", "-", " ") else "") + body, _SIGNS.get(sign, "")),
            hang=indent + 2,
        )
    if left:
        yield make((f"{' ' * indent}… {plural(left, 'more line')} (--diff shows all)", "dim"), hang=indent + 2)


def field_line(change: Change, indent: int, width: int) -> Line:
    """Return the line for one field: its value if added or removed, otherwise before → after.

    :param indent: number of columns before the field
    :param width: number of columns for the field's name, 0 to leave it out
    """
    name = f"{change.get('field') or ''!s:<{width}}  " if width else ""
    before, after = change.get("before"), change.get("after")
    lead = " " * indent + name
    if before is None:
        return make(lead, (value_text(after), "add"), hang=len(lead))
    if after is None:
        return make(lead, (value_text(before), "remove"), hang=len(lead))
    return make(lead, (value_text(before), "remove"), " → ", (value_text(after), "add"), hang=len(lead))


def value_text(value: Any, most: int = _VALUE) -> str:
    """Return a value as text: plain words without quotes, everything else as JSON, cut after `most` characters."""
    digest = _DIGEST.match(value) if isinstance(value, str) else None
    if digest:
        return f"sha256:{digest[1]}… ({int(digest[2]):,} bytes)"
    if isinstance(value, str) and value and value.isprintable() and value == value.strip():
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=plain)
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
