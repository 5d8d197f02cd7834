"""A node of type `reboot` reboots the host, and the same run continues after that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.remote.graph.names import ResourceEvent
from statecfg.resources import command, directory, file, process, reboot, service
from statecfg.run.options import Expected
from statecfg.transport.become import Become
from tests import lab
from tests.host.command import statecfg
from tests.host.resources.truth_case import Case
from tests.host.resources.truth_runs import check_rows
from tests.host.run import hooked, rig
from tests.host.run.site import Site
from tests.lab import Host

LOCK = "/var/lib/statecfg/lock"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

# Values of nodes (also one that is secret), a generated secret, a trigger from before the reboot, and the state of a
# unit, which nobody knows before it.
EVERYTHING = """\
hosts: all
resources:
  - directory: {place}
  - command: token
    shell: echo before-$(cat {boot}) | tee -a {place}/log
    creates: {place}/log
    effects: {{}}
    requires: ["directory:{place}"]
  - command: hidden
    shell: echo "${{SECRET}}-more"
    env: {{SECRET: !secret {{env: SHOP_SECRET}}}}
    effects: {{}}
    requires: ["directory:{place}"]
  - systemd_unit: nap
    sections: {{Service: {{ExecStart: /usr/bin/sleep infinity}}}}
  - service: nap
    running: true
    restart_on: [systemd_unit:nap]
  - file: {place}/trigger
    content: "1"
  - reboot: changes
    restart_on: ["file:{place}/trigger"]
    requires: [command:token, command:hidden, service:nap]
    boot_timeout: 60
  - file: {place}/values
    content: "{{{{ output('command:token', 'stdout') }}}} {{{{ output('command:hidden', 'stdout') }}}}"
    mode: "0600"
    requires: [reboot:changes]
  - file: {place}/generated
    content: !secret {{generate: password, name: shop}}
    mode: "0600"
    requires: [reboot:changes]
  - file: {place}/generated-before
    content: !secret {{generate: password, name: shop}}
    mode: "0600"
  - command: triggered
    shell: cat {boot} > {place}/triggered
    creates: {place}
    effects: {{}}
    restart_on: ["file:{place}/trigger"]
    requires: [reboot:changes]
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Host]:
    """Give a host of its own, which reboots."""
    try:
        host = lab.booted_host("reboots")
    except lab.Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")
    yield host
    host.stop()


def boot_id(host: Host) -> str:
    lab.await_boot(host)
    return host.run(["cat", BOOT_ID]).stdout.strip()


def note(name: str, place: str, *requires: str) -> Graph:
    """Return a command that adds a line to a log."""
    shell = f"echo {name} $(cat {BOOT_ID}) >> {place}/log"
    return command(name, shell=shell, effects={}, requires=[f"directory:{place}", *requires])


def lines(host: Host, place: str) -> list[list[str]]:
    return [line.split() for line in host.read(f"{place}/log").splitlines()]


def around(place: str, **attributes: Any) -> tuple[Graph, ...]:
    """Return a command, a reboot, a second command and a file."""
    given = {"always": True, "boot_timeout": 60, **attributes}
    return (
        directory(place),
        note("first", place),
        reboot("kernel", requires=["command:first"], **given),
        note("second", place, "reboot:kernel"),
        file(f"{place}/after", content="after\n", requires=["command:second"]),
    )


