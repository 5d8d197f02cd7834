"""Hosts whose errors differ only in their names and addresses share one block."""

from __future__ import annotations

from typing import Any

from statecfg.views import markdown
from statecfg.views.lines import plain
from statecfg.views.plan import plan_lines
from statecfg.views.tally import fold


def report(**errors: dict[str, str] | str) -> Any:
    """Return the report of unreachable hosts: name → summary of the error, or the error."""
    empty = {"detail": "", "hint": ""}
    hosts = {
        name: {
            "status": "unreachable",
            "layers": [],
            "summary": {},
            "error": {**empty, **(error if isinstance(error, dict) else {"summary": error})},
        }
        for name, error in errors.items()
    }
    return {"format": 1, "run": "r1", "mode": "plan", "playbook": "p.yml", "hosts": hosts}


def folded(**errors: dict[str, str] | str) -> list[tuple[str, str, str]]:
    """Return the names, the summary and the detail of each group."""
    groups = [(group.names, group.host["error"]) for group in fold(report(**errors))]
    return [(" ".join(names), error["summary"], error["detail"]) for names, error in groups]


def test_a_dead_rack_is_one_block() -> None:
    hosts = {f"web{n:03}": f"cannot connect: 10.0.0.{n} port 22: Connection refused" for n in range(1, 201)}
    given = report(**hosts)
    before = repr(given)
    (group,) = fold(given)
    assert len(group.names) == 200
    assert group.host["error"]["summary"] == "cannot connect: ADDRESS port 22: Connection refused"
    assert "web001 (10.0.0.1), web002 (10.0.0.2)" in group.host["error"]["detail"]
    assert "web200 (10.0.0.200)" in group.host["error"]["detail"], "no host is omitted"
    assert repr(given) == before, "the JSON report stays as it is"
    text = plain(plan_lines(given))
    assert text.count("Connection refused") == 1
    assert markdown.text(given).count("Connection refused") == 1


def test_addresses_ports_and_names_may_differ() -> None:
    assert folded(
        a="cannot connect: ::1 port 22: refused; 127.0.0.1 port 22: refused",
        b="cannot connect: fe80::2%eth0 port 2222: refused; 127.0.0.1 port 2222: refused",
    ) == [
        (
            "a b",
            "cannot connect: ADDRESS port PORT: refused; 127.0.0.1 port PORT: refused",
            "Hosts: a (::1, 22), b (fe80::2%eth0, 2222)",
        )
    ]
    names = folded(web1="cannot look up web1.example: no such name", web2="cannot look up web2.example: no such name")
    assert names == [("web1 web2", "cannot look up HOST: no such name", "Hosts: web1, web2")]


def test_equal_errors_stay_as_they_are() -> None:
    """For example, hosts behind the same jump host, which is down."""
    text = "cannot connect: 10.0.0.9 port 22: Connection refused"
    assert folded(a=text, b=text) == [("a b", text, "")]


def test_other_differences_are_shown_separately() -> None:
    one, other = "cannot connect: 10.0.0.1 port 22: refused", "no answer from 10.0.0.2 port 22 within 10 s"
    assert folded(a=one, b=other) == [("a", one, ""), ("b", other, "")]
    assert len(folded(a="it runs 1.2.3", b="it runs 1.2.4")) == 2
    assert len(folded(a="waits for b", b="waits for c")) == 2


def test_the_advice_names_no_single_host() -> None:
    def error(address: str) -> dict[str, str]:
        return {"summary": "unknown key", "detail": "d", "hint": f"ssh-keyscan -p 22 {address} >> known_hosts"}

    (group,) = fold(report(a=error("10.0.0.1"), b=error("10.0.0.2")))
    assert group.host["error"]["hint"] == "ssh-keyscan -p 22 ADDRESS >> known_hosts"
    assert group.host["error"]["detail"] == "d\nHosts: a (10.0.0.1), b (10.0.0.2)"
