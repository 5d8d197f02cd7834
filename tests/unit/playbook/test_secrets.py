"""Secrets: playbooks can use them, and no output contains them in any encoding."""

from __future__ import annotations

import base64
import copy
import html
import json
import logging
import pickle
import shlex
import traceback
from urllib.parse import quote, quote_plus

import pytest

from statecfg.playbook import secrets
from statecfg.problems import InvalidInput, tokens
from statecfg.problems.positions import SourceLocation
from statecfg.remote.machine.redact import Redactor
from tests.each import each

CANARIES = [
    "hunter22",
    "p@ss",
    "with space and more",
    "quote'single",
    'quote"double',
    "back\\slash\\n",
    "per%cent%20",
    "dollar$HOME`id`",
    "amp&<tag>",
    "ümläut-ßecret",
    "emoji😀secret",
    "line one\nline two is longer\nthree",
    "tab\tseparated",
    "a/b+c=d?e#f",
    "12345678",
    "${jinja}{{ x }}",
    "-----BEGIN KEY-----\n" + "QUJD" * 16 + "\n-----END KEY-----\n",
    "x" * 4096,
    "é" * 2000,
    "trailing space ",
]


def spellings(value: str) -> list[str]:
    raw = value.encode()
    found = [value, json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), repr(raw), ascii(value)]
    found += [shlex.quote(value), quote(value), quote(value, safe=""), quote_plus(value), html.escape(value)]
    found += [raw.hex(), raw.hex().upper(), json.dumps(json.dumps({"k": value})), html.escape(value, quote=False)]
    for before in (b"", b"x", b"xy"):
        for after in (b"", b"z", b"zz"):
            found.append(base64.b64encode(before + raw + after).decode())
            found.append(base64.urlsafe_b64encode(before + raw + after).decode())
    found.append(base64.encodebytes(raw).decode())
    found += ["\n".join("+" + line for line in value.splitlines()), value.replace("\n", "\r\n")]
    return found


def hints(value: str) -> list[str]:
    """Return the parts of the value that masked text must not contain in any encoding."""
    raw = value.encode()
    pieces = [line for line in value.splitlines() if len(line) > 7] or [value]
    middle = base64.b64encode(raw)[8:-8].decode()
    return pieces + ([middle] if len(middle) > 8 else []) + [raw.hex()]


@each("value", CANARIES, ids=range(len(CANARIES)))
def test_redactor_masks_every_spelling_of_a_secret(value):
    redactor = Redactor({"name": value})
    for spelling in spellings(value):
        masked = redactor.text(f"before {spelling} after")
        assert "<secret name>" in masked, spelling[:60]
        for hint in hints(value):
            assert hint not in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")


def test_redactor_masks_values_of_json_data():
    redactor = Redactor({"pin": "123456", "word": "hunter22"})
    data = {"a": ["x hunter22", 123456, 9912345699, 1.5, None, True], "hunter22": {"b": "ok"}}
    assert redactor.value(data) == {
        "a": ["x <secret word>", "<secret pin>", "99<secret pin>99", 1.5, None, True],
        "hunter22": {"b": "ok"},
    }
    assert Redactor({}).value(data) is data


def test_redactor_masks_the_longest_secret_first():
    redactor = Redactor({"short": "hunter", "long": "hunter22"})
    assert redactor.text("hunter22 hunter") == "<secret long> <secret short>"


def test_redactor_leaves_other_text_unchanged():
    text = "package nginx 1.22 installed\n"
    assert Redactor({"a": "hunter22", "b": "x" * 100}).text(text) == text


@pytest.fixture
def hidden(monkeypatch) -> secrets.Secret:
    monkeypatch.setenv("CANARY", "canary-value-42")
    return secrets.secret("db", env="CANARY")


def test_secret_is_never_shown_in_text_logs_or_tracebacks(hidden, caplog):
    shown = [
        f"{hidden!r}",
        repr(hidden + "x"),
        f"{hidden}",
        str(hidden),
        f"{hidden} {hidden!r}",
        str([hidden]),
        str({"a": hidden}),
    ]
    logging.getLogger("x").error("value %r %s", hidden, hidden)
    shown += [caplog.text, repr(dir(hidden))]

    def fails(value):
        copied = value
        raise ValueError(copied)

    try:
        fails(hidden)
    except ValueError as error:
        shown += traceback.TracebackException.from_exception(error, capture_locals=True).format()
    assert all("canary" not in text for text in shown)
    assert shown[:2] == [tokens.shown("db"), f"'{tokens.shown('db')}x'"]
    assert caplog.messages == ["value <secret db> <secret db>"]