def test_the_run_continues_after_the_reboot(target: Host) -> None:
    place, before = "/srv/continues", boot_id(target)
    definition = rig.define(*around(place))
    planned = rig.run(target, definition, "plan")
    assert planned.outcomes()["reboot:kernel"] == "changed"
    (layer,) = (layer for layer in planned.host()["layers"] if layer[0]["name"] == "reboot:kernel")
    assert layer[0]["actions"][0]["args"] == {
        "because": "it is due in every run", "boot_timeout": 60.0, "then": ["command:second", f"file:{place}/after"],
    }  # fmt: skip
    assert boot_id(target) == before
    done = rig.run(target, definition, expected=Expected({target.name: planned.host()["fingerprints"]}))
    print(f"reboot and continue: {done.seconds:.1f} s")
    assert done.host()["status"] == "ok", done.host().get("error") or done.host()
    after = boot_id(target)
    assert after != before
    assert lines(target, place) == [["first", before], ["second", after]]
    assert target.read(f"{place}/after") == "after\n"
    assert set(done.outcomes().values()) == {"changed"}
    assert not done.host().get("warnings")
    finished = [event.data["name"] for _, event in done.events if event.name == "node-finished"]
    assert finished == [f"directory:{place}", "command:first", "reboot:kernel", "command:second", f"file:{place}/after"]
    again = rig.run(target, rig.define(directory(place)), "plan")
    assert not again.host().get("warnings"), "the run was recorded as a whole"
    past = rig.run(target, rig.define(), "history", query={"run": done.report["run"], "limit": 5})
    (entry,) = past.host()["history"]
    assert entry["status"] == "ok" and entry["ended"] is not None
    assert [action["node"] for action in entry["actions"]] == finished
    assert {action["status"] for action in entry["actions"]} == {"ok"}


def test_a_reboot_that_is_not_due_does_nothing(target: Host) -> None:
    place, before = "/srv/idle", boot_id(target)
    done = rig.run(target, rig.define(*around(place, always=False, when_exists="/run/reboot-required")))
    assert done.host()["status"] == "ok"
    assert done.outcomes()["reboot:kernel"] == "unchanged"
    assert boot_id(target) == before
    target.write("/run/reboot-required", "")
    done = rig.run(target, rig.define(*around(place, always=False, when_exists="/run/reboot-required")))
    assert done.host()["status"] == "ok", done.host().get("error") or done.host()
    assert done.outcomes()["reboot:kernel"] == "changed"
    assert boot_id(target) != before


def test_a_path_that_stays_fails_the_node(target: Host) -> None:
    place = "/srv/stays"
    target.write("/srv/reboot-required", "")
    done = rig.run(target, rig.define(*around(place, always=False, when_exists="/srv/reboot-required")))
    assert done.host()["status"] == "failed"
    outcomes = done.outcomes()
    assert (outcomes["reboot:kernel"], outcomes["command:second"]) == ("failed", "skipped")
    boot_id(target)
    target.run(["rm", "/srv/reboot-required"])


def test_values_secrets_triggers_and_units_survive_the_reboot(target: Host, tmp_path: Path) -> None:
    place, before = "/srv/everything", boot_id(target)
    site = Site(tmp_path, target, "everything")
    text = EVERYTHING.format(place=place, boot=BOOT_ID)
    (site.base / "site.yml").write_text(text)
    secret = {"SHOP_SECRET": "very-secret-word"}
    planned = {node["name"]: node for layer in site.report("plan", "site.yml", **secret)["layers"] for node in layer}
    assert planned["reboot:changes"]["triggered_by"] == [f"file:{place}/trigger"]
    ran = site("apply", "site.yml", "--yes", "--json", **secret)
    report = ran.json()["hosts"][target.name]
    assert report["status"] == "ok", report
    assert "very-secret-word" not in ran.out + ran.err
    after = boot_id(target)
    assert after != before
    assert target.read(f"{place}/values") == f"before-{before} very-secret-word-more"
    assert target.read(f"{place}/generated") == target.read(f"{place}/generated-before")
    assert target.read(f"{place}/triggered").strip() == after
    found = target.run(["grep", "-rl", "very-secret-word", "/var/lib/statecfg"], check=False).stdout
    assert found == "", "nothing secret is stored for the continuation"
    again = site.report("plan", "site.yml", **secret)
    outcomes = {node["name"]: node["outcome"] for layer in again["layers"] for node in layer}
    acting = {name for name, outcome in outcomes.items() if outcome != "unchanged"}
    assert acting <= {"command:hidden", f"file:{place}/values", "service:nap"}, again
    assert not again.get("owed") and not again.get("warnings")


