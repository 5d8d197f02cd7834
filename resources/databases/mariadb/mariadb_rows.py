"""Rows of privileges in MariaDB: which of them concern an object, and which one the server uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from statecfg.remote.graph.model import CheckError

OPTION = "GRANT OPTION"


class Row:
    """A row of privileges.

    :param user: the user to whom it applies; "" for all
    :param host: a pattern of hosts
    :param pattern: the database, where `_` and `%` match any characters, or the table
    :ivar words: the privileges
    :ivar own: whether it belongs to the user of the node
    """

    def __init__(self, user: str, host: str, pattern: str, own: bool) -> None:
        self.user, self.host, self.pattern, self.own = user, host, pattern, own
        self.words: set[str] = set()

    def __str__(self) -> str:
        return f"the privileges of {self.user or 'anonymous users'}@{self.host} on {self.pattern}"


def read(answer: str, user: str, host: str) -> list[Row]:
    """Return the rows that concern an account.

    :param answer: lines with JSON: account, object, privilege, whether the user may pass it on
    """
    found: dict[tuple[str, str], Row] = {}
    for line in answer.splitlines():
        account, each, word, grantable = json.loads(line)
        whose, _, at = account[1:-1].rpartition("'@'")
        if whose not in (user, "") or (at != host and ("%" in host or not matches(at, host, fold=True))):
            continue
        if (account, each) not in found:
            found[account, each] = Row(whose, at, each, (whose, at) == (user, host))
        words = {word, OPTION} if grantable == "YES" else {word}
        found[account, each].words |= words - {"USAGE"}
    return list(found.values())


def matches(pattern: str, text: str, fold: bool = False) -> bool:
    """Return whether a pattern of MariaDB matches a name.

    :param fold: without regard to case
    """
    parts = re.findall(r"\\.|.", pattern, re.S)
    words = {"%": ".*", "_": "."}
    expression = "".join(words.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, text, re.S | (re.I if fold else 0)) is not None


def _specific(pattern: str) -> int:
    """Return the place of the first wildcard of a pattern. The server sorts rows by this."""
    found = re.match(r"(?:\\.|[^%_\\])*", pattern, re.S)
    end = found.end() if found is not None else 0
    return end if end < len(pattern) else 1 << 16


def of_database(rows: Iterable[Row], database: str) -> list[Row]:
    """Return the rows that concern a database, the one that the server uses first."""
    some = [row for row in rows if matches(row.pattern, database)]
    return sorted(some, key=lambda row: (-_specific(row.host), -_specific(row.pattern), not row.user))


def of_table(rows: Iterable[Row], table: str) -> list[Row]:
    """Return the rows that concern a table, the one that the server uses first."""
    some = [row for row in rows if row.pattern == table and row.user]
    return sorted(some, key=lambda row: -_specific(row.host))


def own(rows: Iterable[Row], name: str) -> list[str] | None:
    """Return the privileges in the user's own row for exactly this name; None if there is no such row."""
    return next((sorted(row.words) for row in rows if row.own and row.pattern == name), None)


def without(
    rows: Sequence[Row], names: Sequence[str], unwanted: set[str], what: str, revoke: dict[str, list[str]]
) -> list[str]:
    """Find what to do so that the server uses a row without some privileges.

    :param rows: the rows, the one that the server uses first
    :param names: the spellings of the object; another pattern of the user also concerns other databases
    :param what: the account and the object, for messages
    :param revoke: receives the privileges to revoke: object → privileges
    :returns: the privileges to grant in a row of the user
    :raises CheckError: if there is no such way, or the user would get more privileges
    """
    for number, row in enumerate(rows):
        surplus = row.words & unwanted
        if number and row.words - unwanted:
            raise CheckError(f"without its last privilege, the row of {what} would end, and {row} would apply")
        if not surplus:
            return []
        if not row.own or row.pattern not in names:
            if number or surplus == row.words:
                raise CheckError(f"{row} apply to {what}: statecfg can't remove them there; revoke them")
            return sorted(row.words - unwanted)
        revoke[row.pattern] = sorted(surplus)
        if row.words - surplus:
            return []
    return []


def surplus(now: Iterable[str], mine: Iterable[str], used: Iterable[str], absent: bool) -> list[str]:
    """Return the privileges to revoke from a row that a node has made, so that the server uses the former row again.

    :param now: the privileges in the row
    :param mine: the privileges of the node
    :param used: those in the row that the server used before
    :param absent: whether the node removes privileges
    """
    added = set(used) if absent else {*mine, *used}
    if set(now) - added:  # others have granted more: without the copies, the user would lose access
        return [] if absent else sorted(set(now) & set(mine) - set(used))
    return sorted(now)
