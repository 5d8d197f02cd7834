"""Firewalls on booted hosts, which have networks of their own: rules come true, are undone, and lock nobody out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

SSH = "  - ufw_rule: ssh\n    port: 22\n    protocol: tcp\n"
ENABLED = '  - ufw: enabled\n    incoming: deny\n    requires: ["ufw_rule:*"]\n'


@pytest.fixture
def site(booted: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()


def added(site: Site) -> list[str]:
    """Return the rules as ufw lists them."""
    return site.host.run(["ufw", "show", "added"]).stdout.splitlines()[1:]


def state(site: Site) -> str:
    """Return everything that ufw stores, and the packet filter's rules without their counters."""
    stored = "cat /etc/ufw/user.rules /etc/ufw/user6.rules /etc/ufw/ufw.conf /etc/default/ufw; ufw status verbose"
    return site.host.run(["sh", "-c", f"{stored}; iptables -S; ip6tables -S"]).stdout


def test_rules_of_ufw_come_true_and_are_undone(site: Site) -> None:
    """The rules are in the order of their names, and the undo restores the former ones at their places."""
    for rule in ("allow 1/tcp", "deny 2/tcp comment two", "allow 3", "route allow from 192.0.2.1 to any port 7"):
        site.host.run(["ufw", *rule.split()])
    site.host.run(["ufw", "limit", "log", "OpenSSH"])
    before = state(site)
    resources = f"""
{SSH}
  - ufw_rule: z-last
    port: 2
    protocol: tcp
    action: reject
  - ufw_rule: no-three
    port: 3
    absent: true
  - ufw_rule: no-profile
    app: OpenSSH
    absent: true
  - ufw_rule: out
    direction: out
    port: 500:510
    protocol: udp
    to_address: 2001:db8::7
    comment: "a comment with blanks, # and é"
  - ufw_rule: in-front
    from_address: 203.0.113.0/24
    action: deny
    first: true
  - ufw_rule: forward
    route: true
    interface: eth0
    out_interface: eth1
    log: all
{ENABLED}"""
    planned = site.come_true(resources)
    assert planned["ufw:enabled"]["outcome"] == "changed"
    assert added(site) == [
        "ufw deny from 203.0.113.0/24",
        "ufw allow 1/tcp",
        "ufw reject 2/tcp",
        "ufw route allow from 192.0.2.1 to any port 7",
        "ufw route allow in on eth0 out on eth1 log-all",
        "ufw allow 22/tcp",
        "ufw allow out to 2001:db8::7 port 500:510 proto udp comment 'a comment with blanks, # and é'",
    ]
    assert "Status: active" in state(site)
    site.say("destroy")
    assert "Status: inactive" in state(site)
    assert [line for line in state(site).splitlines() if line.startswith("### tuple")] == [
        line for line in before.splitlines() if line.startswith("### tuple")
    ]
    for line in before.splitlines():
        assert line.startswith("-") or line in state(site)
    for rule in ("allow 1/tcp", "deny 2/tcp", "allow 3", "limit log OpenSSH"):
        site.host.run(["ufw", "delete", *rule.split()])
    site.host.run(["ufw", "route", "delete", "allow", "from", "192.0.2.1", "to", "any", "port", "7"])


def test_a_rule_that_others_changed_stays(site: Site) -> None:
    site.come_true(SSH + "  - ufw_rule: web\n    port: 80\n")
    site.host.run(["ufw", "deny", "80"])
    site.host.run(["ufw", "delete", "allow", "22/tcp"])
    said = site.say("destroy").out
    assert "the rule in from any to any port 80, IPv4 was changed to deny by others: it stays" in " ".join(said.split())
    assert added(site) == ["ufw deny 80"]
    site.host.run(["ufw", "delete", "deny", "80"])


def test_ufw_that_does_not_answer_is_an_error(site: Site) -> None:
    """It is not taken for a firewall that is off, or for one without rules."""
    site.host.run(["mv", "/usr/sbin/iptables", "/usr/sbin/iptables.away"])
    try:
        report = site.say("plan", "  - ufw: disabled\n", code=1).out
        assert "ufw does not say whether the firewall is active" in " ".join(report.split())
    finally:
        site.host.run(["mv", "/usr/sbin/iptables.away", "/usr/sbin/iptables"])


# Rules that keep the controller out