def test_two_reboots_in_one_run(target: Host) -> None:
    place, before = "/srv/twice", boot_id(target)
    graphs = (
        directory(place),
        note("one", place),
        reboot("first", always=True, boot_timeout=60, requires=["command:one"]),
        note("two", place, "reboot:first"),
        reboot("second", always=True, boot_timeout=60, requires=["command:two"]),
        note("three", place, "reboot:second"),
    )
    done = rig.run(target, rig.define(*graphs))
    assert done.host()["status"] == "ok", done.host().get("error") or done.host()
    after = boot_id(target)
    boots = [boot for _, boot in lines(target, place)]
    assert boots[0] == before and boots[2] == after and len(set(boots)) == 3
    past = rig.run(target, rig.define(), "history", query={"run": done.report["run"], "limit": 5})
    assert set(past.host()["history"][0]["outcomes"].values()) == {"changed"}


def test_a_reserved_lock_refuses_other_runs_until_it_ends(target: Host) -> None:
    """The host is off when the run waits for it; then it boots, and the run is gone."""
    place = "/srv/absent"
    boot_id(target)
    off = target.home / "root.off"
    off.touch()
    done = rig.run(target, rig.define(*around(place, boot_timeout=4)))
    host = done.host()
    assert host["status"] == "unknown"
    assert host["error"]["summary"].startswith("the host did not come back within 4 s after its reboot: ")
    assert "console" in host["error"]["hint"]
    outcomes = done.outcomes()
    assert outcomes == {
        f"directory:{place}": "changed", "command:first": "changed", "reboot:kernel": "unknown",
        "command:second": "skipped", f"file:{place}/after": "skipped",
    }  # fmt: skip
    off.unlink()
    boot_id(target)
    for mode in ("apply", "plan"):
        refused = rig.run(target, rig.define(directory("/srv/other")), mode, playbook="other").host()
        assert refused["status"] == "locked"
        assert refused["error"]["summary"] == "another run reboots this host, and has reserved it until it continues"
        assert ", until 20" in refused["error"]["detail"] and LOCK in refused["error"]["hint"]
    target.run(["rm", LOCK])
    again = rig.run(target, rig.define(*around(place, always=False, when_exists="/run/reboot-required")))
    assert again.host()["status"] == "ok", again.host()
    (warning,) = again.host()["warnings"]
    assert warning.endswith(f"unfinished: reboot:kernel; not done after its reboot: command:second, file:{place}/after")
    assert target.read(f"{place}/after") == "after\n"


def test_a_host_that_refuses_to_reboot_fails_the_node(target: Host) -> None:
    place, before = "/srv/refuses", boot_id(target)
    target.run(["mv", "/usr/bin/systemctl", "/usr/bin/systemctl.real"])
    program = '#!/bin/sh\n[ "$1" = reboot ] && echo not today && exit 3\nexec systemctl.real "$@"\n'
    target.write("/usr/bin/systemctl", program, 0o755)
    try:
        done = rig.run(target, rig.define(*around(place)))
    finally:
        target.run(["mv", "/usr/bin/systemctl.real", "/usr/bin/systemctl"])
    host = done.host()
    assert host["status"] == "failed", host
    (node,) = (node for layer in host["layers"] for node in layer if node["name"] == "reboot:kernel")
    assert node["outcome"] == "failed" and "not today" in node["reason"]
    assert done.outcomes()["command:second"] == "skipped"
    assert boot_id(target) == before
    again = rig.run(target, rig.define(directory(place)))
    assert again.host()["status"] == "ok" and not again.host().get("warnings"), "the lock is free, the run was recorded"


