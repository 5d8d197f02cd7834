"""Lines of PAM on a booted host: they come true, are undone, and lock no user out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host, add_user

FILE = "/etc/pam.d/sshd"


@pytest.fixture
def site(booted: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(booted, tmp_path, "/srv")
    yield found
    found.clean()


def line(module: str, control: str = "required", more: str = "") -> str:
    return (
        f"  - pam: {module}\n    service: sshd\n    module_type: account\n    module: {module}\n"
        f'    control: "{control}"\n{more}'
    )


def test_lines_come_true_and_are_undone(site: Site) -> None:
    """A former line is back at its place, and a line that was changed since then stays."""
    before = site.host.read(FILE)
    first = line("pam_access.so", more="    before: pam_nologin.so\n")
    resources = f"""{first}
  - pam: nologin
    service: sshd
    module_type: account
    module: pam_nologin.so
    control: "[success=ok ignore=ignore default=bad]"
  - pam: mail
    service: sshd
    module_type: session
    module: pam_mail.so
    absent: true
"""
    site.come_true(resources)
    text = site.host.read(FILE)
    assert text.index("account required pam_access.so") < text.index("account [success=ok ignore=ignore")
    assert "pam_mail" not in text
    assert site.host.ssh(["true"]).returncode == 0
    site.say("destroy")
    assert site.host.read(FILE) == before
    site.come_true(line("pam_access.so"))
    site.host.write(FILE, site.host.read(FILE).replace("required pam_access.so", "optional pam_access.so"))
    said = " ".join(site.say("destroy").out.split())
    assert f"another change of {FILE} stays: account optional pam_access.so" in said
    site.host.write(FILE, before)


def test_a_line_that_prevents_logins_is_taken_back(site: Site) -> None:
    before = site.host.read(FILE)
    report = site.report("apply", line("pam_deny.so"), code=1)
    reason = nodes(report)["pam:pam_deny.so"]["reason"]
    assert "no new login after a change of the lines of PAM" in reason and "a new login works" in reason
    assert site.host.read(FILE) == before
    assert site.host.ssh(["true"]).returncode == 0


def test_a_line_that_prevents_sudo_is_taken_back(site: Site) -> None:
    """The new login starts a program as the run does: after sudo, too."""
    add_user(site.host, "operator1", sudo="nopasswd")
    path = "/etc/pam.d/sudo"
    before = site.host.read(path)
    denied = line("pam_deny.so").replace("service: sshd", "service: sudo")
    report = site.report("apply", denied, "--user", "operator1", "--become", code=1)
    reason = nodes(report)["pam:pam_deny.so"]["reason"]
    assert "no new login after a change of the lines of PAM" in reason and "a new login works" in reason
    assert site.host.read(path) == before
