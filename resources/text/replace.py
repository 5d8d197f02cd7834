"""Replacements of text in files that statecfg does not manage as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    Attrs,
    CheckError,
    HostNode,
    NodeOptions,
    NoNul,
    Pattern,
    Suffix,
    World,
    node_type,
)
from statecfg.resources.shared import text_files
from statecfg.resources.text import replacements, replacing, text_rules


@node_type
def replace(
    path: AbsolutePath,
    *,
    pattern: Pattern,
    replacement: NoNul,
    after: Pattern | None = None,
    before: Pattern | None = None,
    count_at_least: int | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Replace all text of a file that matches a regular expression.

    A second apply must change nothing. statecfg tries that when it plans: if the pattern still matches and the text
    would change again, the node fails, and the error shows both strings. The file must exist and be UTF-8 text.

    Regular expressions are those of Python's `re` in multi-line mode: `^` and `$` match at the ends of each line, also
    of lines with Windows line ends. `.` does not match a line break; begin the pattern with `(?s)` to change that.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names. Use `requires` if they change the same line.

    Undo: statecfg puts the lines back that it replaced when the node became managed. It keeps lines that others have
    changed since then, and text that it replaced in later runs.

    :param path: the path of the file; a link is followed
    :param pattern: the regular expression
    :param replacement: the new text. ``\\1`` and ``\\g<name>`` are groups of the pattern, ``\\n`` is a line
        break and ``\\\\`` a backslash, also in a secret. An empty text deletes what matches
    :param after: a regular expression: replace only text after its first match, or nothing
    :param before: a regular expression: replace only text before its first match (with `after`: the first
        one after that), or nothing
    :param count_at_least: the node fails if fewer positions than this match the pattern or contain the replacement
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one

    In YAML::

        - replace: /etc/apt/sources.list
          pattern: http://deb\\.debian\\.org/
          replacement: https://deb.debian.org/
          count_at_least: 1

    In Python::

        replace("/etc/app.conf", pattern=r"^(port\\s*=).*", replacement=r"\\1 80", after=r"^\\[http\\]", before=r"^\\[")
    """


@replace.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the pattern with its range, not the file, because several nodes may edit one file."""
    text = f"replacement:{attrs['path']}: {attrs['pattern']}"
    for name in ("after", "before"):
        if attrs.get(name) is not None:
            text = f"{text}, {name} {attrs[name]}"
    return [text]


replace.owns(["part:path:{path}"])


@replace.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a replacement that is not valid for the pattern, and attributes without effect."""
    pattern, replacement, count = attrs["pattern"], attrs["replacement"], attrs.get("count_at_least")
    text_files.refuse_without_placeholder(attrs)
    if count is not None and count < 1:
        raise ValueError("count_at_least must be 1 or more")
    text_rules.refuse_references(pattern, replacement, "replacement")
    # A secret has another type than text.
    if count is not None and isinstance(replacement, str) and not any(replacing.own_text(replacement)):
        raise ValueError("count_at_least needs a replacement with text besides groups, which statecfg counts")


@replace.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Edit the present content, and compare the result with it."""
    path, stat = text_files.target(node, nodes, world, "change its content instead")
    if stat is None:
        raise CheckError(f"{path} does not exist; require the node that creates it")
    return replacements.replacement(world, path, node.attrs)


replace.implemented_by(replacements)