def test_a_node_that_was_planned_as_unchanged_fails_if_the_reboot_changes_it(target: Host) -> None:
    place = "/srv/deviates"
    boot_id(target)
    target.write(f"{place}/after", "after\n")
    start = f"ExecStart=/bin/sh -c 'echo by-hand > {place}/after'"
    unit = f"[Service]\nType=oneshot\n{start}\n[Install]\nWantedBy=multi-user.target\n"
    target.write("/etc/systemd/system/meddle.service", f"[Unit]\nBefore=ssh.service\n{unit}")
    target.run(["systemctl", "enable", "meddle.service"])
    try:
        done = rig.run(target, rig.define(*around(place)))
    finally:
        boot_id(target)
        target.run(["systemctl", "disable", "meddle.service"], check=False)
    (node,) = (node for layer in done.host()["layers"] for node in layer if node["name"] == f"file:{place}/after")
    assert node["outcome"] == "failed"
    assert node["reason"].startswith("after the reboot it needs other actions than planned")
    assert target.read(f"{place}/after") == "by-hand\n"


def test_hooks_are_called_before_and_after_the_reboot(target: Host, tmp_path: Path) -> None:
    boot_id(target)
    site = hooked.Site(tmp_path / "site", [target])
    site.playbook(
        "- directory: /srv/hooked\n"
        "- reboot: kernel\n  always: true\n  boot_timeout: 60\n  requires: ['directory:/srv/hooked']\n"
        "- file: /srv/hooked/after\n  content: x\n  requires: [reboot:kernel]\n"
    )
    site.hook("noting", dict.fromkeys(ResourceEvent.ALL, hooked.NOTE))
    site.one("apply", "--yes")
    calls = [(seen["hook"]["cause"], seen["resource"]["name"]) for seen in site.seen("noting")]
    names = ["directory:/srv/hooked", "reboot:kernel", "file:/srv/hooked/after"]
    assert calls == [(event, name) for name in names for event in ("pre-reconcile", "post-create")]


def test_a_local_host_is_refused_by_validate(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "site.yml").write_text('hosts: "@local"\nresources:\n  - reboot: kernel\n    always: true\n')
    ran = statecfg("validate", "site.yml", cwd=tmp_path, code=5)
    assert "SC0121" in ran.err and "site.yml:3:5" in ran.err
    assert "reboot:kernel would reboot the machine that statecfg runs on" in ran.err


def test_a_service_runs_after_the_reboot(target: Host) -> None:
    """Nobody knows its state after the reboot, so the plan starts it in any case. It is not enabled."""
    before = boot_id(target)
    target.write("/etc/systemd/system/doze.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n")
    target.run(["systemctl", "daemon-reload"])
    target.run(["systemctl", "start", "doze"])
    graphs = (
        reboot("kernel", always=True, boot_timeout=60),
        service("doze", running=True, requires=["reboot:kernel"]),
        file("/srv/doze", content="x", requires=["reboot:kernel"]),
    )
    assert set(rig.run(target, rig.define(*graphs), "plan").outcomes().values()) == {"changed"}
    done = rig.run(target, rig.define(*graphs))
    assert done.host()["status"] == "ok", done.host()
    assert set(done.outcomes().values()) == {"changed"}
    assert boot_id(target) != before
    assert target.run(["systemctl", "is-active", "doze"]).stdout.strip() == "active"


def test_a_process_runs_after_the_reboot(target: Host) -> None:
    """The reboot ends it, so the plan does not know it. The run starts it again."""
    before = boot_id(target)
    sleeper: dict[str, Any] = {"user": "root", "group": "root", "env": {}, "args": ["97531"]}
    assert rig.run(target, rig.define(process("/usr/bin/sleep", **sleeper))).host()["status"] == "ok"
    graphs = (
        reboot("kernel", always=True, boot_timeout=60),
        process("/usr/bin/sleep", **sleeper, requires=["reboot:kernel"]),
    )
    outcomes = rig.run(target, rig.define(*graphs), "plan").outcomes()
    assert outcomes == {"reboot:kernel": "changed", "process:/usr/bin/sleep": "unknown"}
    done = rig.run(target, rig.define(*graphs))
    assert done.host()["status"] == "ok", done.host()
    assert set(done.outcomes().values()) == {"changed"}
    assert boot_id(target) != before
    assert len(target.run(["pgrep", "-fx", "/usr/bin/sleep 97531"]).stdout.split()) == 1


