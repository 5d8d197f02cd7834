"""The changes of a node as data: object, field, before, after, and a diff for text."""

from __future__ import annotations

from typing import Dict

from statecfg.remote.graph.model import CONCEALED, Blob
from statecfg.remote.graph.nodetype import FACETS
from statecfg.remote.machine import access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple

    from typing_extensions import TypedDict

    from statecfg.remote.machine.world import Fields, Stat

    class _Difference(TypedDict, total=False):
        diff: str

    class Change(_Difference):
        """A change in the form of the report; `diff` is there only for text."""

        object: str
        field: str
        before: Any
        after: Any


DIFFED = 1 << 20  # bytes; of a larger file, only the digests are shown
DIFF_LINES = 400
DIFF_TEXT = 64 << 10  # characters of one diff
DIFFS = 512 << 10  # characters of all diffs of a node; after that, only digests are shown
HOLDS = "holds a secret"
HIDDEN = "$hidden"  # the key of a value with secrets in the ledger, see `hidden`
STAND_INS: Dict[str, object] = {}  # strings in place of secrets of earlier runs, see `hidden`
_NOT_SHOWN = "not shown: it may contain a secret"
_OPEN = ("kind", "mode", "owner", "group", "acl", "present")  # fields that never contain a secret
_BRACKETS = b" \t()[]{},;"  # lines of only these characters, as in JSON, reveal nothing
_INTERNAL = ("asked",)  # facets that only planning itself uses
_NAMES = {
    "packages": "package", "units": "unit", "users": "user", "groups": "group", "passwords": "password of",
    "lingering": "lingering of",
}  # fmt: skip


class Changes:
    """The changes of one node. Each (object, field) occurs once, with its first before and its last after."""

    def __init__(self) -> None:
        self.values: Dict[Tuple[str, str], List[Any]] = {}

    def note(self, thing: str, field: str, before: Any, after: Any) -> None:
        values = self.values.get((thing, field))
        if values is None:
            self.values[thing, field] = [before, after]
        else:
            values[1] = after

    def path(
        self,
        path: str,
        old_stat: Optional[Stat],
        before: Optional[Blob],
        new_stat: Optional[Stat],
        after: Optional[Blob],
    ) -> None:
        """Record the change of a path from `old_stat` to `new_stat`. Pass the contents if they change."""
        for field in ("kind", "mode", "owner", "group", "acl", "target"):
            was, will = _field(old_stat, field), _field(new_stat, field)
            if field == "acl" and new_stat is not None and was is not None:
                will = will or "none"
            if was != will:
                self.note(path, field, was, will)
        removed = before is not None and (new_stat is None or new_stat.file_type != "file")
        if (after is not None or removed) and after != before:
            self.note(path, "content", before, after)

    def fields(self, facet: str, key: str, before: Optional[Fields], after: Optional[Fields]) -> None:
        """Record the change of an entry of a facet, field by field."""
        if facet in _INTERNAL:
            return
        kind, of, holder = facet.partition(" of ")  # `units of the user deploy`
        thing = f"{_NAMES.get(kind, kind)} {key}{of}{holder}"
        passing = FACETS[facet].runtime if facet in FACETS else ()
        for field in sorted((set(before or {}) | set(after or {})).difference(passing)):
            was, will = (before or {}).get(field), (after or {}).get(field)
            if was != will:
                self.note(thing, field, was, will)
        if not before and after is not None and not after:
            self.note(thing, "present", None, True)

    def report(self) -> List[Change]:
        """Return the changes in the form of the report, without fields that have their first value again."""
        result: List[Change] = []
        room = DIFFS
        for (thing, field), (before, after) in self.values.items():
            if before == after or (after is True and before is None and self._comes_with(thing)):
                continue
            change: Change = {"object": thing, "field": field, "before": before, "after": after}
            if field == "content":
                diff = _diff(thing, before, after) if room > 0 else ""
                room -= len(diff)
                # The former content may be an older secret, so it is not shown either.
                secret = after is not None and after.hides()
                change["before"] = content(before, secret or _conceals(before))
                change["after"] = content(after, secret or _conceals(after))
                if diff:
                    change["diff"] = diff
            result.append(change)
        return result

    def _comes_with(self, thing: str) -> bool:
        """Tell whether a mark, such as that of an automatic package, comes with its thing, which is new itself."""
        marked = marked_by(thing)
        return bool(marked) and any(name == marked and first[0] is None for (name, _), first in self.values.items())


def marked_by(thing: str) -> str:
    """Return the object that a mark belongs to: `user bob` for `password of bob`. "" if the object is not a mark."""
    for name, facet in FACETS.items():
        start = f"{_NAMES.get(name, name)} "
        if facet.of and thing.startswith(start):
            return f"{_NAMES.get(facet.of, facet.of)} {thing[len(start) :]}"
    return ""


