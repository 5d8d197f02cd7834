"""Hostile text in all places of a report: no view outputs it as markup or as an escape sequence."""

from __future__ import annotations

import copy
import html
import io
import json
import random
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from statecfg.views import markdown, saved, saved_markdown
from statecfg.views.facts import facts_lines
from statecfg.views.history import history_lines
from statecfg.views.lines import plain
from statecfg.views.outcome import outcome_lines
from statecfg.views.plan import Detail, plan_lines
from statecfg.views.progress import event_text
from statecfg.views.terminal import render
from statecfg.views.verify import verify_lines
from tests import ROOT

REPORTS = ROOT / "tests/unit/views/reports"
MARK = "HOSTILE"  # part of each text that a host or a user may have written
WORDS = frozenset({"status", "outcome", "state", "mode", "where", "run", "severity"})  # keys with words of statecfg
PIECES = (
    "`", "``", "```", "````````", "~~~", "~~~~", "@octocat", "#123", "GH-1", "owner/repo#1", "https://evil.example",
    "www.evil.example", "a@evil.example", "<https://evil.example>", "[x](https://evil.example)", "[x][y]", "[y]: /z",
    "![x](https://evil.example/i.png)", "<img src=x onerror=alert(1)>", "<script>", "</script>", "</summary>",
    "</details>", "</code>", "</pre>", "<!--", "-->", "<a href=x>", "|", "\\|", "| - |", "**", "_", "\\", "\\`",
    "&lt;", "&#64;octocat", "\n", "\n\n", "\r", "\t", "    ", " ", "- ", "> ", "# ", "1. ", "---", "===", "\x1b[2J",
    "\x1b]8;;http://evil.example\x07", "\x9b31m", "\u202e", "\u200b", "\ufeff", "$x$", ":tada:", "<", ">", '"', "'",
    "{{ x }}", "\u2028", "😀",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
ANYTHING = st.text(st.characters(codec="utf-8"), max_size=12) | TEXTS
UNIT = {
    "unit": "db/0", "service": "db", "state": "error", "error": "x", "due": [{"hook": "install"}],
    "hooks": [{"hook": "start", "status": "failed", "error": "x", "remote": "web/0"}],
}  # fmt: skip
FIRED = {"hook": "h", "event": "post-create", "name": "n", "where": "host", "status": "failed", "error": "x"}
OWED = {"node": "n", "cause": "c", "since": 1.0, "run": "r"}
OF_HOST = {  # field → its value in every host
    "fired": [FIRED],
    "hooks": [{"hook": "h", "event": "e", "name": "n", "where": "host"}],
    "units": [UNIT],
    "owed": [OWED],
    "warnings": ["w"],
    "holder": {"who": "w"},
    "differs": ["d"],
    "halted": "h",
    "login": {"ok": False, "error": "e"},
    "host_hooks": [{"hook": "h", "event": "node-booted", "error": "e"}],
}
LEFT_HOSTS = [
    {
        "host": "h",
        "address": True,
        "units": ["db/0"],
        "resources": ["file:/a"],
        "command": "statecfg destroy --hosts h",
    },
    {"host": "i", "address": False, "units": [], "resources": ["file:/a"], "command": ""},
]


def full(name: str) -> dict[str, Any]:
    """Return a report that contains all fields of a host."""
    report: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text())
    for host in report["hosts"].values():
        host.update(OF_HOST)
        host.setdefault("error", {"summary": "s", "detail": "d", "hint": "h"})
    return {**report, "left_hosts": LEFT_HOSTS}


def saved_plan(report: dict[str, Any]) -> dict[str, Any]:
    """Return a saved plan with this report and every field of its origin."""
    made = {"at": "2026-11-23T00:00:00Z", "by": "ann@pc", "commit": "abc", "modified": ["site.yml"]}
    choices = {"inventory": "i.yml", "limit": "web", "tags": ["t"], "extra_vars": ["a=1"], "prune": True}
    choices |= {"user": "u", "become": True, "become_user": "b", "ssh_config": "c"}
    return {
        "run": "r",
        "made": made,
        "project": "p",
        "playbook": "site.yml",
        "directory": ".",
        "store": "s",
        "choices": choices,
        "inputs": [{"kind": "playbook", "path": "site.yml", "sha256": "ab"}],
        "secrets": {"TOKEN": {"salt": "s", "scrypt": "s"}},
        "hosts": {name: {"report": host} for name, host in report["hosts"].items()},
        "sha256": "ab",
    }


FULL = {name: full(name) for name in ("plan", "lifecycle", "applied-lifecycle", "apply-failed", "verify")}


def poisoned(value: Any, text: Callable[[], str], key: str = "") -> Any:
    """Return a copy of a report with hostile texts, host names and argument names."""
    if isinstance(value, dict):
        named = key in ("hosts", "args", "facts", "holder", "secrets")
        return {
            (f"{inner if inner == 'argv' else MARK + text()}" if named else inner): poisoned(item, text, inner)
            for inner, item in value.items()
        }
    if isinstance(value, list):
        return [poisoned(item, text, key) for item in value]
    if isinstance(value, str) and key not in WORDS and value:
        return f"{text()}{MARK}{text()}"
    return value


