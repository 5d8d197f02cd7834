"""If a secret's value is a word of the protocol or of a report, only values are masked."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote import session
from statecfg.remote.graph import events, names
from statecfg.remote.hooks import calling, lifecycle
from statecfg.remote.machine.redact import SHORTEST, Redactor
from statecfg.remote.run import execution
from statecfg.remote.units import units
from statecfg.run import report_model
from statecfg.run.host import frames
from tests.host.command import statecfg
from tests.host.remote.ledger.test_ledger import SECOND, first


def protocol_words() -> Iterator[str]:
    """Yield every outcome, status, state, mode and event, every type and key of a frame, and every key of a report."""
    for module in (names, events):
        for kind in filter(inspect.isclass, vars(module).values()):
            yield from (word for name, word in vars(kind).items() if name.isupper() and isinstance(word, str))
    yield from frames.FRAME_CLASSES
    for module in (frames, report_model):
        for kind in filter(inspect.isclass, vars(module).values()):
            if kind.__module__ == module.__name__:
                yield from inspect.get_annotations(kind)


# The protocol's words, and words of definitions and of messages. Shorter values are not masked.
WORDS = sorted(
    {
        *(word for word in protocol_words() if len(word) >= SHORTEST),
        "content", "owner", "group", "path", "absent", "present", "removed", "ended", "writing", "site.yml", "local",
        "root", "0600", "true", "null", "secret", "blob", "begin", "expect",
    }
)  # fmt: skip
LOADED = (calling, execution, lifecycle, session, units)  # the modules whose messages the tests below look at
PLAYBOOK = """\
hosts: "@local"
resources:
  - file: {place}/file-changed-unit
    content: "first value: {{{{ word }}}}\\n"
    mode: "0600"
  - command: changed
    argv: [{python}, -c, "import os, sys; print(os.environ['V']); sys.exit(3)"]
    env: {{V: "{{{{ word }}}}"}}
    requires: [file:{place}/file-changed-unit]
"""
SECRET = "!secret {env: STATECFG_TEST_WORD, name: word}"


def report(place: Path, *words: str, value: str, code: int) -> Any:
    """Run a command with --json, and return its report."""
    state = {"STATECFG_STORE": str(place / "store.db"), "STATECFG_STATE_DIR": str(place / "state")}
    ran = statecfg(*words, "--json", cwd=place, code=code, STATECFG_TEST_WORD=value, **state)
    return json.loads(ran.out)


def shape(value: Any) -> Any:
    """Return a report without the parts that differ between runs, and without the size of content."""
    if isinstance(value, dict):
        own = ("run", "duration", "seconds", "fingerprints", "ledger", "facts", "round_trips", "peer", "started")
        return {key: shape(item) for key, item in value.items() if key not in own}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return re.sub(r"\(\d+ bytes\)", "(… bytes)", value) if isinstance(value, str) else value


def test_masking_a_word_keeps_the_structure_of_reports() -> None:
    """A report that is masked for any of the words keeps its keys, outcomes, names and messages."""
    frame = {
        "type": "layer",
        "status": "failed",
        "nodes": [
            {
                "name": "file:/etc/file-changed-unit",
                "type": "file",
                "outcome": "changed",
                "position": "site.yml:3",
                "changes": [
                    {"object": "/etc/file", "field": "content", "before": None, "after": "sha256:ab (6 bytes)"}
                ],
                "actions": [{"op": "write", "args": {"path": "/etc/x"}, "status": "ok"}],
                "drift": ["content", "definition"],
                "triggered_by": ["file:/etc/unit"],
                "reason": "a check of a node it requires failed: file:/etc/unit",
                "state": "RESOLVED",
            }
        ],
        "error": "the session ended early: the controller closed the connection",
        "warnings": ["run 12 by ann was cut off; unfinished: file:/etc/x"],
        "summary": {"changed": 1, "failed": 2},
        "fingerprints": {"file:/etc/file-changed-unit": "ab"},
    }
    for word in WORDS:
        found = Redactor({"word": word}).report(frame)
        kept = json.dumps(
            {**found, "nodes": [{**found["nodes"][0], "changes": 0, "reason": 0}], "error": 0, "warnings": 0}
        )
        assert "<secret" not in kept, word
        assert "<secret" not in found["error"], (word, found["error"])
        assert [list(each) for each in found["nodes"][0]["changes"]] == [["object", "field", "before", "after"]]


@pytest.mark.parametrize("words", [WORDS[at::8] for at in range(8)], ids=range(8))
def test_secret_values_are_masked_in_free_text(words: list[str]) -> None:
    for word in words:
        redactor = Redactor({"word": word})
        found = redactor.report({"type": "action", "reason": f"a {word} b", "log": f"x {word}", "args": {"line": word}})
        assert found == {
            "type": "action",
            "reason": "a <secret word> b",
            "log": "x <secret word>",
            "args": {"line": "<secret word>"},
        }, word


def test_runs_report_the_same_for_every_secret_value(tmp_path: Path) -> None:
    """Plan and apply report the same whatever the secret's value is."""
    known: dict[str, Any] = {}
    for number, word in enumerate(
        ["zq8-innocent", "changed", "unit", "type", "file", "hook", "content", "planned", "login", "RESOLVED", "layers"]
    ):
        place = tmp_path / str(number)
        place.mkdir()
        target = tmp_path / "target"
        text = PLAYBOOK.format(place=target, python=shlex.quote(sys.executable))
        (place / "site.yml").write_text(text.replace("resources:", f"vars: {{word: {SECRET}}}\nresources:"))
        (place / "statecfg.toml").write_text('name = "words"\n')
        target.mkdir(exist_ok=True)
        for verb, code in (("plan", 0), ("apply", 1)):
            more = ["--yes"] if verb == "apply" else []
            found = shape(report(place, verb, "site.yml", *more, value=word, code=code))
            assert found == known.setdefault(verb, found), word
        for each in target.iterdir():
            each.unlink()