def test_a_firewall_that_prevents_logins_is_switched_off_again(site: Site) -> None:
    """Established connections pass, so the run itself goes on: only a new login shows that nobody can log in."""
    report = site.report(
        "apply",
        "  - ufw: enabled\n    incoming: deny\n  - file: /srv/later\n    requires: ['ufw:enabled']\n    content: x\n",
        code=1,
    )
    found = nodes(report)
    assert "no new login after a change of the firewall" in found["ufw:enabled"]["reason"]
    assert "The previous state was restored, and a new login works" in found["ufw:enabled"]["reason"]
    assert found["file:/srv/later"]["outcome"] == "skipped"
    assert report["login"] == {"ok": True}
    assert "Status: inactive" in state(site) and "ENABLED=no" in state(site)
    assert site.host.ssh(["true"]).returncode == 0


def test_a_rule_that_prevents_logins_is_deleted_again(site: Site) -> None:
    """So is a removal that would prevent them: the rule is managed again."""
    site.come_true(SSH + ENABLED)
    deny = "  - ufw_rule: nobody\n    from_address: 0.0.0.0/0\n    action: deny\n    first: true\n"
    report = site.report("apply", SSH + deny + ENABLED, code=1)
    assert "a new login works" in nodes(report)["ufw_rule:nobody"]["reason"]
    assert added(site) == ["ufw allow 22/tcp"] and "Status: active" in state(site)
    only = "  - ufw: enabled\n    incoming: deny\n"
    report = site.report("prune", only, code=1)
    assert added(site) == ["ufw allow 22/tcp"]
    site.come_true(SSH + ENABLED)
    site.say("destroy")
    assert "Status: inactive" in state(site) and added(site) == ["(None)"]


# nftables

INCLUDE = '  - line_in_file: /etc/nftables.conf\n    provides: include\n    line: include "/etc/nftables.d/*.nft"\n'


def table(rules: str, name: str = "site") -> str:
    """Return a playbook with a table of nftables."""
    chain = "chain input {\n      type filter hook input priority 0; policy drop;\n"
    body = "".join(f"      {rule}\n" for rule in rules.split("; "))
    return f"{INCLUDE}  - nftables: {name}\n    requires: [include]\n    content: |\n      {chain}{body}      }}\n"


def listed(site: Site) -> str:
    return site.host.run(["nft", "--stateless", "list", "table", "inet", "site"], check=False).stdout


PASS = "ct state established,related accept; iifname lo accept; tcp dport 22 accept"


def test_a_table_of_nftables_comes_true_and_is_undone(site: Site) -> None:
    """The host's own table and file come back, and the rules that the file makes at boot are those that run."""
    site.come_true(table(PASS))
    assert "tcp dport 22 accept" in listed(site)
    running = listed(site)
    site.host.run(["nft", "--file", "/etc/nftables.conf"])
    assert listed(site) == running
    site.host.run(["nft", "add", "rule", "inet", "site", "input", "tcp", "dport", "23", "accept"])
    planned = nodes(site.report("plan"))["nftables:site"]
    assert "-\t\ttcp dport 23 accept" in planned["changes"][0]["diff"]
    site.come_true(table(PASS + "; counter"))
    site.say("destroy")
    assert not listed(site) and not site.host.path("/etc/nftables.d").exists()
    site.host.run(["nft", "add", "table", "inet", "site"])
    site.host.run(["nft", "add", "chain", "inet", "site", "former"])
    site.come_true(table(PASS))
    assert "former" not in listed(site)
    site.say("destroy")
    assert "chain former" in listed(site)
    site.come_true(table(PASS))
    site.host.run(["nft", "add", "chain", "inet", "site", "foreign"])
    said = site.say("destroy").out
    assert "others changed the table inet site: it stays" in " ".join(said.split())
    assert "chain foreign" in listed(site)
    site.host.run(["nft", "delete", "table", "inet", "site"])


def test_rules_that_nft_refuses_change_nothing(site: Site) -> None:
    failed = nodes(site.report("plan", table("tcp dport ssh-or-so accept"), code=1))["nftables:site"]
    assert "nft refuses the rules: line 7" in failed["reason"]


def test_a_table_with_which_another_file_is_wrong_is_taken_back(site: Site) -> None:
    """At the next boot, nft would load no rules at all."""
    site.come_true(table(PASS + "; }; chain more {"))
    before = site.host.read("/etc/nftables.d/site.nft")
    site.host.write("/etc/nftables.d/zz.nft", "add rule inet site more accept\n")
    try:
        failed = nodes(site.report("apply", table(PASS), code=1))["nftables:site"]
        assert "nft refuses the new configuration, and the former one is restored" in failed["reason"]
        assert "zz.nft" in failed["reason"]
        assert site.host.read("/etc/nftables.d/site.nft") == before
        site.host.run(["nft", "--check", "--file", "/etc/nftables.conf"])
    finally:
        site.host.run(["rm", "/etc/nftables.d/zz.nft"])


