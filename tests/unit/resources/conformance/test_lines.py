"""Texts that become lines of files: no value ends its line, and none swallows the next one.

Each text of a node, at any depth and also as the name of a key, gets what ends or continues lines. Then either the
playbook or the plan refuses it, or the host writes as many lines as without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph import host_text
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Blob
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, actions, examples, prepared, type_of
from tests.unit.resources.test_cases import Case

MARK = "zQ9"
ENDS = {"a line break": f"\n{MARK}", "CR": f"\r{MARK}", "NUL": f"\0{MARK}", "a last backslash": f"{MARK}\\"}
# Attributes with a whole text of the user, which may have several lines.
TEXTS = {
    "ansible_module": ("arguments",),  # they reach the module as JSON
    "block_in_file": ("block",),
    "ca_certificate": ("content",),
    "file": ("content",),
    "json_key": ("value",),  # JSON escapes line breaks
    "logrotate": ("scripts",),
    "nftables": ("content",),
    "quadlet": ("content",),
    "replace": ("replacement",),
    "sudoers": ("content",),
    "systemd_unit": ("content",),
    "toml_key": ("value",),
    "yaml_key": ("value",),
}
# Arguments of actions that are no lines: programs and their arguments, and names in the kernel.
WHOLE = ("argv", "backup", "body", "command", "target", "validate")
# Attributes whose lines continue in the next one after a backslash.
CONTINUED = {
    "ini_key": "value",
    "kernel_module": "parameters",
    "pam": "arguments",
    "quadlet": "sections",
    "systemd_unit": "sections",
}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each text in a value; the place of a key ends in None."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, item in value.items():
            if place:
                yield (*place, key, None)
            yield from places(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*place, number))


def distinct(name: str) -> Iterator[tuple[Case, tuple[Any, ...]]]:
    """Yield the cases of a type with the places of their texts, each kind of place once; items of a list are alike."""
    seen = set()
    for case in examples(name):
        for place in places(case.data["node"]):
            kind = tuple("#" if isinstance(part, int) else part for part in place)
            if kind not in seen:
                seen.add(kind)
                yield case, place


def extended(value: Any, place: tuple[Any, ...], end: str) -> Any:
    """Return a value in which the text at a place has another end, which may be a fact."""
    if not place:
        return str(value) + end  # a fact keeps its mark
    first, *rest = place
    if rest == [None]:
        return {key + end if key == first else key: item for key, item in value.items()}
    copy = value.copy()
    copy[first] = extended(value[first], tuple(rest), end)
    return copy


def lines(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in the arguments of an action that are lines or whole contents of files."""
    if isinstance(value, Blob):
        value = value.read().decode("utf-8", "replace") if value.data is not None else ""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in WHOLE:
                yield from lines(item, key)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from lines(item, name)


def written(case: Case, node: Mapping[str, Any], directory: Path) -> list[str] | None:
    """Return the lines that a node writes; None if the playbook or the plan refuses it."""
    try:
        example = prepared(replace(case, data={**case.data, "node": node}), directory)
        plan = example.plan()
    except InvalidInput:
        return None
    if example.step(plan).outcome == "failed":
        return None
    return [text for action in actions(plan) for text in lines(action.args)]


def breaks(texts: list[str]) -> dict[str, int]:
    """Count what ends lines."""
    return {end: sum(text.count(end) for text in texts) for end in "\n\r\0"}


def check(case: Case, place: tuple[Any, ...], directories: Iterator[Path], given: Callable[[str], str]) -> None:
    """Compare what a node writes with and without ends of lines in one of its texts.

    :param given: returns the end as a playbook gets it
    """
    node = case.data["node"]
    usual = written(case, extended(node, place, MARK), next(directories))
    usual = usual if usual is not None else written(case, node, next(directories))
    assert usual is not None
    for what, end in ENDS.items():
        found = written(case, extended(node, place, given(end)), next(directories))
        where = f"{case.place}: {what} in {place}: {found}"
        assert found is None or breaks(found) == breaks(usual), where
        if found is not None and what == "a last backslash" and place[0] == CONTINUED.get(type_of(case)):
            assert not any(line.endswith(f"{MARK}\\") for text in found for line in text.split("\n")), where


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("source", ["a variable", "a fact of another host"])
def test_no_text_ends_or_continues_a_line(
    source: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Callable[[str], str] = host_text.told if source == "a fact of another host" else str
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    directories = (tmp_path / str(number) for number in itertools.count())
    for case, place in distinct(name):
        if place[0] not in TEXTS.get(name, ()):
            with host_text.watching(host_text.Watch()):
                check(case, place, directories, given)


CODE = "$(touch x); rm -rf / #'\","  # a substitution, ends of commands, a comment, quotes and a comma


@pytest.mark.parametrize("name", TYPES)
def test_no_fact_becomes_a_part_of_a_shell_script(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a shell would run in the actions of a node contains no fact that is not quoted."""
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    directories = (tmp_path / str(number) for number in itertools.count())
    for case, place in distinct(name):
        with host_text.watching(host_text.Watch()):
            node = extended(case.data["node"], place, host_text.told(CODE))
            try:
                plan = prepared(replace(case, data={**case.data, "node": node}), next(directories)).plan()
            except InvalidInput:
                continue
        scripts = [text for action in actions(plan) for text in in_shells(action.args)]
        assert not any(CODE in text for text in scripts), f"{case.place}: {place}: {scripts}"


def in_shells(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in the arguments of an action that a shell runs: code after `-c`, and contents of scripts."""
    for value in args.values():
        if isinstance(value, (list, tuple)) and "-c" in value:
            yield str(value[list(value).index("-c") + 1])
        elif isinstance(value, Blob) and (value.data or b"").startswith((b"#!", b"[Service]")):
            yield value.read().decode("utf-8", "replace")