# The rows that 0.3.0 wrote for `UPGRADED` if the secret's value was `path`: it masked identities and names as well.
MASKED = """
INSERT INTO resource VALUES ('words/site.yml', 'file:{place}/conf', 'file', 'statecfg.resources.file',
    '["<secret word>:{place}/conf"]', 'd', 'RESOLVED', '{{"path": "{place}/conf", "was": null, "written": true}}', '',
    '{{"absent": false, "content": "holds a secret (5 bytes)", "follow": false, "<secret word>": "{place}/conf"}}',
    '[]', '[]', 0, 'site.yml:4:5', '[]', 'old', 'old', 5.0);
INSERT INTO resource VALUES ('words/site.yml', 'line_in_file:{place}/lines', 'line_in_file',
    'statecfg.resources.line_in_file', '["line:{place}/lines: ^<secret word>="]', 'd', 'RESOLVED',
    '{{"path": "{place}/lines", "exists": true, "empty": true, "last": null, "lines": []}}', '',
    '{{"line": "<secret word>=<secret word>", "match": "^<secret word>=", "<secret word>": "{place}/lines"}}',
    '[]', '[]', 0, 'site.yml:7:5', '[]', 'old', 'old', 5.0);
"""
UPGRADED = """\
hosts: "@local"
vars: {{word: !secret {{env: STATECFG_TEST_WORD, name: word}}}}
resources:
  - file: {place}/conf
    content: "{{{{ word }}}}\\n"
    mode: "0600"
  - line_in_file: {place}/lines
    match: "^path="
    line: "path={{{{ word }}}}"
    mode: "0640"
"""


def test_resources_overmasked_by_0_3_0_are_not_pruned(tmp_path: Path) -> None:
    """Otherwise, `apply --prune` would remove what it has just changed."""
    place = tmp_path / "target"
    place.mkdir()
    (place / "conf").write_text("path\n")
    (place / "lines").write_text("path=path\n")
    (tmp_path / "state").mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(first(str(tmp_path / "state")))) as database:
        database.executescript(f"{SECOND}DELETE FROM resource;{MASKED.format(place=place)}")
    (tmp_path / "site.yml").write_text(UPGRADED.format(place=place))
    (tmp_path / "statecfg.toml").write_text('name = "words"\n')
    for words, outcomes in (("plan", ["changed"] * 2), ("apply --prune --yes", ["changed"] * 2), ("plan", [])):
        verb, *more = words.split()
        found = report(tmp_path, verb, "site.yml", *more, value="path", code=0)["hosts"]["@local"]
        assert (found["removals"], found["left"]) == ([], []), words
        nodes = [node for layer in found["layers"] for node in layer]
        assert [node["outcome"] for node in nodes if node["outcome"] != "unchanged"] == outcomes
    assert (place / "conf").read_text() == "path\n"
    report(tmp_path, "destroy", "site.yml", "--yes", value="path", code=0)
    assert not (place / "conf").exists() and (place / "lines").read_text() == ""
