"""Settings of a real Redis server on a booted host: in its file and in the running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.databases import redis_servers
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

NAME, PORT = "redis-tests", 6392
PATH = redis_servers.path(NAME)
FILE = f"port {PORT}\ntimeout 9\n# maxmemory <bytes>\n"


@pytest.fixture(scope="module")
def service(booted: Host) -> str:
    return redis_servers.create(booted, NAME, PORT)


@pytest.fixture
def site(booted: Host, service: str, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, f"/srv/{NAME}")
    found.write("redis.conf", FILE)
    booted.run(["systemctl", "restart", service])
    yield found
    found.clean()


def setting(name: str, *more: str) -> str:
    lines = [f"path: {PATH}", f"port: {PORT}", *more]
    return f"  - redis_setting: {name}\n" + "".join(f"    {line}\n" for line in lines)


def now(site: Site, name: str, password: str = "") -> str:
    return redis_servers.ask(site.host, PORT, "CONFIG", "GET", name, password=password).partition("\n")[2]


def test_settings_apply_at_once_survive_a_restart_and_are_undone(site: Site, service: str) -> None:
    both = setting("maxmemory", "value: 64mb") + setting("save", 'value: ""') + setting("timeout", "value: 0")
    both += setting("databases", "value: 4", "running: false")
    both += f"  - service: {NAME}\n    running: true\n    restart_on: ['redis_setting:databases']\n"
    planned = site.come_true(both)
    changes = planned["redis_setting:maxmemory"]["changes"]
    assert "+maxmemory 64mb\n" in "".join(change.get("diff", "") for change in changes)
    assert planned["redis_setting:maxmemory"]["actions"][0]["args"]["was"] == "0"
    assert (now(site, "maxmemory"), now(site, "databases"), now(site, "save")) == ("67108864", "4", "")
    site.host.run(["systemctl", "restart", service])
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    redis_servers.ask(site.host, PORT, "CONFIG", "SET", "maxmemory", "1gb")
    (planned_again,) = [node for node in site.come_true(both).values() if node["actions"]]
    assert [action["op"] for action in planned_again["actions"]] == ["set_running"]
    redis_servers.ask(site.host, PORT, "CONFIG", "SET", "timeout", "7")
    ran = site.say("destroy")
    assert "the running value of timeout is now 7: it stays" in ran.out
    assert site.read("redis.conf") == FILE


def test_a_stopped_server_is_known_after_its_service(site: Site, service: str) -> None:
    site.host.run(["systemctl", "stop", service])
    started = f"  - service: {NAME}\n    running: true\n" + setting("hz", "value: 50", f"requires: [service:{NAME}]")
    planned = nodes(site.report("plan", started))
    assert planned["redis_setting:hz"]["known_after"] == f"service:{NAME}"
    site.say("apply")
    assert now(site, "hz") == "50"
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    site.host.run(["systemctl", "stop", service])
    reason = nodes(site.report("plan", setting("hz", "value: 50"), code=1))["redis_setting:hz"]["reason"]
    assert "Connection refused; require the service that starts it" in reason
    site.say("destroy")  # without the server, only the file
    assert site.read("redis.conf") == FILE


def test_a_password_is_set_used_and_shown_nowhere(site: Site, service: str) -> None:
    """A later node logs in with the new password. Without it, the plan says what is missing."""
    site.host.path(PATH).chmod(0o640)
    word = 'value: "{{ word }}"'
    login = 'password: "{{ word }}"'
    both = setting("requirepass", word) + setting("hz", "value: 60", login, "requires: ['redis_setting:requirepass']")
    site.come_true(both)
    assert now(site, "hz", SECRET) == "60" and "NOAUTH" in redis_servers.ask(site.host, PORT, "CONFIG", "GET", "hz")
    assert site.host.path(PATH).stat().st_mode & 0o777 == 0o640
    site.host.run(["systemctl", "restart", service])
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify")]
    reason = nodes(site.report("plan", setting("hz", "value: 60"), code=1))["redis_setting:hz"]["reason"]
    assert "the server needs a password; write password" in reason
    said.append(site.say("plan", both))
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    said.append(site.say("destroy"))
    assert SECRET not in said[-1].out
    assert site.read("redis.conf") == FILE
    assert now(site, "requirepass") == ""


def test_a_refused_value_fails_with_the_answer_of_the_server(site: Site, service: str) -> None:
    reason = nodes(site.report("apply", setting("maxmemory-policy", "value: none"), code=1))
    assert "maxmemory-policy: ERR CONFIG SET failed" in reason["redis_setting:maxmemory-policy"]["reason"]
    assert site.read("redis.conf") == FILE
    unknown = nodes(site.report("plan", setting("maxmemry", "value: 1"), code=1))["redis_setting:maxmemry"]["reason"]
    assert "this version of Redis has no setting maxmemry" in unknown
