"""statecfg reads known_hosts files like OpenSSH. A bad line does not affect the others."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from statecfg.transport import known_hosts
from statecfg.transport.known_hosts import HostKey, Verdict, append, load, parse
from tests.each import each


def key(word: str = "one", kind: str = "ssh-ed25519") -> HostKey:
    name = kind.encode()
    return HostKey(kind, len(name).to_bytes(4, "big") + name + b"\x00\x00\x00\x04" + word.encode())


def line(names: str, of: HostKey, marker: str = "") -> str:
    return f"{marker} {names} {of.key_type} {base64.b64encode(of.blob).decode()} a comment".strip() + "\n"


ONE, TWO, RSA = key("one"), key("two"), key("one", "ssh-rsa")


@each(
    ("names", "host", "port", "known"),
    [
        ("web", "web", 22, True),
        ("web", "WEB", 22, True),
        ("WEB", "web", 22, True),
        ("web", "web", 2222, False),
        ("[web]:2222", "web", 2222, True),
        ("[web]:2222", "web", 22, False),
        ("db,web", "web", 22, True),
        ("*.example.org", "a.example.org", 22, True),
        ("*.example.org", "example.org", 22, False),
        ("web?", "web1", 22, True),
        ("web?", "web12", 22, False),
        ("*,!bad", "good", 22, True),
        ("*,!bad", "bad", 22, False),
        ("!bad", "good", 22, False),
        ("!b*,*", "bx", 22, False),
        ("[*]:2222", "web", 2222, True),
        ("[*.example.org]:*", "a.example.org", 99, True),
        ("web[12]", "web1", 22, False),
        ("10.0.0.*", "10.0.0.7", 22, True),
        ("::1", "::1", 22, True),
        ("[::1]:2222", "::1", 2222, True),
    ],
)
def test_name_patterns_match_hosts_and_ports(names: str, host: str, port: int, known: bool) -> None:
    wanted = Verdict.TRUSTED if known else Verdict.UNKNOWN
    assert parse(line(names, ONE)).check(host, port, ONE).verdict is wanted


@each(
    ("text", "verdict", "lines"),
    [
        (line("a", ONE), Verdict.TRUSTED, [1]),
        (line("a", TWO), Verdict.CHANGED, [1]),
        (line("a", TWO) + line("a", ONE), Verdict.TRUSTED, [2]),
        (line("a", RSA), Verdict.CHANGED, [1]),
        (line("a", RSA) + line("a", TWO), Verdict.CHANGED, [2]),
        (line("b", ONE), Verdict.UNKNOWN, []),
        ("", Verdict.UNKNOWN, []),
        (line("a", ONE) + line("a", ONE, "@revoked"), Verdict.REVOKED, [2]),
        (line("a", ONE) + line("*", ONE, "@revoked"), Verdict.REVOKED, [2]),
        (line("a", ONE) + line("a", TWO, "@revoked"), Verdict.TRUSTED, [1]),
        (line("a", ONE) + line("b", ONE, "@revoked"), Verdict.TRUSTED, [1]),
        (line("*", ONE, "@cert-authority"), Verdict.AUTHORITY, [1]),
        (line("*", TWO, "@cert-authority") + line("a", ONE), Verdict.TRUSTED, [2]),
        (line("*", TWO, "@cert-authority") + line("a", TWO), Verdict.CHANGED, [2]),
        (line("a", ONE, "@unknown-marker"), Verdict.UNKNOWN, []),
    ],
)
def test_check_returns_the_verdict_and_its_lines(text: str, verdict: Verdict, lines: list[int]) -> None:
    answer = parse(text).check("a", 22, ONE)
    assert (answer.verdict, [e.line for e in answer.entries]) == (verdict, lines)


BAD = [
    "one-word",
    "a ssh-ed25519",
    "a ssh-ed25519 !!!!",
    "a ssh-ed25519 AAAA",
    "@revoked  ",
    "|1|x|y z w",
    "\x00\x01",
    "é",
]


@each("bad", BAD)
def test_parser_records_a_bad_line_and_reads_the_rest(bad: str) -> None:
    known = parse(f"# comment\n\n{bad}\n  \t{line('a', ONE)}", "file")
    assert known.check("a", 22, ONE).verdict is Verdict.TRUSTED
    assert known.bad == ["file:3"]


def test_key_with_the_wrong_type_name_is_a_bad_line() -> None:
    assert parse(f"a ssh-rsa {base64.b64encode(ONE.blob).decode()}\n").bad == ["known_hosts:1"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_parser_accepts_all_line_endings(ending: str) -> None:
    assert parse(line("a", ONE).rstrip() + ending).check("a", 22, ONE).verdict is Verdict.TRUSTED


def test_key_types_lists_the_types_of_a_host_in_order() -> None:
    text = line("a", RSA) + line("b", ONE) + line("a", ONE) + line("a", TWO) + line("a", key("x", "sk"), "@revoked")
    assert parse(text).key_types("a") == ["ssh-rsa", "ssh-ed25519"]


def test_files_are_read_once_until_they_change(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(line("a", ONE))
    first = load([str(file), str(tmp_path / "missing")])
    assert load([str(file), str(tmp_path / "missing")]) is first
    with file.open("a") as another_process:
        another_process.write(line("[b]:2222", TWO))
    second = load([str(file), str(tmp_path / "missing")])
    assert second is not first
    assert second.check("b", 2222, TWO).verdict is Verdict.TRUSTED
    assert second.check("a", 22, ONE).verdict is Verdict.TRUSTED


@each("before", ["", "# a comment\n\n" + line("a", ONE), "\n" + line("a", ONE).rstrip("\n")])
def test_files_are_not_read_again_after_each_new_host(tmp_path: Path, before: str) -> None:
    file = tmp_path / "known"
    names = [str(tmp_path / "missing"), str(file)]
    file.write_text(before)
    known = load(names)
    for number in range(20):
        assert known.check(f"h{number}", 22, TWO).verdict is Verdict.UNKNOWN
        append(str(file), f"h{number}", 22, TWO)
        assert known.check(f"h{number}", 22, TWO).verdict is Verdict.TRUSTED
        assert load(names) is known, "the file was read again"
    # A new reading gives the same lines.
    assert known.entries == parse(file.read_text(), str(file)).entries


def test_a_file_that_append_creates_is_not_read_again(tmp_path: Path) -> None:
    file = str(tmp_path / "dir" / "known")
    known = load([file])
    append(file, "a", 22, ONE)
    append(file, "b", 22, ONE)
    assert load([file]) is known
    assert [entry.location for entry in known.entries] == [f"{file}:1", f"{file}:2"]


def test_append_to_a_file_that_another_process_has_changed_reads_it_again(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(line("a", ONE))
    first = load([str(file)])
    with file.open("a") as another_process:
        another_process.write(line("b", ONE))
    append(str(file), "c", 22, ONE)
    assert [entry.patterns for entry in first.entries] == [("a",)]
    second = load([str(file)])
    assert [(entry.patterns, entry.line) for entry in second.entries] == [(("a",), 1), (("b",), 2), (("c",), 3)]


def test_append_keeps_a_last_line_without_newline(tmp_path: Path) -> None:
    file = tmp_path / "known"
    before = line("a", ONE).rstrip("\n")
    file.write_text(before)
    append(str(file), "b", 22, TWO)
    assert file.read_text().startswith(before + "\nb ssh-ed25519 ")


def test_append_creates_a_private_file_and_directory(tmp_path: Path) -> None:
    file = tmp_path / "dir" / "known"
    saved = os.umask(0)
    try:
        append(str(file), "b", 22, TWO)
    finally:
        os.umask(saved)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_load_raises_an_error_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        load([str(tmp_path)])


def test_lookup_name_is_lower_case_and_has_an_unusual_port() -> None:
    assert known_hosts.lookup_name("Web") == "web"
    assert known_hosts.lookup_name("Web", 23) == "[web]:23"
