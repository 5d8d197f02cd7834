"""Whether the system uses what nodes define: each case has a source that wins, on a real host with real programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


class Won(NamedTuple):
    """A source that wins over a node.

    :param path: its file
    :param text: the file's content
    :param node: the node, in YAML
    :param reason: what the plan and the apply say
    """

    path: str
    text: str
    node: str
    reason: str


SSHD = "{sshd_config: 50-effect, settings: {MaxAuthTries: 3}"
SUDO = "{sudoers: effect, users: [games], commands: [/usr/bin/id], password: false"
WON = {
    "sshd": Won(
        "/etc/ssh/sshd_config.d/10-a.conf", "# theirs\nMaxAuthTries 9\n", SSHD, "line 2 of {path} (MaxAuthTries 9)"
    ),
    "sudo": Won("/etc/sudoers.d/zz", "games ALL=(ALL) /usr/bin/\n", SUDO, "line 1 of {path}"),
    "denied": Won(
        "/etc/sudoers.d/zz", "ALL ALL=(ALL) !/usr/bin/id\n", SUDO, "sudo denies games /usr/bin/id: line 1 of {path}"
    ),
    "kernel": Won(
        "/etc/sysctl.d/99-zz.conf",
        "vm/swappiness=60\n",
        "{sysctl: vm.swappiness, value: 10, running: false",
        "vm.swappiness is 60 at boot: line 1 of {path}",
    ),
    "limits": Won(
        "/etc/security/limits.d/zz.conf",
        "games - core unlimited\n",
        "{limits: effect, domain: games, hard: {core: 0}",
        "core of games is unlimited: line 1 of {path}",
    ),
    "hosts": Won(
        "/etc/hosts",
        "127.0.0.1 localhost\n192.0.2.99 db1\n",
        "{host_entry: 192.0.2.11, names: [db1]",
        "db1 is 192.0.2.99 on this host: line 2 of {path}",
    ),
    "ssh": Won(
        "/etc/ssh/ssh_config",
        "Host *\n  ServerAliveInterval 5\nInclude /etc/ssh/ssh_config.d/*.conf\n",
        "{ssh_config: 50-effect, settings: {ServerAliveInterval: 30}",
        "ssh uses serveraliveinterval 5: line 2 of {path}",
    ),
    "apt": Won(
        "/etc/apt/preferences.d/00-a",
        "Package: dash\nPin: release a=*\nPin-Priority: 5\n",
        "{apt_pin: effect, packages: [da*], pin: release a=*, priority: 900",
        "apt gives dash the priority 5: line 1 of {path} (Package: dash) comes first",
    ),
    "locale": Won(
        "/etc/environment",
        "LC_ALL=POSIX\n",
        "{locale: C.UTF-8, default_for: [LANG]",
        "sessions use POSIX for LANG: line 1 of {path}",
    ),
    "keys": Won(
        "/etc/ssh/sshd_config.d/10-a.conf",
        "Match User games\n  AuthorizedKeysFile /etc/ssh/keys/%u\n",
        f"{{authorized_key: ann, user: games, key: {KEY}",
        "for games it reads /etc/ssh/keys/games, because of line 2 of {path}",
    ),
}


@pytest.fixture
def site(light_host: Host, tmp_path: Path) -> Iterator[Site]:
    main = light_host.read("/etc/ssh/sshd_config")
    if not main.startswith("Include"):
        light_host.write("/etc/ssh/sshd_config", f"Include /etc/ssh/sshd_config.d/*.conf\n{main}")
    light_host.run(["mkdir", "-p", "/etc/ssh/sshd_config.d", "/etc/sysctl.d", "/usr/games", "/run/sshd"])
    light_host.run(["mkdir", "-p", "/etc/ssh/ssh_config.d", "/etc/apt/preferences.d", "/etc/default"])
    if not light_host.path("/etc/ssh/ssh_config").exists():
        light_host.write("/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\n")
    found = Site(light_host, tmp_path, "/srv")
    yield found
    found.clean()


@pytest.mark.parametrize("won", WON.values(), ids=WON)
def test_another_source_wins(site: Site, won: Won) -> None:
    """The plan and the apply name it. Accepted, the node is applied; without the other source, it comes true."""
    existed = site.host.path(won.path).exists()
    before = site.host.read(won.path) if existed else ""
    site.host.write(won.path, won.text)
    try:
        for verb in ("plan", "apply"):
            (node,) = nodes(site.report(verb, f"  - {won.node}}}\n", code=1)).values()
            assert node["outcome"] == "failed" and "allow_override: true accepts that" in node["reason"]
            assert won.reason.format(path=won.path) in node["reason"]
        site.come_true(f"  - {won.node}, allow_override: true}}\n")
        (node,) = nodes(site.report("plan", f"  - {won.node}}}\n", code=1)).values()
        assert won.reason.format(path=won.path) in node["reason"]
    finally:
        if existed:
            site.host.write(won.path, before)
        else:
            site.host.run(["rm", won.path])
    site.say("destroy")
    site.come_true(f"  - {won.node}}}\n")


def test_the_apply_notices_what_its_plan_could_not_know(site: Site) -> None:
    """A command writes the file that wins after the plan. The apply asks again at its end."""
    text = "  - command: late\n    shell: echo 'MaxAuthTries 9' > /etc/ssh/sshd_config.d/10-a.conf\n"
    text += "    creates: /etc/ssh/sshd_config.d/10-a.conf\n"
    planned = nodes(site.report("plan", f"{text}  - {SSHD}}}\n"))
    assert {node["outcome"] for node in planned.values()} == {"changed"}
    applied = nodes(site.report("apply", code=1))
    site.host.run(["rm", "/etc/ssh/sshd_config.d/10-a.conf"])
    reason = applied["sshd_config:50-effect"]["reason"]
    assert "sshd uses maxauthtries 9: line 1 of /etc/ssh/sshd_config.d/10-a.conf" in reason


def test_of_two_lines_with_a_key_one_stays_and_is_restricted(site: Site) -> None:
    path = "/usr/games/.ssh/authorized_keys"
    site.host.run(["install", "-d", "-o", "games", "-m", "0700", "/usr/games/.ssh"])
    before = f"{KEY} first\nssh-rsa AAAA other\n{KEY} second\n"
    site.host.write(path, before)
    site.come_true(f"  - {{authorized_key: ann, user: games, key: {KEY}, restrictions: [restrict]}}\n")
    assert site.host.read(path) == f"restrict {KEY} ann\nssh-rsa AAAA other\n"
    site.say("destroy")
    assert site.host.read(path) == before
    site.host.run(["rm", "-r", "/usr/games/.ssh"])


@pytest.mark.parametrize("when", ["plan", "apply"])
def test_a_rule_that_breaks_the_whole_configuration_is_refused(site: Site, when: str) -> None:
    """The file alone is right, but an alias has two definitions, or a log file two rules.

    If the plan creates a user, the program can't tell in the plan: the apply takes the rule back.
    """
    later = '    requires: ["user:effect"]\n  - user: effect\n' if when == "apply" else ""
    site.host.write("/etc/sudoers.d/aliases", "User_Alias OPS = games\n", 0o440)
    rule = f'  - sudoers: ops\n    content: "User_Alias OPS = root\\n"\n{later}'
    node = nodes(site.report(when, rule, code=1))["sudoers:ops"]
    site.host.run(["rm", "/etc/sudoers.d/aliases"])
    assert refused("visudo", when) in reason(node)
    assert "OPS" in reason(node) and not site.host.path("/etc/sudoers.d/ops").exists()
    site.say("destroy")
    if site.host.run(["sh", "-c", "command -v logrotate"], check=False).returncode:
        return
    site.host.write("/etc/logrotate.d/a", "/var/log/effect.log {\n  rotate 2\n}\n")
    text = f"  - logrotate: effect\n    paths: [/var/log/effect.log]\n    directives: [rotate 3, missingok]\n{later}"
    node = nodes(site.report(when, text, code=1))["logrotate:effect"]
    site.host.run(["rm", "/etc/logrotate.d/a"])
    assert refused("logrotate", when) in reason(node)
    assert "duplicate log entry for /var/log/effect.log" in reason(node)
    assert not site.host.path("/etc/logrotate.d/effect").exists()


def refused(program: str, when: str) -> str:
    restored = ", and the former one is restored" if when == "apply" else ""
    return f"{program} refuses the new configuration{restored}: "


def reason(node: dict[str, Any]) -> str:
    return "\n".join([node.get("reason") or "", *(action.get("reason") or "" for action in node["actions"])])