def test_secret_cannot_be_pickled_dumped_or_copied(hidden):
    for call in (pickle.dumps, json.dumps):
        with pytest.raises(TypeError) as caught:
            call(hidden)
        assert "canary" not in str(caught.value)
    assert copy.deepcopy({"a": hidden})["a"] is hidden
    assert copy.copy(hidden) is hidden
    assert not hasattr(hidden, "__dict__")


def test_recording_contains_every_revealed_secret(hidden, monkeypatch):
    with secrets.recording() as used:
        assert used == {}
        assert hidden.reveal() == "canary-value-42"
        monkeypatch.setenv("CANARY", "another-value")
        secrets.secret("db", env="CANARY").reveal()
        hidden.reveal()
    assert {name: value.reveal() for name, value in used.items()} == {"db": "canary-value-42", "db-2": "another-value"}


def test_secret_can_come_from_a_file(tmp_path):
    path = tmp_path / "token.txt"
    path.write_text("from-a-file\n")
    path.chmod(0o600)
    assert secrets.secret("t", file=path).reveal() == "from-a-file"
    assert secrets.tagged("!secret", {"file": "token.txt"}, SourceLocation(str(tmp_path / "x.yml"), 1)).name == "token"


@each(
    ("given", "code", "words"),
    [
        ({"env": "NOT_SET_ANYWHERE"}, "SC0420", "NOT_SET_ANYWHERE"),
        ({"file": "missing"}, "SC0420", "can't be read"),
        ({"file": "open"}, "SC0420", "everyone"),
        ({"file": ".", "name": "d"}, "SC0420", "Is a directory"),
        ({"file": "latin"}, "SC0420", "offset 3"),
        ({"env": "SHORT"}, "SC0421", "3 characters"),
        ({"env": "A", "file": "b"}, "SC0422", "one source"),
        ({}, "SC0422", "one source"),
        ("text", "SC0422", "one source"),
        ({"evn": "A"}, "SC0422", "evn"),
        ({"env": "HOME", "name": "a b"}, "SC0422", "a b"),
    ],
)
def test_mistakes_in_secrets_are_reported_with_their_place(given, code, words, tmp_path, monkeypatch):
    monkeypatch.setenv("SHORT", "abc")
    (tmp_path / "open").write_text("readable")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "latin").write_bytes(b"caf\xe9 value")
    (tmp_path / "latin").chmod(0o600)
    with pytest.raises(InvalidInput) as caught:
        secrets.tagged("!secret", given, SourceLocation(str(tmp_path / "x.yml"), 3, 5))
    first = caught.value.problems[0]
    assert (first.code, first.locations[0].line) == (code, 3)
    assert words in first.detail
    assert "abc" not in str(first)


def test_problem_of_a_secret_has_the_place_of_its_call():
    with pytest.raises(InvalidInput) as caught:
        secrets.secret("x", env="NOT_SET_ANYWHERE")
    assert caught.value.problems[0].locations[0].file == __file__


def test_command_refuses_a_secret_among_its_arguments() -> None:
    """All users of a host can read the arguments of its processes."""
    from statecfg.resources import command

    with pytest.raises(InvalidInput) as caught:
        command("x", argv=["echo", secrets.Secret("pw", "hunter222")])
    (found,) = caught.value.problems
    assert found.code == "SC0425" and "hunter222" not in str(found)
    assert found.detail == "`argv` of command:x contains a secret, which every user of the host can read"


def test_command_refuses_a_secret_in_its_script() -> None:
    """The script is an argument of the shell."""
    from statecfg.resources import command

    with pytest.raises(InvalidInput) as caught:
        command("x", shell=secrets.Secret("pw", "hunter222"))
    (found,) = caught.value.problems
    assert found.code == "SC0425" and "hunter222" not in str(found) and "put it into `env`" in found.help
    assert found.detail == "`shell` of command:x contains a secret, which every user of the host can read"


def test_bytes_that_look_like_the_end_of_a_shown_secret_are_content(hidden) -> None:
    """Only after a mask does the invisible character say that `repr` of a secret is in the bytes."""
    from statecfg.resources import file

    mark = tokens.SHOWN.encode()
    assert file("/srv/data", content=b"\xff" + mark + b">" + mark).node.attrs["content"]
    with pytest.raises(InvalidInput, match="SC0423"):
        file("/srv/shown", content=repr(hidden).encode())
