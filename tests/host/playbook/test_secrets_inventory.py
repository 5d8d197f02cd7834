"""Commands that only list things do not need the inventory's secrets; a plan does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.host.command import statecfg

INVENTORY = """\
hosts:
  web1: {vars: {password: !secret {env: STATECFG_TEST_MISSING, name: dbpw}}}
  "@local": {}
groups: {web: {hosts: [web1], vars: {token: !secret {file: not-there.txt}}}}
"""
PLAYBOOK = 'hosts: web1\nresources:\n  - file: /etc/x\n    content: "{{ password }}"\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "site.yml").write_text(PLAYBOOK)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    ["hook list", "hook log", "hosts", "inventory", "inventory --vars", "inventory --json", "service list"],
)
def test_commands_that_only_look_need_no_secret(place: Path, words: str) -> None:
    ran = statecfg(*words.split(), cwd=place, XDG_STATE_HOME=str(place / "state"))
    assert "not-available" not in ran.out + ran.err
    if "vars" in words or "json" in words:
        assert "<secret dbpw>" in ran.out


def test_plan_needs_the_secret_but_validate_does_not(place: Path) -> None:
    ran = statecfg("plan", "site.yml", cwd=place, code=5, XDG_STATE_HOME=str(place / "state"))
    assert "STATECFG_TEST_MISSING" in ran.err and "inventory.yml:2" in ran.err
    statecfg("validate", "site.yml", cwd=place, XDG_STATE_HOME=str(place / "state"))


@pytest.mark.parametrize(
    ("setting", "entry", "code", "location"),
    [
        ("", '  - file: "/etc/{{ token }}"\n    content: a\n', "SC0425", "site.yml:4:5"),
        ("", '  - file: /etc/x\n    content: a\n    provides: "x-{{ token }}"\n', "SC0425", "site.yml:6:5"),
        (", user: !secret {env: TOKEN}", "", "SC0405", "inventory.yml:3:"),
    ],
)
def test_validate_refuses_a_public_secret_and_contacts_no_host(
    tmp_path: Path, setting: str, entry: str, code: str, location: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        inventory = f"hosts:\n  web1:\n    {{address: 127.0.0.1, port: {port}{setting}}}\n"
        (tmp_path / "inventory.yml").write_text(inventory)
        text = f"hosts: web1\nvars: {{token: !secret {{env: TOKEN}}}}\nresources:\n{entry}"
        (tmp_path / "site.yml").write_text(f"{text}  - directory: /srv\n")
        ran = statecfg("validate", "site.yml", cwd=tmp_path, code=5, TOKEN="correct-horse")
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert f"error[{code}]" in ran.err and f"--> {location}" in ran.err and "no host was changed" in ran.err
    assert "correct-horse" not in ran.out + ran.err
