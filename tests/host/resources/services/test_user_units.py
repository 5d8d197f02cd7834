"""Units of users on a booted host: lingering, the user's own systemd, the journal, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

APP = "[Service]\nExecStart=/usr/bin/sleep 100000\n[Install]\nWantedBy=default.target\n"
OWN = "/home/deploy/.config/systemd/user"


@pytest.fixture
def site(booted: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()
    booted.run(["sh", "-c", "loginctl disable-linger deploy; systemctl stop user@$(id -u deploy)"], check=False)
    booted.run(["userdel", "--remove", "deploy"], check=False)


def add_user(host: Host, *units: str, linger: bool = True) -> None:
    """Add the user deploy with a service for each of these names."""
    host.run(["useradd", "--create-home", "deploy"])
    for name in units:
        host.write(f"{OWN}/{name}.service", APP)
    host.run(["chown", "-R", "deploy:", "/home/deploy"])
    if linger:
        host.run(["loginctl", "enable-linger", "deploy"])
        host.run(["systemctl", "start", f"user@{uid(host)}.service"])


def uid(host: Host) -> str:
    return host.run(["id", "-u", "deploy"]).stdout.strip()


def asked(host: Host, *words: str) -> str:
    """Return what the systemd of the user answers."""
    number = uid(host)
    who = [
        "setpriv",
        f"--reuid={number}",
        "--regid=deploy",
        "--init-groups",
        "env",
        f"XDG_RUNTIME_DIR=/run/user/{number}",
    ]
    return host.run([*who, "HOME=/home/deploy", "systemctl", "--user", *words], check=False).stdout.strip()


def of_user(more: str, name: str = "app") -> str:
    return f"  - {{service: {name}, user: deploy, {more}}}\n"


def lingers(host: Host) -> bool:
    return host.path("/var/lib/systemd/linger/deploy").exists()


def test_a_unit_of_a_user_from_a_bare_host_and_back(site: Site) -> None:
    """One run creates the user, lets it linger, writes the unit and starts it; the removal takes all of it back."""
    folders = [f"  - {{directory: {OWN}, parents: true, owner: deploy, group: deploy}}\n"]
    file = f"  - file: {OWN}/app.service\n    owner: deploy\n    content: {APP!r}\n".replace("'", '"')
    site.come_true(
        "  - {user: deploy, linger: true}\n" + "".join(folders) + file + of_user("running: true, enabled: true")
    )
    assert lingers(site.host)
    assert (asked(site.host, "is-active", "app"), asked(site.host, "is-enabled", "app")) == ("active", "enabled")
    pid = asked(site.host, "show", "--value", "--property=MainPID", "app")
    assert site.host.run(["stat", "-c", "%U", f"/proc/{pid}"]).stdout.strip() == "deploy"
    site.say("destroy")
    assert not lingers(site.host)
    assert site.host.run(["id", "deploy"], check=False).returncode


def test_the_former_state_comes_back(site: Site) -> None:
    add_user(site.host, "app", linger=False)
    site.come_true("  - {user: deploy, linger: true}\n" + of_user("running: true, enabled: true"))
    assert asked(site.host, "is-active", "app") == "active"
    site.say("destroy")
    assert not lingers(site.host)
    assert not site.host.path(f"{OWN}/default.target.wants/app.service").exists()
    assert site.host.path(f"{OWN}/app.service").exists()


def test_without_lingering(site: Site) -> None:
    """A unit can be enabled for the next login; it can't run, and the message says what would let it."""
    add_user(site.host, "app", linger=False)
    found = site.report("plan", of_user("running: true"), code=1)
    assert "set linger: true on the node user:deploy" in nodes(found)["service:app"]["reason"]
    site.come_true(of_user("running: false, enabled: true"))
    assert site.host.path(f"{OWN}/default.target.wants/app.service").is_symlink()
    assert site.host.run(["stat", "-c", "%U", f"{OWN}/default.target.wants/app.service"]).stdout.strip() == "deploy"
    site.say("destroy")
    assert not site.host.path(f"{OWN}/default.target.wants/app.service").is_symlink()


