"""The login of statecfg itself: plans that would take it away fail, and what breaks it nevertheless is restored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
USER = "worker"
HOME = f"/home/{USER}"
KEYS = f"{HOME}/.ssh/authorized_keys"


@pytest.fixture
def site(light_host: Host, tmp_path: Path) -> Iterator[Site]:
    """Give a project whose user logs in with a key and becomes root with sudo."""
    key = light_host.identity.with_suffix(".pub").read_text()
    light_host.run(["sh", "-c", f"id {USER} 2>/dev/null || useradd -m -s /bin/sh {USER}"])
    light_host.run(["install", "-d", "-o", USER, "-g", USER, "-m", "0700", f"{HOME}/.ssh"])
    light_host.write(KEYS, key)
    light_host.run(["chown", f"{USER}:{USER}", KEYS])
    light_host.run(["chmod", "0755", HOME])
    light_host.run(["usermod", "-s", "/bin/sh", "-e", "", USER])
    light_host.write("/etc/sudoers.d/worker", f"{USER} ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    found = Site(light_host, tmp_path, "/srv")
    found.options = [*found.options, "--user", USER, "--become"]
    yield found
    light_host.run(["rm", "-f", "/etc/sudoers.d/worker"])


LOCKED_OUT = {
    "keys": (f"authorized_key: all, user: {USER}, all_keys: ['{KEY} ann']", "sshd would no longer find its key"),
    "file": (f'file: {KEYS}, content: "{KEY} ann\\n"', "sshd would no longer find its key"),
    "removed": (f"file: {KEYS}, absent: true", "sshd would no longer find its key"),
    "nologin": (f"user: {USER}, shell: /usr/sbin/nologin", "/usr/sbin/nologin is no login shell"),
    "expired": (f"password_aging: {USER}, expires: '2020-01-01'", "the account has expired on 2020-01-01"),
    "home": (f"directory: {HOME}, mode: '0777'", f"group or others may write {HOME}, mode 0777 (StrictModes)"),
    "sudo gone": (f"sudoers: {USER}, absent: true", f"sudo would not allow {USER} to become root"),
    "sudo less": (
        f"sudoers: {USER}, users: [{USER}], commands: [/usr/bin/id], password: false",
        f"sudo would not allow {USER} to become root",
    ),
    "sudo asks": (f"sudoers: {USER}, users: [{USER}], commands: [ALL]", f"sudo would ask {USER} for a password"),
    "moved": (f"user: {USER}, home: /home/elsewhere", "sshd would no longer find its key"),
    "no logins": ("file: /etc/nologin, content: maintenance", "/etc/nologin lets only root log in"),
    "refused": (
        'line_in_file: /etc/ssh/sshd_config, line: "DenyUsers worker"',
        f"(DenyUsers {USER})",
    ),
    "allowed": ('line_in_file: /etc/ssh/sshd_config, line: "AllowGroups root"', "AllowGroups root"),
    "no keys": ('line_in_file: /etc/ssh/sshd_config, line: "PubkeyAuthentication no"', "pubkeyauthentication no"),
    "other keys": (
        'line_in_file: /etc/ssh/sshd_config, line: "AuthorizedKeysFile /k/%u"',
        "would no longer find its key",
    ),
    "wrong": ('line_in_file: /etc/ssh/sshd_config, line: "Garbage yes"', "Bad configuration option: Garbage"),
    "host key": ("remove: /etc/ssh/ssh_host_ed25519_key", "sshd would not have the host key"),
    "sudo's mode": ("file: /usr/bin/sudo, mode: '0755'", "would not be a set-user-ID program of root"),
    "shell's mode": ("file: /usr/bin/dash, mode: '0644'", "the shell /bin/sh is not executable"),
    "way": ("directory: /usr/bin, mode: '0700'", "users could not enter /usr/bin, mode 0700"),
    "mount": ("mount: /home, source: none, fstype: tmpfs", "what is mounted on /home hides its keys"),
    "gone": (f"user: {USER}, absent: true", f"the user {USER} would not exist"),
}


@pytest.mark.parametrize("case", LOCKED_OUT)
def test_a_plan_that_would_lock_out_fails(site: Site, case: str) -> None:
    node, reason = LOCKED_OUT[case]
    for verb in ("plan", "apply"):
        (found,) = nodes(site.report(verb, f"  - {{{node}}}\n", code=1)).values()
        assert found["outcome"] == "failed" and reason in found["reason"]
        assert f"statecfg logs in as {USER}" in found["reason"] and "allow_lockout: true" in found["reason"]
    (found,) = nodes(site.report("plan", f"  - {{{node}, allow_lockout: true}}\n")).values()
    assert found["outcome"] == "changed"
    assert site.host.read(KEYS) == site.host.identity.with_suffix(".pub").read_text()


@pytest.mark.parametrize("node", [f"user: {USER}, groups: [], exact_groups: true", "group: sudo, members: []"])
def test_a_group_that_gives_sudo_is_not_lost(site: Site, node: str) -> None:
    site.host.run(["usermod", "-aG", "sudo", USER])
    site.host.write("/etc/sudoers.d/worker", "%sudo ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    (found,) = nodes(site.report("plan", f"  - {{{node}}}\n", code=1)).values()
    site.host.run(["gpasswd", "-d", USER, "sudo"])
    assert f"sudo would not allow {USER} to become root" in found["reason"]


def test_what_keeps_the_login_is_applied(site: Site) -> None:
    key = site.host.identity.with_suffix(".pub").read_text().strip()
    site.come_true(
        f"  - {{authorized_key: all, user: {USER}, all_keys: ['{KEY} ann', '{key}']}}\n"
        f"  - {{user: {USER}, comment: A worker}}\n"
        f"  - {{sudoers: {USER}, users: [{USER}], commands: [ALL], password: false}}\n"
        f"  - {{directory: {HOME}, mode: '0750'}}\n"
        f"  - {{password_aging: {USER}, expires: '2199-01-01'}}\n"
    )
    site.say("destroy")


def test_what_breaks_the_login_nevertheless_is_restored(site: Site) -> None:
    """A restriction by address can't be judged in the plan. The new login shows it, and the former line is back."""
    key = site.host.identity.with_suffix(".pub").read_text()
    restricted = """restrictions: ['from="192.0.2.1"']"""
    text = f"  - {{authorized_key: own, user: {USER}, key: {' '.join(key.split()[:2])}, {restricted}}}\n"
    (node,) = nodes(site.report("plan", text)).values()
    assert node["outcome"] == "changed"
    (node,) = nodes(site.report("apply", text, code=1)).values()
    assert f"no new login after a change of the login of {USER}" in node["reason"]
    assert "The previous state was restored, and a new login works" in node["reason"]
    assert site.host.read(KEYS) == key


@pytest.mark.parametrize(
    "node",
    [
        f"replace: /etc/passwd, pattern: '^{USER}:x:[0-9]+', replacement: '{USER}:x:54321'",
        f"directory: {HOME}, mode: '0000'",
        'file: /etc/nsswitch.conf, content: "passwd: none\\n"',
    ],
)
def test_accounts_that_no_login_finds_are_restored(site: Site, node: str) -> None:
    (found,) = nodes(site.report("apply", f"  - {{{node}}}\n", code=1)).values()
    assert "The previous state was restored, and a new login works" in found["reason"]
    (found,) = nodes(site.report("plan", f"  - {{{node}}}\n")).values()
    assert found["outcome"] == "changed"


def test_a_login_shell_that_is_no_shell_does_not_repeat_the_program(site: Site) -> None:
    site.host.run(["usermod", "-s", "/usr/bin/python3", USER])
    site.options = site.options[:-1]  # without --become
    error = site.report("plan", "  - {directory: /tmp/x}\n", code=None)["error"]
    assert "SyntaxError" in error["summary"] and "its login shell is a shell" in error["hint"]
    assert "statecfg-bootstrap" not in error["summary"] and len(error["summary"]) < 300
