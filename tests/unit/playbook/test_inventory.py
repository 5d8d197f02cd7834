"""Inventories: groups of hosts, precedence of variables, and mistakes."""

from __future__ import annotations

import pytest

from statecfg.dialects import yaml_inventory, yaml_text
from statecfg.playbook.inventory import Inventory
from statecfg.problems import InvalidInput
from statecfg.problems.tokens import shown
from tests.each import each

TEXT = """\
hosts:
  web1: {address: 192.0.2.1, port: 2222, user: deploy, key: [~/.ssh/a, /k], become: true, vars: {port: 1}}
  web2:
  web10: {jump: "bastion,ops@other:22", become: doas, become_user: app, python: /usr/bin/python3}
  db1: {transport: local}
groups:
  all: {vars: {port: 0, zone: none}}
  site: {groups: [web], vars: {port: 3, level: site}}
  web: {hosts: [web1, web2, web10], vars: {port: 2}}
  eu: {hosts: [web2, db1], vars: {zone: eu}}
"""


def read(text: str) -> Inventory:
    return yaml_inventory.parse(yaml_text.parse(text, "inventory.yml", "hosts"), "inventory.yml")


def refused(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(text)
    return [
        f"{item.code} {' '.join(map(str, item.locations))} {item.detail} ({item.help})"
        for item in caught.value.problems
    ]


def test_hosts_have_their_address_login_and_groups():
    known = read(TEXT)
    web1 = known.hosts["web1"]
    assert (web1.address, web1.port, web1.login.user, web1.login.become) == ("192.0.2.1", 2222, "deploy", "sudo")
    assert web1.login.identity_files == ("~/.ssh/a", "/k")
    assert web1.groups == ("site", "web")
    assert str(web1.position) == "inventory.yml:2:3"
    assert known.hosts["web2"].address == "web2"
    web10 = known.hosts["web10"]
    assert (web10.proxy_jump, web10.login.become, web10.login.become_user) == ("bastion,ops@other:22", "doas", "app")
    assert known.hosts["db1"].transport == "local"


def test_who_won_names_value_and_line_of_each_variable():
    known = read(TEXT)
    won = {
        name: {key: f"{value} {place.line}" for key, (value, place) in known.who_won(name).items()}
        for name in known.hosts
    }
    assert won["web1"] == {"port": "1 2", "zone": "none 7", "level": "site 8"}
    assert won["web2"] == {"port": "2 9", "zone": "eu 10", "level": "site 8"}
    assert won["db1"] == {"port": "0 7", "zone": "eu 10"}
    assert known.hosts["web2"].vars == {"port": 2, "zone": "eu", "level": "site"}


@each(
    ("pattern", "hosts"),
    [
        ("all", "web1 web2 web10 db1"),
        ("web", "web1 web2 web10"),
        ("site", "web1 web2 web10"),
        ("web2,web1", "web1 web2"),
        ("web2:db1", "web2 db1"),
        ("web*", "web1 web2 web10"),
        ("web?", "web1 web2"),
        ("web[12]", "web1 web2"),
        ("~^web[0-9]$", "web1 web2"),
        ("~a{1,1}b$,web1", None),
        ("web:&eu", "web2"),
        ("web:!eu", "web1 web10"),
        ("!eu:web", "web1 web10"),
        ("!web", "db1"),
        ("!~web", "db1"),
        ("@local", "@local"),
        ("web1,@local", "web1 @local"),
        ("eu , web1", "web1 web2 db1"),
    ],
)
def test_pattern_selects_hosts_in_inventory_order(pattern, hosts):
    if hosts is None:
        with pytest.raises(InvalidInput):
            read(TEXT).select(pattern)
    else:
        assert " ".join(host.name for host in read(TEXT).select(pattern)) == hosts


@each(
    ("pattern", "limit", "code", "words"),
    [
        ("wbe", None, "SC0406", "did you mean `web`"),
        ("web:!web", None, "SC0406", "which remove hosts"),
        ("web:!tpyo", None, "SC0406", ""),
        ("web,", None, "SC0407", "single commas"),
        ("", None, "SC0407", ""),
        ("web::eu", None, "SC0407", ""),
        ("~we(b", None, "SC0407", ""),
        ("x*", None, "SC0406", ""),
        ("web", "nothing", "SC0406", ""),
        ("web", "db1", "SC0406", "its hosts: web1"),
        ("web", "", "SC0407", ""),
    ],
)
def test_invalid_or_unmatched_patterns_are_refused(pattern, limit, code, words):
    with pytest.raises(InvalidInput) as caught:
        read(TEXT).select(pattern, limit)
    assert {item.code for item in caught.value.problems} == {code}
    assert any(words in item.help for item in caught.value.problems)


def test_invalid_regular_expression_is_reported_with_its_position():
    with pytest.raises(InvalidInput, match=r"`we\(b` is invalid at character 3"):
        read(TEXT).select("~we(b")


def test_limit_narrows_the_selected_hosts():
    known = read(TEXT)
    assert [host.name for host in known.select("web", "eu")] == ["web2"]
    assert [host.name for host in known.select("all", "web1,db1")] == ["web1", "db1"]
    assert known.select("web", "db1", empty_ok=True) == []
    assert [host.name for host in known.select("@local", "@local")] == ["@local"]


def test_without_an_inventory_only_the_local_host_exists():
    known = Inventory()
    local = known.select("@local")[0]
    assert (local.name, local.transport) == ("@local", "local")
    with pytest.raises(InvalidInput, match="-i"):
        known.select("web")


def test_local_host_may_have_variables():
    known = read('hosts:\n  "@local": {vars: {x: 1}, python: /usr/bin/python3}\n')
    local = known.select("@local")[0]
    assert (local.transport, local.vars, local.python) == ("local", {"x": 1}, "/usr/bin/python3")


def test_inventory_reports_all_mistakes_together():
    found = refused(
        "hosts:\n"
        "  web1: {adress: a, port: 99999, become: maybe}\n"
        "  -oProxyCommand=x: {}\n"
        "  a b: {}\n"
        "  web2: {address: '-x', user: 'a;b', port: '22', python: python3, vars: [1]}\n"
        "  web3: {port: true, transport: telnet, jump: 'a b'}\n"
        "grups: {}\n"
    )
    starts = [item.split(" ")[0] + " " + item.split(" ")[1] for item in found]
    assert starts == [
        "SC0311 inventory.yml:2:10",
        "SC0405 inventory.yml:2:27",
        "SC0405 inventory.yml:2:42",
        "SC0401 inventory.yml:3:3",
        "SC0401 inventory.yml:4:3",
        "SC0405 inventory.yml:5:19",
        "SC0405 inventory.yml:5:31",
        "SC0405 inventory.yml:5:44",
        "SC0405 inventory.yml:5:58",
        "SC0310 inventory.yml:5:73",
        "SC0405 inventory.yml:6:16",
        "SC0405 inventory.yml:6:33",
        "SC0405 inventory.yml:6:47",
        "SC0311 inventory.yml:7:1",
    ]
    assert "did you mean `groups`" in found[-1]
    assert "did you mean `address`" in found[0]


def test_inventory_refuses_cycles_of_groups():
    text = "groups:\n  a: {groups: [b]}\n  b: {groups: [c]}\n  c: {groups: [a]}\n"
    places = "inventory.yml:2:16 inventory.yml:3:16 inventory.yml:4:16"
    assert refused(text) == [f"SC0402 {places} a → b → c → a (remove one of these groups from the group before it)"]
    assert refused("groups: {a: {groups: [a]}}")[0].startswith("SC0402 inventory.yml:1:23 a → a")


def test_group_may_not_have_the_name_of_a_host():
    found = refused("hosts: {web: {}, w2: {}}\ngroups:\n  web: {hosts: [w2]}\n  w2: {hosts: [w2], groups: [web]}\n")
    assert found[0].startswith("SC0403 inventory.yml:3:3 inventory.yml:1:9")
    assert found[1].startswith("SC0403 inventory.yml:4:3 inventory.yml:1:18")


def test_group_may_have_the_name_of_its_only_host():
    known = read("hosts: {web: {}, w2: {}}\ngroups:\n  web: {hosts: [web], vars: {a: 1}}\n  all: {}\n")
    assert [host.name for host in known.select("web")] == ["web"] and known.hosts["web"].vars == {"a": 1}
    assert [host.name for host in known.select("all:!web")] == ["w2"]


def test_unknown_members_of_a_group_are_refused():
    found = refused("hosts: {web1: {}}\ngroups: {a: {hosts: [wbe1], groups: [b]}}\n")
    assert ["did you mean `web1`" in found[0], found[1][:6]] == [True, "SC0404"]


def test_groups_with_conflicting_variables_are_refused():
    text = "hosts: [w]\ngroups:\n  a: {hosts: [w], vars: {x: 1}}\n  b: {hosts: [w], vars: {x: 2}}\n"
    assert refused(text)[0].startswith("SC0408 inventory.yml:3:29 inventory.yml:4:29")
    assert read(text.replace("x: 2", "x: 1")).hosts["w"].vars == {"x": 1}
    assert read(text.replace("hosts: [w]\n", "hosts: {w: {vars: {x: 3}}}\n", 1)).hosts["w"].vars == {"x": 3}


def test_variables_of_a_host_may_be_secrets(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "correct horse")
    found = read("hosts: {db: {vars: {password: !secret {env: DB_PASSWORD}}}}").hosts["db"].vars["password"]
    assert (repr(found), found.reveal()) == (shown("DB_PASSWORD"), "correct horse")
    monkeypatch.delenv("DB_PASSWORD")
    assert refused("hosts: {db: {vars: {password: !secret {env: DB_PASSWORD}}}}")[0].startswith(
        "SC0420 inventory.yml:1:31"
    )


def test_large_inventory_can_be_read_and_selected():
    names = [f"h{n}" for n in range(3000)]
    text = "hosts: [" + ", ".join(names) + "]\ngroups: {a: {hosts: [" + ", ".join(names) + "], vars: {x: 1}}}"
    assert len(read(text).select("a:!h1")) == 2999


def test_inventory_without_hosts_is_named_as_the_cause():
    for pattern in ("all", "!web1", "web"):
        with pytest.raises(InvalidInput) as caught:
            Inventory().select(pattern)
        (found,) = caught.value.problems
        assert found.code == "SC0406" and "matches nothing: the inventory has no hosts" in found.detail
        assert found.help == "pass an inventory with -i, or use @local for this machine"


def test_pattern_without_a_match_is_a_problem():
    with pytest.raises(InvalidInput, match="hosts `wbe` matches no host and no group"):
        read(TEXT).select("wbe")


def test_limit_that_excludes_every_host_names_the_pattern():
    with pytest.raises(InvalidInput, match="--limit `db1` excludes every host of `web1`"):
        read(TEXT).select("web1", "db1")


def test_unknown_host_of_a_group_can_be_corrected_or_added():
    helps = {
        "hosts: [web1, base]\ngroups: {web: {hosts: [wbe1]}}\n": ("did you mean `web1`? Otherwise add it to `hosts:`"),
        "hosts: [web1]\ngroups: {web: {hosts: [other]}}\n": "add it to `hosts:`; available: web1",
        "hosts: []\ngroups: {web: {hosts: [other]}}\n": "add it to `hosts:`",
    }
    for text, help_text in helps.items():
        with pytest.raises(InvalidInput) as caught:
            read(text)
        assert caught.value.problems[0].help == help_text


def test_this_machine_is_suggested_once():
    with pytest.raises(InvalidInput) as caught:
        read("hosts: ['@local', web1]\n").host("other")
    assert caught.value.problems[0].help == "available: @local, web1"