def test_a_failed_unit_shows_its_journal(site: Site) -> None:
    add_user(site.host)
    site.host.write(f"{OWN}/bad.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo no settings; exit 3'\n")
    site.host.run(["chown", "-R", "deploy:", "/home/deploy"])
    asked(site.host, "daemon-reload")
    reason = nodes(site.report("apply", of_user("running: true", "bad"), code=1))["service:bad"]["reason"]
    assert "bad.service of the user deploy is failed, result: exit-code 3" in reason
    assert "no settings" in reason


def test_masks_and_restarts(site: Site) -> None:
    add_user(site.host, "app")
    site.host.write("/usr/lib/systemd/user/other.service", APP)
    asked(site.host, "daemon-reload")
    asked(site.host, "start", "app")
    site.come_true(of_user("running: false, masked: true", "other"))
    assert asked(site.host, "is-enabled", "other") == "masked"
    site.say("destroy")
    assert asked(site.host, "is-enabled", "other") == "disabled"
    found = site.report("plan", of_user("masked: true"), code=1)
    assert f"its file is {OWN}/app.service" in nodes(found)["service:app"]["reason"]
    before = asked(site.host, "show", "--value", "--property=MainPID", "app")
    settings = "  - {file: /srv/app.conf, content: x}\n"
    site.come_true(settings + of_user('running: true, restart_on: ["file:/srv/app.conf"]'))
    assert asked(site.host, "show", "--value", "--property=MainPID", "app") not in ("", "0", before)


def test_units_of_the_same_name(site: Site) -> None:
    """A unit of a user is not that of the host."""
    add_user(site.host, "app")
    site.host.write("/etc/systemd/system/app.service", APP)
    site.host.run(["systemctl", "daemon-reload"])
    asked(site.host, "daemon-reload")
    both = "  - {service: app, running: false}\n" + of_user('running: true, provides: "service:of deploy"')
    site.come_true(both)
    assert site.host.run(["systemctl", "is-active", "app"], check=False).stdout.strip() == "inactive"
    assert asked(site.host, "is-active", "app") == "active"
    site.host.path("/etc/systemd/system/app.service").unlink()
    site.host.run(["systemctl", "daemon-reload"])


def test_a_user_who_lingers_is_removed(site: Site) -> None:
    """userdel(8) refuses a user with processes, and a user of the same name would linger again."""
    add_user(site.host, "app")
    asked(site.host, "enable", "--now", "app")
    site.come_true("  - {user: deploy, absent: true}\n")
    assert not lingers(site.host)
    site.say("destroy")
    assert lingers(site.host)


def unit(sections: str, more: str = "", name: str = "app") -> str:
    return f"  - {{systemd_unit: {name}, user: deploy, sections: {{{sections}}}{more}}}\n"


SLEEP = "Service: {ExecStart: /usr/bin/sleep 100000}"


def test_the_file_of_a_unit_of_a_user(site: Site) -> None:
    """One run makes the user, its file and its unit: the requirements between them are automatic."""
    whole = "  - {user: deploy, linger: true}\n"
    whole += unit(SLEEP + ", Install: {WantedBy: default.target}")
    whole += of_user('running: true, enabled: true, restart_on: ["systemd_unit:app"]')
    site.come_true(whole)
    assert (asked(site.host, "is-active", "app"), asked(site.host, "is-enabled", "app")) == ("active", "enabled")
    assert site.host.run(["stat", "-c", "%U:%G", f"{OWN}/app.service"]).stdout.strip() == "deploy:deploy"
    before = asked(site.host, "show", "--value", "--property=MainPID", "app")
    site.come_true(whole.replace("sleep 100000", "sleep 100001"))
    assert asked(site.host, "show", "--value", "--property=MainPID", "app") not in ("", "0", before)
    assert asked(site.host, "show", "--value", "--property=NeedDaemonReload", "app") == "no"
    site.say("destroy")
    assert site.host.run(["id", "deploy"], check=False).returncode


def test_a_removed_file_leaves_the_home_directory_as_it_was(site: Site) -> None:
    add_user(site.host)
    site.come_true(unit("Service: {LimitNOFILE: 4096}", ", drop_in: limits", "gpg-agent") + unit(SLEEP))
    assert "limits.conf" in asked(site.host, "show", "--value", "--property=DropInPaths", "gpg-agent")
    site.say("destroy")
    assert not site.host.path("/home/deploy/.config").exists()
    assert asked(site.host, "show", "--value", "--property=LoadState", "app") == "not-found"


