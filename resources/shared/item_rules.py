r"""Items of lists that are written into a grammar: each is one item of it. Only the controller uses this module.

An item comes from a variable or a fact as well as from the playbook's author. So no item may end, split or extend the
list: commas, comments and separators need the grammar's own escape, which is usually `\`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from statecfg.remote.graph.wrong_values import Wrong, show

_ESCAPED = r"""\\[^\s\w]"""
_SUDO_NAME = re.compile(rf"""(%:?|%?\#|\+)?(?:(?:[A-Za-z0-9_.@$-]|{_ESCAPED}|\\\ )+|"[^"\\]+")\Z""", re.X)
_SUDO_PATH = re.compile(rf"""!?/(?:[^\s,:=\\\#!()"]|{_ESCAPED}|\\\ )*\Z""", re.X)
_SUDO_WORD = re.compile(rf"""(?:[^\s,:=\\\#"]|{_ESCAPED})+\Z""", re.X)
_SUDO_ALIAS = re.compile(r"!?(?:[A-Z][A-Z0-9_]*|sudoedit|list)\Z")
_OPTION = re.compile(r"""[A-Za-z0-9@.-]+(?:="(?:\\.|[^"\\])*")?\Z""")
# Settings of sshd and ssh whose values are lists with blanks.
WORDS = frozenset(("acceptenv", "allowgroups", "allowusers", "denygroups", "denyusers", "sendenv"))


def check_sudo_users(users: Sequence[str]) -> None:
    """Check the users of a rule of sudo. Source: sudoers(5).

    :raises Wrong: if an item is not one user, group or alias
    """
    for item in users:
        if not _SUDO_NAME.match(item):
            raise Wrong(
                f"users: {show(item)} is not one user, group or alias",
                r"write one name each, with `\` before special characters; content takes everything else",
            )


def check_sudo_commands(commands: Sequence[str]) -> None:
    """Check the commands of a rule of sudo. Source: sudoers(5).

    :raises Wrong: if an item is not one command
    """
    for item in commands:
        path, *words = item.split(" ")
        named = _SUDO_PATH.match(path) or (path in ("sudoedit", "list"))
        right = bool(named) and all(word in ("", '""') or _SUDO_WORD.match(word) for word in words)
        if not right and not (_SUDO_ALIAS.match(item)):
            raise Wrong(
                f"commands: {show(item)} is not one command",
                r"write an absolute path, ALL or an alias, with `\` before `,`, `:`, `=`, `#` and `\` in its arguments;"
                " content takes everything else",
            )


def check_run_as(text: str) -> None:
    """Check the users as whom commands may run: users and groups, with commas and one colon.

    :raises Wrong: if it is something else
    """
    users, _, groups = text.partition(":")
    for item in [*users.split(","), *(groups.split(",") if groups else ())]:
        if item.strip() and not _SUDO_NAME.match(item.strip()):
            raise Wrong(f"run_as: {show(item)} is not one user or group", "write names such as postgres or ALL:ALL")


def check_restrictions(items: Sequence[str]) -> None:
    """Check the options of a key. Source: sshd(8).

    :raises Wrong: if an item is not one option
    """
    for item in items:
        if not hasattr(item, "reveal") and not _OPTION.match(item):
            raise Wrong(
                f"restrictions: {show(item)} is not one option",
                'write one option each, such as restrict or from="192.0.2.*", with `\\"` for a quote in the value',
            )


def check_domain(text: str) -> None:
    """Check whom a limit concerns. Source: limits.conf(5).

    :raises Wrong: if it is not one word
    """
    if not re.match(r"[^\s#]+\Z", text):
        raise Wrong(f"domain: {show(text)} is not one user or group", "write a user, @group, or * for all users")


def check_answers(question: str, items: Sequence[str]) -> None:
    """Check the items of an answer of debconf, which puts commas between them.

    :raises Wrong: if an item contains a comma
    """
    for item in items:
        if "," in item:
            raise Wrong(f"answers: {question}: {show(item)} contains a comma", "write one choice each")


def check_words(key: str, items: Sequence[object]) -> None:
    """Check the items of a list of sshd's or ssh's settings.

    :raises Wrong: if an item has several words
    """
    if key.lower() not in WORDS:
        return
    for item in items:
        if isinstance(item, str) and re.search(r"[\s#\"']", item):
            raise Wrong(f"settings: {key}: {show(item)} is not one word", "write a list with one word per entry")
