"""Services on a booted host: boot, aliases, what starts a stopped one again, and the journal of a failed one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

SLEEP = "[Service]\nExecStart=/usr/bin/sleep 100000\n"
BOOT = "[Install]\nWantedBy=multi-user.target\n"
SCRIPT = """\
#!/bin/sh
### BEGIN INIT INFO
# Provides:          oldd
# Required-Start:    $remote_fs
# Required-Stop:     $remote_fs
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: old
### END INIT INFO
exit 0
"""
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    deb-systemd-helper enable keyd-server.service > /dev/null || true
    systemctl --system daemon-reload
    deb-systemd-invoke start keyd-server.service
fi
"""
TALKS = """\
#!/bin/sh
for i in $(seq 1 60); do echo "line $i of the settings"; done
cat /srv/cause
exit 3
"""


@pytest.fixture(scope="module")
def units(booted: Host, apt_packages: lab.AptRepository) -> Host:
    """Return the host, with units of many kinds."""
    alias = {"/lib/systemd/system/keyd-server.service": (f"{SLEEP}{BOOT}Alias=keyd.service\n", 0o644)}
    apt_packages.add("keyd-server", "1.0", files=alias, scripts={"postinst": POSTINST})
    apt_packages.use(booted)
    files = {
        "wq@.service": SLEEP,
        "ind.service": f"{SLEEP}[Install]\nAlso=ind.socket\n",
        "ind.socket": "[Socket]\nListenStream=/run/ind.sock\n[Install]\nWantedBy=sockets.target\n",
        "fixed.service": SLEEP,
        "brief.service": SLEEP + BOOT,
        "talks.service": "[Service]\nExecStart=/usr/local/bin/talks\n",
        "once.service": "[Service]\nType=oneshot\nExecStart=/usr/local/bin/talks\n",
        "needs.service": f"[Unit]\nRequires=once.service\nAfter=once.service\n{SLEEP}",
    }
    for name, text in files.items():
        booted.write(f"/etc/systemd/system/{name}", text)
    booted.write("/usr/lib/systemd/system/covered.service", SLEEP + BOOT)
    booted.write("/etc/init.d/oldd", SCRIPT, 0o755)
    booted.write("/usr/local/bin/talks", TALKS, 0o755)
    booted.run(["systemctl", "daemon-reload"])
    return booted


