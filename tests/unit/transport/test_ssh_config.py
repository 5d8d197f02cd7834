"""statecfg reads ssh_config like OpenSSH. The file determines the route to a host."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from statecfg.transport import SshSettings, Target, Unreachable, ssh_config
from statecfg.transport.route import Hop, route
from statecfg.transport.ssh_config import ConfigProblem, load
from tests.each import each

CONFIG = """\
# a comment
Host web*  !web9
    HostName %h.example.org
    Port=2201
    User "deploy"
    IdentityFile ~/.ssh/web
host db
  hostname 10.0.0.5
  hostkeyalias database
  IdentityFile /keys/%r@%h:%p
  IdentitiesOnly yes
  ConnectTimeout 3
  UserKnownHostsFile /a /b
Match host 10.0.0.5
  User postgres
Match originalhost web1 exec "touch /tmp/never"
  User wrong
Host *
  User nobody
  IdentityFile /keys/all
  StrictHostKeyChecking accept-new
"""


def hop(tmp_path: Path, text: str, target: Target, **settings: object) -> Hop:
    return hops(tmp_path, text, target, **settings)[-1]


def hops(tmp_path: Path, text: str, target: Target, **settings: object) -> tuple[Hop, ...]:
    file = tmp_path / "config"
    file.write_text(text)
    return route(target, SshSettings(ssh_config=str(file), **settings))


def test_route_applies_tokens_aliases_and_known_hosts_files(tmp_path: Path) -> None:
    found = hop(tmp_path, CONFIG, Target("db"))
    assert found.host == "10.0.0.5"
    assert found.user == "postgres"
    assert (found.trust.alias, found.trust.port) == ("database", 22)
    assert found.keys == ("/keys/postgres@10.0.0.5:22", "/keys/all")
    assert found.trust.files[:2] == ("/a", "/b")
    assert found.connect_timeout == 3


def test_inventory_wins_over_ssh_config(tmp_path: Path) -> None:
    found = hop(tmp_path, CONFIG, Target("web1", port=22, user="me", identity_files=("/my/key",)))
    assert (found.port, found.user, found.keys) == (22, "me", ("/my/key",))


def test_ssh_config_is_looked_up_by_address(tmp_path: Path) -> None:
    found = hop(tmp_path, CONFIG, Target("shop", address="db"))
    assert (found.name, found.host) == ("shop", "10.0.0.5")


def test_known_hosts_setting_wins_over_ssh_config(tmp_path: Path) -> None:
    assert hop(tmp_path, CONFIG, Target("db"), known_hosts=("/mine",)).trust.files == ("/mine",)


def test_default_keys_are_used_only_if_none_is_configured(tmp_path: Path) -> None:
    assert [k.rpartition("/")[2] for k in hop(tmp_path, "", Target("x")).keys] == ["id_ed25519", "id_ecdsa", "id_rsa"]
    assert hop(tmp_path, "", Target("x"), default_keys=False).keys == ()
    assert hop(tmp_path, "IdentityFile none\n", Target("x")).keys == ()


def test_include_applies_only_inside_its_host_block(tmp_path: Path) -> None:
    (tmp_path / "more.d").mkdir()
    (tmp_path / "more.d" / "1.conf").write_text("User inner\nHost b\n  Port 7\n")
    text = f"Host a b\n  Include {tmp_path}/more.d/*.conf\nHost *\n  User outer\n"
    assert hop(tmp_path, text, Target("a")).user == "inner"
    assert hop(tmp_path, text, Target("a")).port == 22
    assert hop(tmp_path, text, Target("b")).port == 7
    assert hop(tmp_path, text, Target("c")).user == "outer"


def test_recursive_include_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="Include is nested more than 16 files deep"):
        hops(tmp_path, f"Include {tmp_path}/config\n", Target("a"))


def names(found: tuple[Hop, ...]) -> list[str]:
    return [f"{h.user}@{h.host}:{h.port}" for h in found]


@each(
    ("jump", "way"),
    [
        ("gate", ["u@gate.example.org:22"]),
        ("me@gate:2222", ["me@gate.example.org:2222"]),
        ("ssh://me@gate:2222/", ["me@gate.example.org:2222"]),
        ("[::1]:2222", ["u@::1:2222"]),
        ("one,two", ["u@one:22", "u@two:22"]),
        ("behind", ["u@gate.example.org:22", "u@behind:22"]),
        ("none", []),
    ],
)
def test_route_goes_through_all_jump_hosts(tmp_path: Path, jump: str, way: list[str]) -> None:
    text = "Host gate\n  HostName gate.example.org\nHost behind\n  ProxyJump gate\nHost *\n  User u\n"
    assert names(hops(tmp_path, f"Host far\n  ProxyJump {jump}\n{text}", Target("far"))) == [*way, "u@far:22"]
    assert names(hops(tmp_path, text, Target("far", proxy_jump=jump))) == [*way, "u@far:22"]


def test_route_refuses_a_cycle_of_jump_hosts(tmp_path: Path) -> None:
    text = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    with pytest.raises(Unreachable, match="ProxyJump is circular: a → b → a") as raised:
        hops(tmp_path, text, Target("a"))
    assert raised.value.hint == "Set `ProxyJump none` for the jump host in ssh_config."


def test_jump_host_can_have_the_same_address_with_another_port_or_user(tmp_path: Path) -> None:
    near = Target("a", address="::1", port=2602, user="u", proxy_jump="u@[::1]:1")
    assert names(hops(tmp_path, "", near)) == ["u@::1:1", "u@::1:2602"]
    near = Target("a", address="::1", port=22, user="u", proxy_jump="v@[::1]")
    assert names(hops(tmp_path, "", near)) == ["v@::1:22", "u@::1:22"]
    with pytest.raises(Unreachable, match="circular"):
        hops(tmp_path, "", Target("a", address="::1", port=22, user="u", proxy_jump="u@[::1]"))


def test_jump_host_for_all_hosts_must_exclude_itself(tmp_path: Path) -> None:
    text = "Host *\n  ProxyJump gate\n  User u\n"
    with pytest.raises(Unreachable, match="circular"):
        hops(tmp_path, text, Target("a"))
    assert names(hops(tmp_path, "Host gate\n  ProxyJump none\n" + text, Target("a"))) == ["u@gate:22", "u@a:22"]


@each("jump", ["-oProxyCommand=id", "a b", "a;id", "@", "host:port", "u@"])
def test_route_refuses_invalid_jump_hosts(tmp_path: Path, jump: str) -> None:
    with pytest.raises(Unreachable):
        hops(tmp_path, "", Target("a", proxy_jump=jump))


@each(
    ("text", "message"),
    [
        ("Host a\n  Port\n", "config:2: port has no value"),
        ('Host "a\n', "config:1: a quote is not closed"),
        ("Port ssh\n", "port 'ssh' is not a number"),
        ("Port 0\n", "0 is not a port"),
        ("Port 70000\n", "70000 is not a port"),
        ("IdentityFile %q\n", "unknown token %q"),
        ("ProxyCommand nc %h %p\n", "ProxyCommand for it, which statecfg does not support"),
        ("HostName -oProxyCommand=id\n", "is not a host name"),
        ("User $(id)\n", "is not a user name"),
        ("Match host\n", "config:1: Match host has no pattern"),
    ],
)
def test_route_reports_mistakes_in_ssh_config(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Unreachable) as caught:
        hops(tmp_path, text, Target("a"))
    assert message in str(caught.value)


def test_load_refuses_a_missing_file_that_was_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match="No such file"):
        load(str(tmp_path / "missing"))


def test_load_accepts_missing_default_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert load("none").lines == ()
    monkeypatch.setattr(ssh_config, "USER_FILE", str(tmp_path / "missing"))
    monkeypatch.setattr(ssh_config, "SYSTEM_FILE", str(tmp_path / "missing too"))
    assert load(None).lines == ()


def test_many_blocks_for_single_names_apply_in_order() -> None:
    """Blocks for single names are found by their name, and still compete in order with blocks for patterns."""
    config = ssh_config.parse(
        "Host web1\n  User first\nHost web*\n  User pattern\n  Port 2201\nHost web1 web2\n  User late\n  Port 1\n"
        "Match originalhost web2\n  IdentityFile /k2\nHost *\n  IdentityFile /all\nHost web2 !web2\n  Port 9\n"
    )
    assert config.lookup("web1").values == {"user": ("first",), "port": ("2201",)}
    assert config.lookup("web2").values == {"user": ("pattern",), "port": ("2201",)}
    assert config.lookup("web2").identity_files == ["/k2", "/all"]
    assert config.lookup("db").values == {}
    assert config.lookup("").identity_files == ["/all"]


def test_the_first_block_that_matches_wins() -> None:
    headers = ["a", "a b", "a*", "?", "* !a", "b !a", "[a]"]
    for chosen in itertools.product(headers, repeat=3):
        lines = [f"Host {patterns}\n  User v{number}\n" for number, patterns in enumerate(chosen)]
        config = ssh_config.parse("".join(lines))
        for host in ("a", "b", "ab", "[a]"):
            fitting = [f"v{n}" for n, text in enumerate(chosen) if ssh_config.matches(tuple(text.split()), host)]
            assert config.lookup(host).get("user") == next(iter(fitting), None), (chosen, host)