def _field(stat: Optional[Stat], field: str) -> Any:
    if stat is None:
        return None
    value = getattr(stat, "file_type" if field == "kind" else field)
    if field == "mode":
        return None if stat.file_type == "symlink" else f"{value:04o}"
    return access.as_text(value) if field == "acl" else value or None


def content(blob: Optional[Blob], secret: bool = False) -> Optional[str]:
    """Return content as reports show it: by its digest and size.

    If it holds a secret, omit the digest, because the secret could be guessed from it.
    """
    if blob is None:
        return None
    if blob.origin:
        return blob.origin
    if secret or blob.hides():
        return f"{HOLDS} ({blob.size} bytes)"
    return f"sha256:{blob.sha256} ({blob.size} bytes)"


def with_digests(value: Any) -> Any:
    """Return attributes as the ledger stores them: content as a digest, everything else unchanged."""
    if isinstance(value, Blob):
        return content(value)
    if isinstance(value, dict):
        # A key of the ledger's own begins with a dollar sign, see `machine.hidden`.
        return {("$" if str(key)[:1] == "$" else "") + str(key): with_digests(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_digests(item) for item in value]
    return value


def as_json(value: Any) -> Any:
    """Return a value as JSON for a report: content as its digest, long text cut."""
    if value is None or (type(value) is str and len(value) <= 2000):  # most values, so they come first
        return value
    if isinstance(value, Blob):
        return content(value)
    if isinstance(value, bytes):
        return as_json(Blob.of(value))
    if isinstance(value, str):
        return str(value) if len(value) <= 2000 else as_json(Blob.of(value))
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf")):
        return value
    return repr(value)


def secretive(value: Any) -> bool:
    """Tell whether a value of the ledger, or of a node to undo, has a secret in it. It is not stored itself."""
    if isinstance(value, dict):
        return HIDDEN in value or any(map(secretive, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(secretive, value))
    return bool(STAND_INS) and isinstance(value, str) and any(token in value for token in STAND_INS)


def without_diff(change: Change) -> Change:
    """Return a change without its diff."""
    field, before, after = change["field"], change["before"], change["after"]
    return {"object": change["object"], "field": field, "before": before, "after": after}


def hidden(changes: List[Change]) -> List[Change]:
    """Return changes without values and diffs. One of the values is a secret, and it is unknown which."""
    result = [without_diff(change) for change in changes]
    for change in result:
        if change["field"] not in _OPEN:
            change["before"] = None if change["before"] is None else _NOT_SHOWN
            change["after"] = None if change["after"] is None else _NOT_SHOWN
    return result


def _text(blob: Optional[Blob]) -> Optional[str]:
    """Return the content as text; "" for no content, None if it is not text, too large, or a private key."""
    if blob is None:
        return ""
    if blob.size > DIFFED:
        return None
    try:
        text = blob.read().decode("utf-8")
    except (UnicodeDecodeError, LookupError):
        return None
    return None if "\0" in text or "PRIVATE KEY-----" in text else text


def _conceals(blob: Optional[Blob]) -> bool:
    """Tell whether the content has a line of `CONCEALED`."""
    return bool(CONCEALED) and any(line.strip() in CONCEALED for line in (_text(blob) or "").splitlines())


def _in_short_lines(value: bytes) -> bool:
    """Tell whether a secret has lines that are too short to be masked one by one in a diff."""
    from statecfg.remote.machine.redact import SHORTEST

    lines = value.splitlines()
    return len(lines) > 1 and any(0 < len(line) < SHORTEST for line in (line.strip(_BRACKETS) for line in lines))


def _diff(path: str, before: Optional[Blob], after: Optional[Blob]) -> str:
    """Return the unified diff of two contents, or "" if one is not text or a secret could not be masked."""
    old_text, new_text = _text(before), _text(after)
    if old_text is None or new_text is None:
        return ""
    blobs = [blob for blob in (before, after) if blob is not None]
    broken = [value for value in blobs[0].secrets if _in_short_lines(value)]
    if broken and any(blob.holds(broken) for blob in blobs):
        return ""
    import difflib
    import io

    lines = []
    for line in difflib.unified_diff(
        list(io.StringIO(old_text)),  # only a line feed ends a line, unlike in `str.splitlines`
        list(io.StringIO(new_text)),
        path if before is not None else "/dev/null",
        path if after is not None else "/dev/null",
    ):
        if after is not None and after.hides() and line[0] == "-" and not line.startswith("--- "):
            line = "-[not shown: its replacement contains a secret]\n"
        elif line[1:].strip() in CONCEALED:
            line = line[0] + "[not shown: it contains a secret]\n"
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    if len(lines) > DIFF_LINES:
        lines[DIFF_LINES:] = [f"… {len(lines) - DIFF_LINES} more lines\n"]
    text = "".join(lines)
    return text if len(text) <= DIFF_TEXT else text[:DIFF_TEXT] + f"…\n… {len(text) - DIFF_TEXT} more characters\n"