@pytest.fixture
def site(units: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(units, tmp_path, "/srv")
    yield found
    found.clean()


def enabled(site: Site, unit: str) -> str:
    """Return systemd's word for the start of a unit at boot."""
    return site.host.run(["systemctl", "is-enabled", unit], check=False).stdout.strip()


def test_an_alias_that_a_package_brings(site: Site) -> None:
    """systemd enables no alias: statecfg finds the unit's own name when the package is there."""
    service = "  - {service: keyd, running: true, enabled: true}\n"
    both = "  - {package: keyd-server, provides_units: [keyd]}\n" + service
    site.come_true(both)
    assert enabled(site, "keyd-server") == "enabled"
    site.host.run(["systemctl", "disable", "--now", "keyd-server.service"])  # the alias is gone then
    assert nodes(site.report("apply"))["service:keyd"]["outcome"] == "changed"
    assert enabled(site, "keyd-server") == "enabled"


def test_an_alias_of_a_unit_that_is_disabled(site: Site) -> None:
    """A disabled unit has no alias in systemd; undo finds its unit all the same."""
    site.host.run(["apt-get", "-qy", "install", "keyd-server"])
    site.come_true("  - {service: keyd, running: true, enabled: false}\n")
    assert enabled(site, "keyd-server") == "disabled"
    site.say("destroy")
    assert enabled(site, "keyd-server") == "enabled"
    site.host.run(["apt-get", "-qy", "purge", "keyd-server"])


def test_a_unit_without_install_can_not_be_enabled(site: Site) -> None:
    for unit, state in (("fixed", "true"), ("fixed", "false"), ("wq@1", "true")):
        found = site.report("plan", f"  - {{service: {unit}, enabled: {state}}}\n", code=1)
        assert "can't be " in nodes(found)[f"service:{unit}"]["reason"], unit
    made = "  - {systemd_unit: made, sections: {Service: {ExecStart: /usr/bin/sleep 100000}}}\n"
    found = site.report("plan", made + "  - {service: made, enabled: true}\n", code=1)
    assert "no section Install" in nodes(found)["service:made"]["reason"]


def test_a_unit_that_names_others(site: Site) -> None:
    site.come_true("  - {service: ind, enabled: true}\n")
    assert enabled(site, "ind.socket") == "enabled"
    site.say("destroy")
    assert enabled(site, "ind.socket") == "disabled"
    site.host.run(["systemctl", "enable", "ind.socket"])
    site.come_true("  - {service: ind, enabled: false}\n")
    assert enabled(site, "ind.socket") == "disabled"
    site.say("destroy")
    assert enabled(site, "ind.socket") == "enabled"
    site.host.run(["systemctl", "disable", "ind.socket"])


def test_an_init_script(site: Site) -> None:
    site.come_true("  - {service: oldd, enabled: true}\n")
    assert list(site.host.path("/etc/rc3.d").glob("S??oldd"))
    site.come_true("  - {service: oldd, enabled: false}\n")
    assert not list(site.host.path("/etc/rc3.d").glob("S??oldd"))


def test_until_the_next_boot(site: Site) -> None:
    """What holds until the next boot is another state, and undo brings it back."""
    site.host.run(["systemctl", "enable", "--runtime", "brief.service"])
    site.host.run(["systemctl", "mask", "--runtime", "covered.service"])
    for state in ("false", "true"):
        site.come_true(f"  - {{service: brief, enabled: {state}}}\n  - {{service: covered, masked: {state}}}\n")
        assert enabled(site, "brief") == {"false": "disabled", "true": "enabled"}[state]
        assert enabled(site, "covered") == {"false": "disabled", "true": "masked"}[state]
        site.say("destroy")
        assert (enabled(site, "brief"), enabled(site, "covered")) == ("enabled-runtime", "masked-runtime")
    site.host.run(["systemctl", "unmask", "--runtime", "covered.service"])


@pytest.mark.parametrize("was, now", [("mask", "true"), ("mask", "false"), ("unmask", "true")])
def test_undo_brings_a_mask_back(site: Site, was: str, now: str) -> None:
    site.host.run(["systemctl", was, "covered.service"])
    former = enabled(site, "covered")
    site.come_true(f"  - {{service: covered, masked: {now}}}\n")
    site.say("destroy")
    assert enabled(site, "covered") == former
    site.host.run(["systemctl", "unmask", "covered.service"])


def test_a_socket_would_start_it_again(site: Site) -> None:
    site.host.run(["systemctl", "start", "ind.socket"])
    stopped = "  - {service: ind, running: false}\n"
    found = nodes(site.report("plan", stopped, code=1))["service:ind"]
    assert "ind.socket runs and starts ind.service again: declare ind.socket" in found["reason"]
    site.come_true(stopped + "  - {service: ind.socket, running: false}\n")


def test_a_failure_shows_the_end_of_the_journal(site: Site) -> None:
    site.host.write("/srv/cause", "CAUSE: an older failure\n")
    site.host.run(["systemctl", "start", "talks", "once"], check=False)
    site.host.write("/srv/cause", "CAUSE: port 80 is in use\n")
    units = ("talks", "once", "needs")
    found = nodes(site.report("apply", "".join(f"  - {{service: {one}, running: true}}\n" for one in units), code=1))
    for unit in units:
        reason = found[f"service:{unit}"]["reason"]
        assert "CAUSE: port 80 is in use" in reason, unit
        assert "older" not in reason and "line 1 " not in reason, unit


def test_a_unit_that_does_not_stay_up_says_why(site: Site) -> None:
    site.host.write("/etc/systemd/system/cond.service", f"[Unit]\nConditionPathExists=/srv/no-such\n{SLEEP}")
    site.host.write("/etc/systemd/system/short.service", "[Service]\nType=oneshot\nExecStart=/usr/bin/true\n")
    site.host.run(["systemctl", "daemon-reload"])
    for name, why in (("cond", "ConditionPathExists=/srv/no-such"), ("short", "without RemainAfterExit=true")):
        node = nodes(site.report("apply", f"  - {{service: {name}, running: true}}\n", code=1))[f"service:{name}"]
        assert why in str(node) and "it started and then ended" not in str(node)
