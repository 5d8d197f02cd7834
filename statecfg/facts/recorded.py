"""Files of recorded facts, for `--facts FILE`: JSON with the facts of hosts and the time when they were collected."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecfg.facts import catalogue
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem
from statecfg.problems.frozen import dataclass
from statecfg.remote.wire.strict_json import loads

FORMAT = 1
RECORD = "record them: statecfg facts HOST --record FILE"


@dataclass(frozen=True)
class StoredFacts:
    """The facts of one host that were collected earlier.

    :param values: name of a fact → value
    :param at: name of a fact → when it was collected, in seconds since 1970
    """

    values: Mapping[str, Any]
    at: Mapping[str, float]


def text(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the content of a file with these facts.

    :param hosts: host → name of a fact → value
    """
    data = {"format": FORMAT, "at": round(time.time(), 3), "hosts": hosts}
    content = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:  # a fact has half of a pair of surrogates
        content = json.dumps(data, indent=2, sort_keys=True) + "\n"
    return content


def read(path: Path) -> dict[str, StoredFacts]:
    """Return host → its facts in a file.

    :raises InvalidInput: the file can't be read, or it contains wrong facts
    """
    location = SourceLocation(str(path), 1)
    try:
        data = loads(path.read_text(encoding="utf-8"), unique=True)
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        if isinstance(error, RecursionError):
            why = "it is nested too deeply"
        raise InvalidInput([problem("SC0522", f"{path} can't be read: {why}", RECORD, location)]) from None
    hosts = data.get("hosts") if isinstance(data, dict) and data.get("format") == FORMAT else None
    at = data.get("at", 0.0) if isinstance(data, dict) else 0.0
    maps = isinstance(hosts, dict) and all(isinstance(values, dict) for values in hosts.values())
    if hosts is None or not maps or not isinstance(at, int | float):
        raise InvalidInput([problem("SC0522", f"{path} is not a file of recorded facts", RECORD, location)])
    problems: list[Problem] = []
    for host, values in hosts.items():
        for name, value in values.items():
            known = name in catalogue.NAMES or name.startswith(f"{catalogue.OWN}.")
            wrong = catalogue.wrong_fact(name, value) if known else f"unknown fact `{name}`"
            if wrong:
                problems.append(problem("SC0522", f"{host}: {wrong}", RECORD, location))
    if problems:
        raise InvalidInput(problems)
    return {host: StoredFacts(values, dict.fromkeys(values, float(at))) for host, values in hosts.items()}


def age(seconds: float) -> str:
    """Return a duration in words, in its largest unit."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a minute"
