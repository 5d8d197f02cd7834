"""Settings of SSH servers and clients, and lists of keys, on a booted host: a mistake never locks anybody out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

NODE = "sshd_config:50-test"
PATH = "/etc/ssh/sshd_config.d/50-test.conf"
SERVICE = f'  - service: ssh\n    running: true\n    restart_on: ["{NODE}"]\n'


@pytest.fixture
def site(booted: Host, tmp_path: Path) -> Iterator[Site]:
    main = booted.read("/etc/ssh/sshd_config")
    if "Include" not in main:
        booted.write("/etc/ssh/sshd_config", f"Include /etc/ssh/sshd_config.d/*.conf\n{main}")
        booted.write("/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n")
        booted.run(["mkdir", "-p", "/etc/ssh/sshd_config.d", "/etc/ssh/ssh_config.d"])
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()


def settings(text: str) -> str:
    return f"  - sshd_config: 50-test\n    settings: {text}\n"


def effective(site: Site) -> list[str]:
    return site.host.run(["sshd", "-T"]).stdout.splitlines()


def test_settings_of_the_server_come_true_and_are_undone(site: Site) -> None:
    site.host.write(PATH, "MaxSessions 7\n", 0o600)
    site.come_true(settings("{MaxAuthTries: 3, X11Forwarding: false, AcceptEnv: [A, B]}") + SERVICE)
    assert {"maxauthtries 3", "x11forwarding no", "acceptenv A", "acceptenv B"} <= set(effective(site))
    site.host.write(PATH, "MaxAuthTries 30\n")
    site.come_true(settings("{MaxAuthTries: 3}") + SERVICE)
    limited = "    match: User nobody\n"
    site.come_true(settings("{PermitTTY: false}") + limited + SERVICE)
    shown = site.host.run(["sshd", "-T", "-C", "user=nobody,host=a,addr=192.0.2.1"]).stdout
    assert "permittty no\n" in shown and "permittty yes" in effective(site)
    site.say("destroy")
    assert site.host.read(PATH) == "MaxSessions 7\n"
    assert site.host.path(PATH).stat().st_mode & 0o777 == 0o600
    site.host.run(["rm", PATH])


def test_settings_that_sshd_refuses_are_not_installed(site: Site) -> None:
    """The plan finds it. If a command may change that, the apply finds it, before it writes."""
    site.come_true(settings("{MaxAuthTries: 4}") + SERVICE)
    before = site.host.run(["systemctl", "show", "--value", "--property=InvocationID", "ssh"]).stdout
    wrong = settings("{MaxAuthTries: many}")
    planned = nodes(site.report("plan", wrong + SERVICE, code=1))[NODE]
    assert "sshd refuses the new configuration" in planned["reason"] and "MaxAuthTries" in planned["reason"]
    command = "  - command: before\n    argv: ['true']\n"
    planned = nodes(site.report("plan", command + wrong + "    requires: [command:before]\n" + SERVICE))[NODE]
    assert planned["outcome"] == "unknown"
    failed = nodes(site.report("apply", command + wrong + "    requires: [command:before]\n" + SERVICE, code=1))[NODE]
    reason = failed["reason"]
    assert "sshd refuses the new configuration" in reason and "MaxAuthTries" in reason
    assert site.host.read(PATH).endswith("MaxAuthTries 4\n")
    assert site.host.run(["systemctl", "show", "--value", "--property=InvocationID", "ssh"]).stdout == before
    site.say("destroy", settings("{MaxAuthTries: 4}") + SERVICE)
    site.say("apply", settings("{Ciphers: none-such}"), code=1)
    assert not site.host.path(PATH).exists()


def test_settings_that_lock_out_are_restored_after_the_test_login(site: Site) -> None:
    """sshd accepts these settings, but nobody could log in any more. The lock-out guard restores the former ones."""
    report = site.report("apply", settings("{AllowUsers: nobody}") + SERVICE, code=1)
    service = nodes(report)["service:ssh"]
    assert "no new login after sshd was restarted" in service["reason"]
    assert f"The previous settings were restored ({PATH}), and a new login works" in service["reason"]
    assert not site.host.path(PATH).exists()
    assert site.host.ssh(["true"]).returncode == 0


def test_settings_of_clients_come_true_and_are_undone(site: Site) -> None:
    path = "/etc/ssh/ssh_config.d/50-test.conf"
    node = "  - ssh_config: 50-test\n    host: git.example.org\n    settings: {User: git, Port: 2200}\n"
    site.come_true(node)
    shown = site.host.run(["ssh", "-G", "git.example.org"]).stdout
    assert "user git\n" in shown and "port 2200\n" in shown
    assert "port 22\n" in site.host.run(["ssh", "-G", "other.example.org"]).stdout
    wrong = nodes(site.report("apply", node.replace("2200", "none"), code=1))["ssh_config:50-test"]
    assert "ssh rejects the new content" in wrong["reason"]
    assert "Port 2200" in site.host.read(path)
    site.say("destroy", node)
    assert not site.host.path(path).exists()


def test_a_directory_that_sshd_does_not_include_is_an_error_of_the_plan(site: Site) -> None:
    main = site.host.read("/etc/ssh/sshd_config")
    site.host.write("/etc/ssh/sshd_config", main.replace("Include", "#Include"))
    try:
        failed = nodes(site.report("plan", settings("{MaxAuthTries: 3}"), code=1))[NODE]
        assert "does not include /etc/ssh/sshd_config.d" in failed["reason"]
        include = "  - line_in_file: /etc/ssh/sshd_config\n    provides: include\n    before: ^\n"
        include += "    line: Include /etc/ssh/sshd_config.d/*.conf\n"
        site.come_true(include + settings("{MaxAuthTries: 3}") + "    requires: [include]\n")
        site.say("destroy")
    finally:
        site.host.write("/etc/ssh/sshd_config", main)


def test_a_list_of_all_keys_replaces_others_and_is_undone(site: Site, tmp_path: Path) -> None:
    """A login with a listed key works, one with another key does not."""
    ours = " ".join(site.host.identity.with_suffix(".pub").read_text().split()[:2])
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    site.host.run(["useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", "ann"])
    path = "/home/ann/.ssh/authorized_keys"

    def keys(*lines: str) -> str:
        return "  - authorized_key: ann\n    user: ann\n    all_keys:\n" + "".join(
            f"      - {line}\n" for line in lines
        )

    site.come_true(keys(other, f"no-port-forwarding {ours} tests"))
    assert site.host.ssh(["id", "-un"], user="ann").stdout == "ann\n"
    assert site.host.run(["stat", "-c", "%U %a", path]).stdout == "ann 600\n"
    site.host.write(path, f"{ours}\nssh-rsa AAAA stray\n")
    site.host.run(["chown", "ann:", path])
    site.come_true(keys(other))
    assert site.host.ssh(["true"], user="ann", check=False).returncode == 255
    single = f"  - authorized_key: more\n    user: ann\n    key: {ours}\n"
    assert "manages all of the keys of ann" in site.say("plan", keys(other) + single, code=5).err
    site.say("destroy", keys(other))
    assert not site.host.path("/home/ann/.ssh").exists()
    site.host.run(["userdel", "-r", "ann"], check=False)