def test_systemd_checks_a_unit_as_its_user(site: Site) -> None:
    """The user can read `%h`, in which other users and root's systemd-analyze would look in a different place."""
    add_user(site.host, "other")
    site.host.run(["chmod", "0700", "/home/deploy"])
    wrong = site.report("plan", unit("Service: {ExecStart: /usr/bin/sleep 1, Colour: red}"), code=1)
    assert "Colour" in nodes(wrong)["systemd_unit:app"]["reason"]
    missing = site.report("plan", unit("Service: {ExecStart: '%h/bin/app'}"), code=1)
    assert "/home/deploy/bin/app" in nodes(missing)["systemd_unit:app"]["reason"]
    site.host.write("/home/deploy/bin/app", "#!/bin/sh\nsleep 100000\n", 0o755)
    site.host.run(["chown", "-R", "deploy:", "/home/deploy"])
    site.come_true(unit("Unit: {Wants: other.service}, Service: {ExecStart: '%h/bin/app'}"))


def test_a_link_of_the_user_is_not_followed(site: Site) -> None:
    """Root writes nothing where a link of the user leads."""
    add_user(site.host)
    site.host.run(["mkdir", "-p", "/srv/target"])
    site.host.run(["sh", "-c", "ln -s /srv/target /home/deploy/.config; chown -h deploy: /home/deploy/.config"])
    found = site.report("plan", unit(SLEEP), code=1)
    assert "a link that another user controls is not followed" in nodes(found)["systemd_unit:app"]["reason"]
    assert list(site.host.path("/srv/target").iterdir()) == []
    site.say("plan", of_user("enabled: true", "podman"))  # systemd knows this unit without the link


def test_a_user_manages_units_without_root(site: Site) -> None:
    """The login of statecfg is the user itself, which is not root."""
    add_user(site.host, "app")
    key = site.host.identity.with_suffix(".pub").read_text()
    site.host.run(["usermod", "-s", "/bin/sh", "deploy"])
    site.host.write("/home/deploy/.ssh/authorized_keys", key)
    site.host.run(["chown", "-R", "deploy:", "/home/deploy"])
    asked(site.host, "daemon-reload")
    site.options = [*site.options, "--user", "deploy"]
    mine = unit(SLEEP + ", Install: {WantedBy: default.target}", name="mine")
    site.come_true(mine + of_user("running: true, enabled: true", "mine") + of_user("running: true"))
    assert asked(site.host, "is-active", "app", "mine") == "active\nactive"
    site.say("destroy")
    assert not site.host.path(f"{OWN}/mine.service").exists()


def test_a_stopped_manager_of_a_user_who_lingers(site: Site) -> None:
    add_user(site.host, "app")
    site.host.run(["systemctl", "stop", f"user@{uid(site.host)}.service"])
    wait = "  - {wait_for: app, unit: app, user: deploy, requires: ['service:app']}\n"
    site.say("apply", of_user("running: true") + wait)
    assert asked(site.host, "is-active", "app") == "active"


def test_a_user_that_others_have_removed(site: Site) -> None:
    add_user(site.host, "app")
    site.come_true(of_user("running: true, enabled: true") + unit(SLEEP, name="more"))
    site.host.run(["loginctl", "terminate-user", "deploy"])
    site.host.run(["systemctl", "stop", f"user@{uid(site.host)}.service"])
    site.host.run(["userdel", "--remove", "deploy"])  # the file with which it lingers stays
    site.say("destroy")
    site.host.path("/var/lib/systemd/linger/deploy").unlink()