def test_a_table_that_cuts_the_connection_is_taken_back(site: Site) -> None:
    """The run loses its connection. The host restores the former rules by itself, so the next run works.

    It restarts nothing else: a restart of sshd refuses new connections for a moment.
    """
    site.come_true(table(PASS))
    before, sshd = listed(site), site.host.listener
    site.say("apply", table("tcp dport 80 accept"), code=None)
    assert listed(site) == before
    assert "dport 80" not in site.host.read("/etc/nftables.d/site.nft")
    assert site.host.ssh(["true"]).returncode == 0
    assert site.host.listener == sshd
    site.come_true(table(PASS))


def test_nft_that_does_not_answer_is_an_error_of_the_node(site: Site) -> None:
    """It is not taken for a host without tables, and the other nodes of the run are not affected."""
    nft, away = "/usr/sbin/nft", "/usr/sbin/nft.away"
    site.host.run(["mv", nft, away])
    site.host.write(nft, "#!/bin/sh\necho 'netlink: Error: Operation not permitted' >&2\nexit 1\n", 0o755)
    other = "  - file: /srv/other\n    content: x\n"
    try:
        gone = "  - nftables: site\n    absent: true\n"
        found = nodes(site.report("apply", gone + other, "--keep-going", code=1))
        assert "nft does not print the running rules: netlink: Error" in found["nftables:site"]["reason"]
        assert found["file:/srv/other"]["outcome"] == "changed"
    finally:
        site.host.run(["mv", away, nft])


def test_many_layers_of_rules_need_few_logins(site: Site) -> None:
    """The controller allows 20 logins in one run. One login at the end of the run tests the last layers."""
    site.come_true(SSH + ENABLED)
    rules = "".join(
        f"  - ufw_rule: r{number}\n    port: {4000 + number}\n    requires: [ufw_rule:r{number - 1}]\n"
        for number in range(1, 22)
    )
    first = "  - ufw_rule: r0\n    port: 4000\n"
    report = site.report("apply", SSH + first + rules)
    assert report["status"] == "ok" and report["login"] == {"ok": True}
    assert len(added(site)) == 23


def test_a_file_that_the_service_loads_is_taken_back(site: Site) -> None:
    """The node changes only the file. The service that loads it locks out, so both are undone."""
    site.host.write("/etc/nftables.conf", 'flush ruleset\ninclude "/etc/nftables.d/*.nft"\n')
    site.come_true(table(PASS).replace("    content:", "    running: false\n    content:"))
    before = site.host.read("/etc/nftables.d/site.nft")
    closed = table("ct state established,related accept").replace("    content:", "    running: false\n    content:")
    service = "  - service: nftables\n    running: true\n    restart_on: ['nftables:site']\n"
    later = "  - file: /srv/after-the-service\n    requires: ['service:nftables']\n    content: x\n"
    found = nodes(site.report("apply", closed + service + later, code=1))
    for name in ("nftables:site", "service:nftables"):
        assert "no new login after a change of the firewall" in found[name]["reason"]
    assert found["file:/srv/after-the-service"]["outcome"] == "skipped"
    assert site.host.read("/etc/nftables.d/site.nft") == before
    assert site.host.ssh(["true"]).returncode == 0
    site.host.run(["systemctl", "stop", "nftables"])


def test_nothing_changes_if_the_state_of_the_firewall_cannot_be_recorded(site: Site) -> None:
    """The checks of these nodes read only files, so only the guard notices it."""
    site.host.run(["mv", "/usr/sbin/iptables", "/usr/sbin/iptables.away"])
    try:
        said = " ".join(site.say("apply", "  - file: /srv/unguarded\n    content: x\n" + SSH, code=1).out.split())
        assert "nothing was changed: the state that a failed login would restore can't be recorded" in said
        assert "ufw does not say whether the firewall is active" in said and "ufw_rule:ssh" in said
    finally:
        site.host.run(["mv", "/usr/sbin/iptables.away", "/usr/sbin/iptables"])
    assert not site.host.path("/srv/unguarded").exists()
    assert added(site) == ["(None)"]
    site.host.write("/etc/nftables.d/site.nft", "table inet site {}\n")
    nft, away = "/usr/sbin/nft", "/usr/sbin/nft.away"
    site.host.run(["mv", nft, away])
    site.host.write(nft, "#!/bin/sh\nexit 1\n", 0o755)
    try:
        said = site.say("apply", "  - nftables: site\n    running: false\n    absent: true\n", code=1).out
        assert "nothing was changed" in " ".join(said.split())
    finally:
        site.host.run(["mv", away, nft])
    assert site.host.path("/etc/nftables.d/site.nft").exists()
    site.host.run(["rm", "-r", "/etc/nftables.d"])