class Tags(HTMLParser):
    """Collects the tags and the text outside of code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, Any]] = []
        self.open: list[str] = []
        self.outside = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, attrs))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "code" not in self.open:
            self.outside += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


OURS = {"h3", "p", "ul", "li", "strong", "code", "pre", "blockquote", "details", "summary", "b"}


def check_markdown(text: str) -> None:
    """Check with a CommonMark parser that hostile text is only inside code and adds no markup."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tags = Tags()
    tags.feed(parser.render(text))
    tags.close()
    assert tags.open == []
    assert {tag for tag, _ in tags.tags} <= OURS
    # The only attribute in our Markdown is the language of code.
    assert all(attrs in ([], [("class", "language-diff")]) for _, attrs in tags.tags)
    assert MARK not in tags.outside, tags.outside[max(0, tags.outside.find(MARK) - 100) :][:300]
    for sign in ("@", "://", "www.", "GH-", "<", "![", "]("):
        assert sign not in html.unescape(tags.outside)


@pytest.mark.parametrize("name", FULL)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_markdown_shows_hostile_text_as_code_only(name: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(ANYTHING, min_size=3, max_size=8))
    choose = random.Random(data.draw(st.integers(0, 1000)))
    text = markdown.text(poisoned(copy.deepcopy(FULL[name]), lambda: choose.choice(texts)), 10**7)
    assert MARK in text
    check_markdown(text)


@pytest.mark.parametrize("piece", PIECES)
def test_markdown_shows_each_hostile_piece_as_code(piece: str) -> None:
    for report in FULL.values():
        check_markdown(markdown.text(poisoned(copy.deepcopy(report), lambda: piece), 10**7))


@pytest.mark.parametrize("piece", PIECES)
def test_markdown_of_a_saved_plan_shows_each_hostile_piece_as_code(piece: str) -> None:
    for report in FULL.values():
        plan = poisoned(saved_plan(copy.deepcopy(report)), lambda: piece)
        for limit in (10**7, 3000):
            text = saved_markdown.text(plan, "0.4.0", limit)
            check_markdown(text)
            assert MARK in text.split("- Made: ")[1]


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(ANYTHING, min_size=3, max_size=8), seed=st.integers(0, 1000))
def test_markdown_of_a_saved_plan_shows_hostile_text_as_code_only(texts: list[str], seed: int) -> None:
    choose = random.Random(seed)
    plan = poisoned(saved_plan(copy.deepcopy(FULL["plan"])), lambda: choose.choice(texts))
    check_markdown(saved_markdown.text(plan, "0.4.0", 10**7))


IN_MARKDOWN = ("fired", "hooks", "units", "owed", "warnings", "login", "host_hooks", "left_hosts")


@pytest.mark.parametrize("field", IN_MARKDOWN)
def test_views_show_the_hostile_text_of_each_field(field: str) -> None:
    """Only one field is hostile: the other tests pass also if a view does not show it."""
    report = copy.deepcopy(FULL["applied-lifecycle"])
    if field == "left_hosts":
        report[field] = poisoned(LEFT_HOSTS, lambda: "<b>")
    for host in report["hosts"].values():
        if field in OF_HOST:
            host[field] = poisoned(OF_HOST[field], lambda: "<b>", field)
    text = markdown.text(report, 10**7)
    check_markdown(text)
    assert MARK in text
    assert MARK in plain(iter([*outcome_lines(report), *plan_lines(report, Detail(True, True))]))


@settings(max_examples=300, deadline=None)
@given(text=ANYTHING)
def test_any_text_stays_inside_one_code_span(text: str) -> None:
    tokens = MarkdownIt("commonmark").parseInline(f"before {markdown.code(text)} after")
    kinds = [token.type for token in tokens[0].children or []]
    assert kinds == ["text", "code_inline", "text"]


@settings(max_examples=300, deadline=None)
@given(text=ANYTHING)
def test_any_text_stays_inside_its_fence(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{markdown.fenced(text, 'diff')}\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def no_controls(text: str) -> None:
    wrong = {char for char in text if char != "\n" and (category(char)[0] == "C" or category(char) in ("Zl", "Zp"))}
    assert not wrong, sorted(map(ascii, wrong))


VIEWS: dict[str, Callable[[Any], Iterator[Any]]] = {
    "plan": lambda report: plan_lines(report, Detail(True, True)),
    "outcome": lambda report: outcome_lines(report, Detail(True, True)),
    "verify": lambda report: verify_lines(report, Detail(True, True)),
    "saved": lambda report: saved.lines(saved_plan(report), "0.4.0", Detail(True, True)),
}


@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=20, deadline=None)
@given(texts=st.lists(ANYTHING, min_size=3, max_size=8), name=st.sampled_from(sorted(FULL)))
def test_terminals_get_no_control_characters(view: str, texts: list[str], name: str) -> None:
    choose = random.Random(len(texts))
    report = poisoned(copy.deepcopy(FULL[name]), lambda: choose.choice(texts))
    lines = list(VIEWS[view](report))
    assert MARK in plain(iter(lines))
    no_controls(plain(iter(lines)))
    no_controls(render(iter(lines), io.StringIO(), color=False))


@settings(max_examples=50, deadline=None)
@given(text=ANYTHING)
def test_facts_history_and_progress_show_no_control_characters(text: str) -> None:
    hosts = {"h": {"status": "ok", "layers": [], "summary": {}, "facts": {text: {text: text}, "os": {text: text}}}}
    no_controls(plain(facts_lines({"mode": "facts", "hosts": hosts})))
    past = json.loads((REPORTS / "history.json").read_text())
    for run in ("", "r"):
        no_controls(plain(history_lines(poisoned(past, lambda: text), run)))
    for kind in ("warning", "node-finished", "action-finished", "fired", "unit-hook", "unit-log", "output", "finished"):
        data = dict.fromkeys(("text", "name", "node", "op", "reason", "hook", "event", "error", "unit"), text)
        event = type("Event", (), {"host": text, "name": kind, "data": {**data, "status": "error", "level": 40}})
        from statecfg.views import safe

        for line in event_text(event, 2):
            no_controls(safe.line(line))