def test_another_user_reboots_the_host_with_sudo(target: Host) -> None:
    before = boot_id(target)
    lab.add_user(target, "deploy", sudo="nopasswd")
    graphs = reboot("kernel", always=True, boot_timeout=60), file("/srv/sudo", content="x", requires=["reboot:kernel"])
    done = rig.run(target, rig.define(*graphs), inventory={"user": "deploy"}, become=Become("sudo"))
    assert done.host()["status"] == "ok", done.host()
    assert boot_id(target) != before


def test_a_user_can_stop_a_run_that_waits(target: Host) -> None:
    boot_id(target)
    cancel, off = threading.Event(), target.home / "root.off"
    off.touch()

    def listen(event: Any) -> None:
        if event.name == "output" and "waits for it" in event.data["text"]:
            cancel.set()

    done = rig.run(target, rig.define(*around("/srv/stopped")), listen=listen, cancel=cancel)
    off.unlink()
    assert done.host()["status"] == "unknown"
    assert done.host()["error"]["summary"] == "the run was stopped while the host rebooted"
    boot_id(target)
    target.run(["rm", LOCK])


def test_plans_of_reboots_come_true(target: Host) -> None:
    def declare(root: str, requires: list[Graph]) -> list[Graph]:
        due = reboot("kernel", when_exists="/run/reboot-required", boot_timeout=60, requires=requires)
        return [due, file(f"{root}-after", content="after\n", requires=[due])]

    def drift(host: Host, root: str) -> None:
        lab.await_boot(host)
        host.write("/run/reboot-required", "")
        host.path(f"{root}-after").unlink(missing_ok=True)

    def done(host: Host, root: str) -> None:
        lab.await_boot(host)
        host.run(["rm", "-f", "/run/reboot-required", f"{root}-after"])

    check_rows(target, Case("reboot", declare, drift, drift, done=done), [("reboot", "reboot")])


def at_boot(host: Host, name: str, script: str) -> None:
    """Run a script at each boot, before anybody can log in."""
    unit = f"[Unit]\nBefore=ssh.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c '{script}'\n"
    host.write(f"/etc/systemd/system/{name}.service", f"{unit}[Install]\nWantedBy=multi-user.target\n")
    host.run(["systemctl", "enable", f"{name}.service"])


def test_a_container_that_keeps_the_boot_id_of_the_kernel_has_rebooted(target: Host) -> None:
    """Process 1 has started anew."""
    place = "/srv/shared"
    boot_id(target)
    at_boot(target, "shared", f"umount {BOOT_ID}")
    target.run(["systemctl", "start", "shared.service"])
    before = boot_id(target)
    try:
        done = rig.run(target, rig.define(*around(place)))
        assert done.host()["status"] == "ok", done.host()
        assert boot_id(target) == before
        assert lines(target, place) == [["first", before], ["second", before]]
    finally:
        lab.await_boot(target)
        target.run(["systemctl", "disable", "shared.service"], check=False)


def test_a_connection_that_breaks_while_the_rest_is_planned(target: Host) -> None:
    """The first session after the reboot still holds the lock when the next one arrives."""
    place, before = "/srv/breaks", boot_id(target)
    target.write(f"{place}/before", before)
    cut = "setsid sh -c \"kill \\$(pgrep -f '^sshd: root@')\" &"
    guard = (
        f"if test ! -e {place}/broken && ! grep -q $(cat {BOOT_ID}) {place}/before;"
        f" then touch {place}/broken; trap '' HUP TERM; {cut} sleep 6; fi; test -e {place}/last"
    )
    last = command("last", shell=f"echo last >> {place}/last", unless=guard, effects={}, requires=["reboot:kernel"])
    done = rig.run(target, rig.define(reboot("kernel", always=True, boot_timeout=90), last))
    assert done.host()["status"] == "ok", done.host()
    assert boot_id(target) != before
    assert target.path(f"{place}/broken").exists()
    assert target.read(f"{place}/last") == "last\n"
