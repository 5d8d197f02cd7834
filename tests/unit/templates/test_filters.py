"""Filters and tests of templates give the results of Ansible.

`filters.json` has expressions, their variables, and the results that ansible-core 2.19 returned for them.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from statecfg import templates
from statecfg.playbook import secrets
from statecfg.problems import InvalidInput, Problem
from statecfg.problems.positions import SourceLocation
from statecfg.templates.filters import FILTERS, TESTS, limits
from tests.each import each

HERE = SourceLocation("play.yml", 7)
RECORDED = json.loads((Path(__file__).parent / "filters.json").read_text(encoding="utf-8"))
NOT_IN_ANSIBLE_CORE = {"ipaddr", "ipv4", "ipv6", "ipwrap"}


def value(expression: str, **variables: Any) -> Any:
    """Return the value of an expression in a template."""
    return templates.evaluate(f"{{{{ {expression} }}}}", variables, HERE)


def problem(expression: str, **variables: Any) -> Problem:
    """Return the problem that an expression reports."""
    with pytest.raises(InvalidInput) as caught:
        value(expression, **variables)
    (found,) = caught.value.problems
    return found


@each("case", RECORDED, ids=lambda case: case["template"])
def test_results_equal_those_of_ansible(case: dict[str, Any]) -> None:
    result = value(case["template"], **case.get("vars", {}))
    assert json.loads(json.dumps(result)) == case["result"]


def test_every_filter_and_test_has_a_recorded_result() -> None:
    text = " ".join(case["template"] for case in RECORDED)
    missing = [name for name in FILTERS if f"| {name}" not in text and f"'{name}'" not in text]
    missing += [name for name in TESTS if f"is {name}" not in text]
    assert set(missing) == {*NOT_IN_ANSIBLE_CORE, "issubset", "issuperset"}


def test_every_filter_and_test_has_a_docstring() -> None:
    assert [
        name for name, function in {**FILTERS, **TESTS}.items() if not (inspect.getdoc(function) or "").endswith(".")
    ] == []


@each(
    ("query", "result"),
    [
        ("", "10.1.2.3/24"),
        ("address", "10.1.2.3"),
        ("network", "10.1.2.0"),
        ("prefix", 24),
        ("netmask", "255.255.255.0"),
        ("hostmask", "0.0.0.255"),
        ("broadcast", "10.1.2.255"),
        ("subnet", "10.1.2.0/24"),
        ("net", False),
        ("host", "10.1.2.3/24"),
        ("host/prefix", "10.1.2.3/24"),
        ("size", 256),
        ("version", 4),
        ("revdns", "3.2.1.10.in-addr.arpa."),
        ("private", "10.1.2.3/24"),
        ("public", False),
        ("loopback", False),
        ("range_usable", "10.1.2.1-10.1.2.254"),
        ("first_usable", "10.1.2.1"),
        ("last_usable", "10.1.2.254"),
        ("10.0.0.0/8", "10.1.2.3/24"),
        ("192.168.0.0/16", False),
        ("::/0", False),
        (1, "10.1.2.1/24"),
        (-1, "10.1.2.255/24"),
        ("5", "10.1.2.5/24"),
        (1000, False),
    ],
)
def test_ipaddr_returns_a_part_of_an_address(query: str | int, result: Any) -> None:
    assert value("'10.1.2.3/24' | ipaddr(query)", query=query) == result


def test_ipaddr_selects_valid_addresses_of_a_list() -> None:
    mixed = ["1.2.3.4", "x", "::1", "10.0.0.0/8", True]
    assert value("mixed | ipaddr", mixed=mixed) == ["1.2.3.4", "::1", "10.0.0.0/8"]
    assert value("mixed | ipv4", mixed=mixed) == ["1.2.3.4", "10.0.0.0/8"]
    assert value("mixed | ipv6", mixed=mixed) == ["::1"]
    assert value("['::1', '1.2.3.4', 'host'] | ipwrap") == ["[::1]", "1.2.3.4", "host"]
    assert value("'x' | ipaddr") is False


@each(
    ("expression", "detail"),
    [
        ("'Y' | bool", "'Y' is neither true nor false"),
        ("'a' | comment('basic')", "unknown style of comments 'basic'"),
        ("'x' | hash('crc')", "unknown algorithm 'crc'"),
        ("'x' | password_hash", "password_hash needs a salt"),
        ("'x' | password_hash('sha512', 'salt', rounds=9000000)", "sha512 takes at most 1,000,000 rounds"),
        ("'x' | password_hash('sha512', 'a b')", "sha512: "),
        ("'%Y' | strftime", "strftime needs a time"),
        ("'x' | b64decode", "'x' is not text in Base64"),
        ("'(' | regex_escape | regex_replace('(', '')", "the regular expression '(' is invalid"),
        ("'x' | regex_search('x', 'y')", "'y' is not the name of a group"),
        ("'aa' | regex_replace('a', 'b', mandatory_count=3)", "matches 2 times instead of 3 times"),
        ("[1] | combine({})", "combine needs maps, got [1]"),
        ("{} | combine({}, list_merge='mix')", "unknown way to merge lists 'mix'"),
        ("[{'a': 1}] | items2dict", "the item 'key' is not in"),
        ("[{'n': 1}, {'n': 1}] | rekey_on_member('n')", "two items have the n 1"),
        ("'{' | from_json", "the text is not JSON"),
        ("'a: [' | from_yaml", "the text is not YAML"),
        ("'a: *part-of-it' | from_yaml", "the text is not YAML (line 1, column 4)"),
        ("{} | to_yaml(colour=1)", "unknown option 'colour'"),
        ("'much' | human_to_bytes", "'much' is not a size"),
        ("'1.1' is version('1.a', '<')", "'1.1' and '1.a' can't be compared"),
        ("'1.1' is version('1.1', '~')", "unknown operator '~' for versions"),
        ("'1.1' is version('1.1', version_type='pep440')", "unknown type 'pep440' of versions"),
        ("'1.1' is version('1.1', version_type='semver')", "'1.1' is not a semantic version"),
        ("'1.1' | ipaddr('net', 1)", "TypeError"),
        ("'1.1.1.1' | ipaddr('nett')", "ipaddr has no query 'nett'"),
        ("'a' | relpath('/b')", "relpath needs two absolute paths"),
        ("'http://h' | urlsplit('host')", "unknown part of a URL 'host'"),
    ],
)
def test_wrong_arguments_are_refused_with_a_reason(expression: str, detail: str) -> None:
    found = problem(expression)
    assert found.code == "SC0322"
    assert detail in found.detail
    assert "part-of-it" not in found.detail  # the text may be a secret


def test_mandatory_names_an_undefined_variable() -> None:
    assert problem("port | mandatory").detail == "the variable `port` is not defined"
    assert problem("port | mandatory('set port')").detail == "set port"


@pytest.mark.parametrize(
    "expression",
    [
        "('a' * 60 ~ 'b') is match('(?:a|aa)+$')",
        "range(100) | product(range(100), range(100), range(100))",
        "'x' | comment(prefix='#' * 1000, prefix_count=1000000)",
    ],
)
def test_a_filter_stays_within_the_limits_of_templates(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    monkeypatch.setattr(limits, "ITEMS", 1000)
    assert problem(expression).code == "SC0323"


def test_a_filter_of_a_secret_returns_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "hunter22")
    secret = secrets.secret("password", env="PASSWORD")
    for expression in ("p | b64encode", "p | hash('sha256')", "p | password_hash('sha512', 'salt', rounds=5000)"):
        result = value(expression, p=secret)
        assert hasattr(result, "reveal"), expression
        assert "hunter22" not in str(result)
    assert value("p | b64encode", p=secret).reveal() == "aHVudGVyMjI="
