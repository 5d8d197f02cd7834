"""Evaluate host patterns: `web`, `web*`, `~web[0-9]+`, `a,b`, `web:!web3`, `web:&eu`, `all`, `@local`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

from statecfg.problems import Problem, problem, suggest
from statecfg.problems.positions import SourceLocation

LOCAL = "@local"
ALL = "all"


class SelectableNames:
    """The hosts and groups that patterns can select.

    :param hosts: all hosts, in the inventory's order
    :param groups: group → its hosts
    """

    def __init__(self, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> None:
        self.hosts, self.groups = list(hosts), groups


def match(
    pattern: str, names: SelectableNames, what: str, *locations: SourceLocation
) -> tuple[list[str], list[Problem]]:
    """Return the hosts that a pattern selects, in the inventory's order, and the problems of the pattern.

    Terms are joined by `,` or `:`. The selection starts with the hosts of all plain terms, or with all hosts if there
    is no plain term. Then `&x` keeps only hosts in x, and `!x` removes the hosts in x. Each term must match something.

    :param what: the name of the pattern in messages: "hosts" or "--limit"
    :param locations: where the pattern is written
    """
    problems: list[Problem] = []
    chosen: set[str] = set()
    kept: list[set[str]] = []
    dropped: set[str] = set()
    started = False
    for term in _terms(pattern):
        sign, name = (term[0], term[1:].strip()) if term[:1] in ("!", "&") else ("", term)
        hosts = _term(name, pattern, names, what, locations, problems)
        if sign == "!":
            dropped |= hosts
        elif sign == "&":
            kept.append(hosts)
        else:
            started = True
            chosen |= hosts
    if not started:
        chosen = set(names.hosts)
    chosen = chosen.intersection(*kept) - dropped
    if not chosen and not problems and not names.hosts:
        problems.append(_no_match_problem(pattern, pattern, names, what, locations))
    elif not chosen and not problems:
        detail = f"{what} `{pattern}` selects none of {len(names.hosts)} hosts"
        problems.append(problem("SC0406", detail, "check the terms with `&` and `!`, which remove hosts", *locations))
    order = dict.fromkeys([*names.hosts, LOCAL])
    return [host for host in order if host in chosen], problems


def _terms(pattern: str) -> list[str]:
    terms: list[str] = []
    for part in pattern.split(","):
        text = part.strip()
        # A regular expression can contain colons.
        terms.extend([text] if text.lstrip("!& ").startswith("~") else [piece.strip() for piece in text.split(":")])
    return terms


def _term(
    name: str,
    pattern: str,
    names: SelectableNames,
    what: str,
    locations: tuple[SourceLocation, ...],
    problems: list[Problem],
) -> set[str]:
    if not name:
        detail = f"{what} `{pattern}` has an empty term"
        problems.append(problem("SC0407", detail, "write names joined by single commas", *locations))
        return set()
    if name == ALL:
        return set(names.hosts)
    if name == LOCAL:
        return {LOCAL}
    if name.startswith("~"):
        try:
            test: Callable[[str], object] = re.compile(name[1:]).search
        except re.error as error:
            at = "" if error.pos is None else f" at character {error.pos + 1}"
            detail = f"{what} `{pattern}`: the regular expression `{name[1:]}` is invalid{at}: {error.msg}"
            problems.append(problem("SC0407", detail, "fix the regular expression", *locations))
            return set()
    elif any(letter in name for letter in "*?["):
        test = re.compile(fnmatch.translate(name)).match
    else:
        test = name.__eq__
    hosts = {host for host in names.hosts if test(host)}
    for group, members in names.groups.items():
        if test(group):
            hosts.update(members)
    if not hosts and name not in names.groups:
        problems.append(_no_match_problem(name, pattern, names, what, locations))
    return hosts


def _no_match_problem(
    name: str, pattern: str, names: SelectableNames, what: str, locations: tuple[SourceLocation, ...]
) -> Problem:
    """Return the problem of a term, or of a whole pattern, that matches nothing."""
    term = f", term `{name}`," if name != pattern else ""
    if not names.hosts:
        return problem(
            "SC0406",
            f"{what} `{pattern}`{term} matches nothing: the inventory has no hosts",
            "pass an inventory with -i, or use @local for this machine",
            *locations,
        )
    help_text = suggest(name, dict.fromkeys([*names.groups, *names.hosts]), "available")
    return problem(
        "SC0406",
        f"{what} `{pattern}`{term} matches no host and no group",
        help_text,
        *locations,
    )
