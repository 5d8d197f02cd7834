"""Our reading of an ssh_config, compared with that of `ssh -G`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from statecfg.transport import SshSettings, Target, Unreachable
from statecfg.transport.route import route
from statecfg.transport.ssh_config import ConfigProblem, load, parse
from tests.unit.transport.test_ssh_config import CONFIG, hop

ME = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()

CONFIGS = {
    "hosts": "Host web\n HostName 192.0.2.1\n Port 2200\n User deploy\n IdentityFile ~/.ssh/web\nHost *\n User all\n",
    "first value wins": (
        "User first\nHost web\n User second\n Port 1\nHost w*\n Port 2\n IdentityFile a\n IdentityFile b\n"
    ),
    "negated patterns": "Host * !web\n User others\nHost web,db\n Port 9\nHost !db web\n Port 8\n",
    "tokens": "Host web db\n HostName %h.example.com\n IdentityFile ~/keys/%r@%h:%p\n User u\n",
    "escaped percent sign": "Host web\n HostName a%%b\n",
    "jump hosts": "Host web\n ProxyJump ann@gate:2222,inner\nHost *\n ProxyJump bastion\n",
    "no jump host": "Host web\n ProxyJump none\nHost *\n ProxyJump bastion\n",
    "equals signs": "Host=web\n Port=2222\n User = ann\n HostName\t=\t192.0.2.9\n",
    "double quotes": 'Host "web"\n IdentityFile "/a b/c" \n User "ann"\n',
    "quotes inside a word": 'Host web\n IdentityFile /a" b/"c\n',
    "single quotes": "Host web\n IdentityFile '/a b'\n",
    "backslash": "Host web\n IdentityFile /a\\ b\n",
    "comments": "# one\nHost web # the web\n Port 2222 # two\n IdentityFile /key#1\n",
    "letter case": "HOST web\n hostNAME Box.Example.COM\n pOrT 23\nHost WEB\n User upper\n",
    "match all": "Host db\n User d\nMatch all\n Port 77\n",
    "match host": "Host web\n HostName box\nMatch host web\n Port 1\nMatch host box\n Port 2\nMatch host b*\n User b\n",
    "match original": "Host web\n HostName box\nMatch originalhost box\n Port 1\nMatch originalhost web,db\n Port 2\n",
    "match user": "Match user ann\n Port 5\nHost web\n User ann\nMatch user ann\n Port 6\nMatch user *\n Port 7\n",
    "match local user": f"Match localuser nobody-here\n Port 5\nMatch localuser {ME}\n Port 6\n",
    "match host and user": (
        "Host web\n User ann\nMatch host web user ann\n Port 6\nMatch host web user bob\n IdentityFile k\n"
    ),
    "negated match": "Match !host web\n Port 5\nMatch !user bob host web\n Port 6\n",
    "CRLF line ends": "Host web\r\n Port 2222\r\n",
    "question marks": "Host w?b\n Port 4\nHost we?b\n Port 5\n",
    "included files": "Host db\n Include {dir}/more\nHost web\n Include {dir}/mo*\nHost *\n User late\n",
}


def by_ssh(config: Path, host: str, user: str | None) -> dict[str, list[str]]:
    login = ["-l", user] if user else []
    done = subprocess.run(["ssh", "-G", "-F", str(config), *login, host], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        word, _, value = line.partition(" ")
        found.setdefault(word, []).append(value)
    return found


@pytest.mark.skipif(not shutil.which("ssh"), reason="not run on this machine: the ssh client is missing")
@pytest.mark.parametrize("user", [None, "ann", "bob"])
@pytest.mark.parametrize("host", ["web", "db", "other"])
@pytest.mark.parametrize("name", CONFIGS)
def test_lookups_match_those_of_ssh(tmp_path: Path, name: str, host: str, user: str | None) -> None:
    config = tmp_path / "config"
    config.write_bytes(CONFIGS[name].replace("{dir}", str(tmp_path)).encode())
    (tmp_path / "more").write_text("User included\nHost web\n  Port 2022\nHost x\n  Port 1\n")
    theirs = by_ssh(config, host, user)
    found = load(str(config)).lookup(host, user)
    assert [found.hostname.lower()] == [h.lower() for h in theirs["hostname"]]
    assert [user or found.get("user") or ME] == theirs["user"]
    assert [found.get("port") or "22"] == theirs["port"]
    if found.identity_files:
        assert [os.path.expanduser(f) for f in found.identity_files] == [
            os.path.expanduser(f) for f in theirs["identityfile"]
        ]
    jump = found.get("proxyjump")
    assert ([jump] if jump and jump != "none" else []) == [j for j in theirs.get("proxyjump", []) if j != "none"]


def test_hops_get_address_port_user_and_keys_from_ssh_config(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host web\n ProxyJump gate\n HostName box\n User u\n IdentityFile /k/%r-%h\nHost gate\n Port 2\n")
    gate, web = route(Target("web"), SshSettings(ssh_config=str(config)))
    assert (gate.host, gate.port, gate.user) == ("gate", 2, ME)
    assert (web.host, web.port, web.user, web.keys) == ("box", 22, "u", ("/k/u-box",))


@pytest.mark.parametrize(
    "word", ["exec true", "!exec true", "host web exec true", "tagged x", "final", "localnetwork 10/8"]
)
def test_unsupported_match_blocks_are_ignored_with_a_warning(tmp_path: Path, word: str) -> None:
    ran = tmp_path / "ran"
    text = f"Match {word}\n  Port 2222\n  User other\nHost *\n  Port 22\n".replace("true", f'"touch {ran}"')
    found = parse(text, "config").lookup("web")
    assert (found.get("port"), found.get("user")) == ("22", None)
    kind = word.replace("host web ", "").split()[0].lstrip("!")
    assert found.warnings == [f"config:1: `Match {kind}` is not supported, so its block is ignored"]
    assert not ran.exists()


def test_an_unsupported_match_for_another_host_gives_no_warning() -> None:
    assert parse('Match host db exec "true"\n  Port 2222\n').lookup("web").warnings == []


def test_a_warning_about_ssh_config_reaches_the_hop(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Match exec true\n  Port 2222\n")
    (hop,) = route(Target("web"), SshSettings(ssh_config=str(tmp_path / "config")))
    assert hop.port == 22
    assert "`Match exec` is not supported" in hop.warnings[0]


@pytest.mark.parametrize("text", ["ProxyCommand nc %h %p\n", "ProxyCommand nc %h %p\nProxyJump gate\n"])
def test_a_proxy_command_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(
        Unreachable, match="ssh_config sets ProxyCommand for it, which statecfg does not support"
    ) as caught:
        route(Target("web"), SshSettings(ssh_config=str(tmp_path / "config")))
    assert caught.value.hint == "Use ProxyJump."


@pytest.mark.parametrize(
    "text", ["ProxyJump gate\nProxyCommand nc %h %p\n", "ProxyCommand none\n", "ProxyJump none\nProxyCommand nc\n"]
)
def test_an_ineffective_proxy_command_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text + "Host gate\n  ProxyJump none\n")
    if text.startswith("ProxyJump gate"):
        text = "Host gate\n  ProxyJump none\nHost *\n  " + text
        (tmp_path / "config").write_text(text)
    assert route(Target("web"), SshSettings(ssh_config=str(tmp_path / "config")))[-1].host == "web"


@pytest.mark.parametrize("text", ['User "open\n', "User 'open\n", 'User a"b\n'])
def test_an_unclosed_quote_is_reported(text: str) -> None:
    with pytest.raises(ConfigProblem, match="ssh_config:1: a quote is not closed"):
        parse(text)


@pytest.mark.parametrize("host", ["web1", "web9", "db", "other", "WEB1"])
def test_routes_match_the_settings_of_openssh(tmp_path: Path, host: str) -> None:
    ssh = shutil.which("ssh")
    assert ssh is not None
    text = CONFIG.replace(' exec "touch /tmp/never"', " exec false")
    mine = hop(tmp_path, text, Target(host))
    said = subprocess.run([ssh, "-G", "-F", str(tmp_path / "config"), host], capture_output=True, text=True, check=True)
    theirs: dict[str, list[str]] = {}
    for row in said.stdout.splitlines():
        word, _, value = row.partition(" ")
        theirs.setdefault(word, []).append(value)
    assert mine.host.lower() == theirs["hostname"][0]
    assert str(mine.port) == theirs["port"][0]
    assert mine.user == theirs["user"][0]
    assert len(mine.keys) == len(theirs["identityfile"])
    assert mine.trust.accept_new == (theirs["stricthostkeychecking"] == ["accept-new"])
    assert mine.only_these_keys == (theirs["identitiesonly"] == ["yes"])