def test_two_playbooks(site: Site, tmp_path: Path) -> None:
    """A unit has one owner; units of the same name have different ones."""
    add_user(site.host, "app")
    asked(site.host, "daemon-reload")
    site.come_true(of_user("running: true"))
    (tmp_path / "other").mkdir()
    other = Site(site.host, tmp_path / "other", "/srv")
    found = other.report("plan", of_user("running: false"), code=1)
    assert "take_over" in nodes(found)["service:app"]["reason"]
    site.host.run(["sh", "-c", f"cp {OWN}/app.service /etc/systemd/system/; systemctl daemon-reload"])
    other.come_true("  - {service: app, running: false}\n")
    other.say("destroy")
    site.host.run(["sh", "-c", "rm /etc/systemd/system/app.service; systemctl daemon-reload"])


def test_a_removed_setting_restarts_a_unit_that_stays(site: Site) -> None:
    add_user(site.host, "app")
    site.come_true(
        "  - {file: /srv/app.conf, content: x}\n" + of_user('running: true, restart_on: ["file:/srv/app.conf"]')
    )
    before = asked(site.host, "show", "--value", "--property=MainPID", "app")
    site.say("apply", of_user("running: true"), "--prune")
    assert asked(site.host, "show", "--value", "--property=MainPID", "app") not in ("", "0", before)


def test_a_host_without_systemd(light_host: Host, tmp_path: Path) -> None:
    light = Site(light_host, tmp_path, "/srv")
    light_host.run(["useradd", "--create-home", "deploy"])
    for text, reason in (
        (of_user("enabled: true"), "this host does not run systemd, so it has no units of the user deploy"),
        (of_user("running: true"), "this host does not run systemd, so it has no units of the user deploy"),
        ("  - {user: deploy, linger: true}\n", "linger needs systemd"),
    ):
        (node,) = nodes(light.report("plan", text, code=1)).values()
        assert reason in node["reason"], node["reason"]
    light_host.run(["userdel", "--remove", "deploy"], check=False)


def test_a_unit_of_all_users(site: Site) -> None:
    """It starts for each user who logs in or lingers; the removal of both nodes leaves nothing."""
    file = "systemd_unit: agent, all_users: true"
    both = f"  - {{{file}, sections: {{{SLEEP}, Install: {{WantedBy: default.target}}}}}}\n"
    both += "  - {service: agent, all_users: true, enabled: true}\n"
    wrong = site.report("plan", both.replace("ExecStart", "Colour: red, ExecStart"), code=1)
    assert "Colour" in nodes(wrong)["systemd_unit:agent"]["reason"]
    site.come_true(both)
    assert site.host.run(["systemctl", "--global", "is-enabled", "agent"]).stdout.strip() == "enabled"
    add_user(site.host)
    assert asked(site.host, "is-active", "agent") == "active"
    site.say("destroy")
    assert not site.host.path("/etc/systemd/user/agent.service").exists()
    assert not site.host.path("/etc/systemd/user/default.target.wants/agent.service").is_symlink()


def test_a_system_user_with_another_home_directory(site: Site) -> None:
    """A user for one program: no login shell, and a home directory that is not in /home."""
    whole = "  - {user: shopd, system: true, home: /var/lib/shopd, create_home: true, linger: true}\n"
    whole += "  - {systemd_unit: shop, user: shopd, sections: {%s}}\n" % SLEEP  # noqa: UP031  # it has many braces
    whole += "  - {service: shop, user: shopd, running: true}\n"
    site.come_true(whole)
    assert site.host.path("/var/lib/shopd/.config/systemd/user/shop.service").exists()
    (other := site.directory / "other").mkdir()
    purge = "  - {directory: /var/lib/shopd/.config/systemd/user, purge: true}\n"
    found = Site(site.host, other, "/srv").report("plan", purge)
    assert "shop.service stays" in str(found)
    site.say("destroy")
    assert site.host.run(["id", "shopd"], check=False).returncode
    assert not site.host.path("/var/lib/shopd/.config").exists()
    site.host.run(["rm", "-r", "/var/lib/shopd"])


def test_a_directory_that_others_use_stays(site: Site) -> None:
    add_user(site.host)
    site.come_true(unit(SLEEP))
    asked(site.host, "enable", "podman.socket")
    found = site.report("destroy")
    assert f"{OWN} is not empty (sockets.target.wants): it stays" in str(found)
    assert not site.host.path(f"{OWN}/app.service").exists()
    assert asked(site.host, "is-enabled", "podman.socket") == "enabled"
