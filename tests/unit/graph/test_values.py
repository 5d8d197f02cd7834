"""The types of values: which values they accept and refuse, and the messages."""

from __future__ import annotations

import datetime
import pathlib
from typing import Any

import pytest

from statecfg.graph.schema import NAMES
from statecfg.graph.types import Mismatch, TypeProblem, of_annotation
from statecfg.remote.graph import wrong_values
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import Wrong, show
from tests.each import each


def check(annotation: Any, value: Any) -> Any:
    return of_annotation(annotation, NAMES).check(value)


PASS: list[tuple[str, Any, Any]] = [
    ("AbsolutePath", "/etc/motd", "/etc/motd"),
    ("AbsolutePath", "/etc//x", "/etc//x"),
    ("AbsolutePath", "/srv/ä ö", "/srv/ä ö"),
    ("AbsolutePath", "/srv/..x/...", "/srv/..x/..."),
    ("AbsolutePath", "/" + "n" * 255, "/" + "n" * 255),
    ("Mode", "0644", 0o644),
    ("Mode", "644", 0o644),
    ("Mode", "0o2755", 0o2755),
    ("Mode", "01777", 0o1777),
    ("UserName", "www-data", "www-data"),
    ("UserName", "host$", "host$"),
    ("Owner", "1000", "1000"),
    ("Port", 65535, 65535),
    ("Id", 0, 0),
    ("Seconds", 5, 5.0),
    ("bool", False, False),
    ("float", 3, 3),
    ("int", 2**63 - 1, 2**63 - 1),
    ("str", pathlib.PurePath("/a/b"), "/a/b"),
    ("Literal['a', 'b']", "b", "b"),
    ("Optional[int]", None, None),
    ("int | list[int]", [1], [1]),
    ("PackageName", "libc6:i386", "libc6:i386"),
    ("PublicLine", "a b", "a b"),
    ("Suffix", ".bak", ".bak"),
    ("LocalPath", "site.conf.j2", "site.conf.j2"),
    ("Any", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
]


def plain(value: Any) -> Any:
    if hasattr(value, "items"):
        return {key: plain(item) for key, item in value.items()}
    return (
        value if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") else [plain(item) for item in value]
    )


@each(("annotation", "given", "kept"), PASS, ids=lambda value: ascii(show(value))[:30])
def test_type_accepts_valid_values(annotation: str, given: Any, kept: Any) -> None:
    assert plain(check(annotation, given)) == kept


# annotation, value, a part of the message, a part of the help
REFUSED: list[tuple[str, Any, str, str]] = [
    ("AbsolutePath", "", "an empty path", "/etc/motd"),
    ("AbsolutePath", "etc/motd", "a relative path", "/etc/motd"),
    ("AbsolutePath", "~/x", "which is not expanded", "/home/x"),
    ("AbsolutePath", "/a/../b", "`..`", "the resolved path"),
    ("AbsolutePath", "/a/", "ends in `/`", "write '/a'"),
    ("AbsolutePath", "/", "the root directory", "below it"),
    ("AbsolutePath", "//./", "the root directory", ""),
    ("AbsolutePath", "/" + "n" * 256, "a name of 256 bytes", ""),
    ("AbsolutePath", "/" + "ä" * 150, "a name of 300 bytes", ""),
    ("AbsolutePath", "/abc" * 1250, "a path of 5000 bytes; the maximum is 4095", ""),
    ("AbsolutePath", "/a\0b", "NUL byte at index 2", ""),
    ("AbsolutePath", "/a\ud800", "not valid Unicode at index 2", ""),
    ("AbsolutePath", ["/a"], "expected an absolute path, got a list: ['/a']", ""),
    ("Mode", 644, "decimal 644 is octal 01204", "write '0644'; 644 decimal is 01204"),
    ("Mode", 0o644, "decimal 420 is octal 0644", "'0644' if that was meant"),
    ("Mode", -1, "not a valid mode", "0644"),
    ("Mode", "u+x", "a symbolic mode", "only file and directory take symbolic modes"),
    ("ModeChange", "+x", "not a symbolic mode", "write who, a sign and"),
    ("ModeChange", "u+q", "not a symbolic mode", "u=rw,go=r or a+x"),
    ("ModeChange", "o+s", "not a symbolic mode", "write who"),
    ("ModeChange", "g=u,u=r", "a symbolic mode that a second apply would change again", "the mode that you want"),
    ("ModeChange", "rw-r--r--", "a mode as ls shows it", "0644"),
    ("ModeChange", 420, "decimal 420 is octal 0644", "'0644' if that was meant"),
    ("Mode", "rw-r--r--", "a mode as ls shows it", "0644"),
    ("Mode", "0844", "not a mode", "octal digits"),
    ("Mode", "17777", "not a mode", "octal digits"),
    ("Mode", True, "a boolean", "octal digits"),
    ("UserName", "", "an empty user name", ""),
    ("UserName", "1000", "a number", "write the user's name"),
    ("UserName", "n" * 33, "a name of 33 bytes", ""),
    ("UserName", "a b", "not a valid user name", "letters, digits"),
    ("GroupName", "wheel:x", "not a valid group name", ""),
    ("Owner", "99999999999", "an id greater than", ""),
    ("Owner", 1000, "expected a user name or id, got an integer", "quotes"),
    ("Port", 0, "0; the allowed range is 1 to 65535", ""),
    ("Port", 10**23, "64 bits", ""),
    ("Port", "80", "expected a port, got a string: '80'", "without quotes"),
    ("Port", True, "expected a port, got a boolean: True", ""),
    ("Id", 2**32 - 1, "the allowed range is 0 to 4294967294", ""),
    ("int", 10**5000, "an integer of about 500", ""),
    ("int", 1.0, "expected an integer, got a number", ""),
    ("float", float("nan"), "nan is not a finite number", ""),
    ("float", True, "expected a number", ""),
    ("Seconds", 0, "0 is not a time", "600"),
    ("bool", "yes", "expected true or false, got a string: 'yes'", "true or false"),
    ("bool", 1, "expected true or false, got an integer: 1", "true or false"),
    ("str", None, "expected a string, got nothing", ""),
    ("str", 3.1, "expected a string, got a number: 3.1", 'put it in quotes: "3.1"'),
    ("Text", datetime.date(2024, 1, 2), "expected a string, got a date", 'put it in quotes: "2024-01-02"'),
    ("list[str]", "a", "expected a list, got a string: 'a'", "['a']"),
    ("list[str]", ["a", 2], "element 2: expected a string, got an integer: 2", "quotes"),
    ("list[str]", {"a"}, "expected a list, got a set", ""),
    ("dict[str, str]", {"A": 1}, "`A`: expected a string, got an integer", "quotes"),
    ("dict[str, str]", {1: "A"}, "expected a string as the key of a map, got an integer", 'put it in quotes: "1"'),
    ("dict[str, str]", ["A"], "expected a map, got a list", ""),
    ("Any", {(1, 2): "A"}, "expected a string as the key of a map", ""),
    ("Literal['a', 'b']", "c", "expected one of 'a', 'b', got 'c'", ""),
    ("Literal[1]", True, "expected 1, got True", ""),
    ("int | list[int]", "x", "expected an integer or a list, each element an integer, got a string", ""),
    ("int | list[int]", [1, "x"], "expected an integer or a list", ""),
    ("Argv", [], "no program", "systemctl"),
    ("Argv", "ls -l", "expected a list of a program and its arguments, got a string", "write a list: ['ls', '-l']"),
    ("Argv", "ls", "expected a list of a program and its arguments, got a string", "with one element: ['ls']"),
    ("Argv", "ls | wc", "got a string", "with one element"),
    ("Argv", ["a", True], "element 2: expected a string, got a boolean: True", 'put it in quotes: "true"'),
    ("Argv", ["a", {}], "element 2: expected a string, got a map: {}", ""),
    ("Argv", ["a", "b\0"], "NUL byte at index 1", ""),
    ("Name", "a b", "a space or control character", ""),
    ("Line", "a\nb", "contains a line break; write one line", ""),
    ("NoNul", "a\0", "NUL byte at index 1", ""),
    ("PackageName", "-nginx", "not a valid package name", "such as"),
    ("PackageName", "nginx=1.2", "a name with a version", 'version: "1.2"'),
    ("PackageName", "ngi nx", "not a valid package name", "such as"),
    ("Suffix", "../x", "not a suffix", ".bak"),
    ("LocalPath", " ", "an empty path", "files/"),
    ("Content", 3, "not a string or bytes", "quotes"),
]


@each(("annotation", "given", "message", "help"), REFUSED, ids=lambda value: ascii(show(value))[:30])
def test_type_refuses_invalid_values_with_help(annotation: str, given: Any, message: str, help: str) -> None:
    with pytest.raises(Wrong) as caught:
        check(annotation, given)
    assert message in str(caught.value)
    assert help in caught.value.help
    assert len(str(caught.value)) < 300


@each("value", ["x" * 10**6, b"x" * 1000, list(range(999)), 10**6000, {"a": "b" * 500}, "\0" * 500], ids=show)
def test_show_shortens_long_values(value: Any) -> None:
    assert len(show(value)) <= wrong_values.MAX_SHOWN


def test_show_handles_a_value_whose_repr_raises() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert show(Rude()) == "<Rude whose repr raises RuntimeError>"


@pytest.mark.parametrize("content", ["text", b"\xff\0", Blob.of(b"x")])
def test_content_accepts_text_bytes_and_blobs(content: Any) -> None:
    assert check("Content", content) == content


def test_mismatch_is_raised_for_a_wrong_type_only() -> None:
    with pytest.raises(Mismatch):
        check("Port", "80")
    with pytest.raises(Wrong) as caught:
        check("Port", 0)
    assert not isinstance(caught.value, Mismatch)


@each("annotation", ["Nowhere", "list[", "3", "'x' + 1"])
def test_of_annotation_refuses_an_invalid_annotation(annotation: str) -> None:
    with pytest.raises(TypeProblem):
        of_annotation(annotation, NAMES)
