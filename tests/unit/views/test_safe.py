"""Text of hosts and users reaches terminals, logs and documents only as visible characters."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path

from statecfg.problems import Problem, SourceLocation
from statecfg.views import as_json, pictures, safe
from statecfg.views.drawing import fold
from statecfg.views.facts import facts_lines
from statecfg.views.lines import plain
from statecfg.views.plan import plan_lines
from statecfg.views.problems import problem_lines
from statecfg.views.terminal import render
from tests.each import each

REPORTS = Path(__file__).parent / "reports"
BYTES = [bytes([number]).decode("utf-8", "surrogateescape") for number in range(256)]
LATIN = [chr(number) for number in range(256)]
SEQUENCES = [
    "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x\x07", "\x1b]52;c;aGk=\x07", "\x1bP1$r\x1b\\",
    "\x9b31m", "\x9d0;t\x9c", "\r\nfake line", "a\rb", "a\bb", "\x7f", "\x00", "\u202eevil", "\u2066x\u2069", "\u200b",
    "\u200d", "\ufeff",
    "\u2028", "\u2029", "\u061c", "\u00ad", "\ud800", "x", "\udfff", "\U000e0041",
    "\U000e0100", "\u3164", "\u115f", "\u034f", "\u180e",
    "\ufe00", "\ufff9", "\ue000", "\x85", "\x0b", "\x0c",
]  # fmt: skip
HOSTILE = "".join([*LATIN[:0xA1], *BYTES[0x80:0x84], *SEQUENCES])


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def assert_harmless(text: str) -> None:
    for char in text:
        assert char == "\n" or safe.line(char) == char, repr(char)


def poisoned(value, poison: str):
    """Return a report with `poison` in each string that a host may have written."""
    if isinstance(value, dict):
        keep = ("status", "outcome", "mode")
        return {key: item if key in keep else poisoned(item, poison) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, poison) for item in value]
    return value + poison if isinstance(value, str) else value


@each("text", [*BYTES, *LATIN, *SEQUENCES])
def test_safe_line_is_always_one_printable_line(text):
    shown = safe.line(text)
    assert shown.isprintable()
    assert "\n" not in shown
    assert safe.line(shown) == shown


def test_safe_line_keeps_ordinary_text_of_any_language():
    for text in ("grün", "日本語", "Привет", "naïve ☕", "a → b", "⚠️", "C:\\new\\x41"):
        assert safe.line(text) == text


def test_safe_line_escapes_characters_by_code_point():
    assert safe.line("\x1b[0m\u202e\ud800\U000e0041\t") == "\\x1b[0m\\u202e\\ud800\\U000e0041\\t"


def test_safe_block_keeps_lines_and_expands_tabs():
    assert safe.block("a\tb\n\x1b\n") == ["a       b", "\\x1b"]


def test_colours_are_the_only_escapes_on_a_terminal():
    report = poisoned(json.loads((REPORTS / "plan.json").read_text()), HOSTILE)
    shown = render(list(plan_lines(report)), Terminal(), color=True)
    import re

    assert "\x1b[" in shown
    assert_harmless(re.sub(r"\x1b\[[0-9;]*m", "", shown))


def test_facts_problems_and_pictures_escape_hostile_text(tmp_path):
    report = {"mode": "facts", "hosts": {"h" + HOSTILE: {"status": "ok", "layers": [], "facts": {HOSTILE: HOSTILE}}}}
    assert_harmless(plain(facts_lines(report)))
    (tmp_path / "x.yml").write_bytes(HOSTILE.encode("utf-8", "replace").replace(b"\n", b""))
    wrong = Problem("SC0101", HOSTILE, HOSTILE, HOSTILE, (SourceLocation("x.yml", 1, 3), SourceLocation("gone", 1)))
    assert_harmless(plain(problem_lines([wrong] * 25, tmp_path)))
    node = {"provides": "file:" + HOSTILE, "type": "file", "requires": [], "position": HOSTILE}
    drawings = fold([("h" + HOSTILE, [[node]])])
    assert_harmless(plain(pictures.text_lines(drawings)))
    for kind in ("dot", "mermaid", "svg"):
        assert_harmless(pictures.draw(kind, drawings).decode())


def test_json_view_returns_the_report_unchanged():
    report = poisoned(copy.deepcopy(json.loads((REPORTS / "plan.json").read_text())), HOSTILE)
    assert json.loads(as_json.text(report)) == report
