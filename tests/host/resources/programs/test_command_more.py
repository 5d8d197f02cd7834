"""Commands on a real host: failure rules, repetitions, scripts and standard input; the warning about guards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecfg import Secret
from statecfg.graph.graph import Graph
from statecfg.resources import command, directory
from statecfg.run import bundle
from tests import ROOT
from tests.host.command import reach, statecfg
from tests.host.resources.truth import fleet_run, nodes, steps
from tests.lab import Host, processes

VALUE = "correct-horse-battery"
SCRIPT = """#!/bin/bash -eu
cat > input
tr '\\0' '\\n' < /proc/$$/cmdline > arguments
env > variables
id -un > who
stat -c %a:%U "$0" > rights
echo "read $(cat input)"
"""


def script(folder: Path, text: str = SCRIPT, name: str = "make.sh") -> str:
    """Write a script of the project; return its path."""
    path = folder / name
    path.write_text(text)
    return str(path)


def apply(host: Host, *graphs: Graph, status: str = "ok", **options: Any) -> dict[str, Any]:
    """Apply graphs; return the report of the last node."""
    report = fleet_run(host, graphs, "apply", **options)
    assert report["status"] == status, report
    return list(nodes(report).values())[-1]


def left(host: Host) -> list[Path]:
    """Return the files that scripts left in the directory where they run."""
    return list(host.path("/run").glob(".statecfg-*"))


def compare(host: Host, graphs: list[Graph]) -> int:
    """Check that an apply does what the plan says, and then has nothing to do; return the number of changed nodes."""
    planned = nodes(fleet_run(host, graphs, "plan"))
    report = fleet_run(host, graphs, "apply")
    assert report["status"] == "ok", report
    applied = nodes(report)
    for name, node in planned.items():
        assert steps(applied[name]) == steps(node), name
        assert applied[name]["changes"] == node["changes"], name
        assert applied[name]["outcome"] == node["outcome"], name
    assert set(fleet_run(host, graphs, "apply")["summary"]) == {"unchanged"}
    return sum(node["outcome"] == "changed" for node in planned.values())


def test_apply_does_what_was_planned_in_each_state_of_the_host(light_host: Host, tmp_path: Path) -> None:
    root = "/srv/truth"
    above = directory(root, owner="daemon")
    own: dict[str, Any] = {"cwd": root, "user": "daemon", "requires": [above], "effects": {}}
    graphs = [
        above,
        command("make", script=script(tmp_path), stdin=Secret("pw", VALUE), creates=f"{root}/input", **own),
        command(
            "wait", shell="echo x >> tries; test $(wc -l < tries) -gt 2 && touch done", retries=3, retry_delay=0,
            creates=f"{root}/done", failed_when={"exit": [1], "stdout": "ERROR"}, **own,
        ),
    ]  # fmt: skip
    barrier = command("barrier", shell="test -e /srv/open", unless="test -e /srv/open", effects={})
    assert fleet_run(light_host, [*graphs, barrier], "apply")["status"] == "failed"
    assert not light_host.path(f"{root}/input").exists()
    assert compare(light_host, graphs) == 2  # half-failed: the directory exists
    light_host.run(["rm", f"{root}/input", f"{root}/tries", f"{root}/done"])
    assert compare(light_host, graphs) == 2  # drifted
    assert compare(light_host, graphs) == 0  # converged
    light_host.run(["rm", "-r", root])
    assert compare(light_host, graphs) == 3  # bare
    assert left(light_host) == []


def test_a_script_gets_its_secret_only_on_standard_input(light_host: Host, tmp_path: Path) -> None:
    place = "/srv/secret"
    light_host.run(["install", "-d", "-o", "daemon", place])
    node = command(
        "load", script=script(tmp_path), stdin=Secret("pw", VALUE), user="daemon", cwd=place, env={"WORD": "hi"},
        creates=f"{place}/rights", effects={},
    )  # fmt: skip
    plan = fleet_run(light_host, [node], "plan")
    report = fleet_run(light_host, [node], "apply")
    assert report["status"] == "ok", report
    assert light_host.read(f"{place}/input") == VALUE
    assert VALUE not in light_host.read(f"{place}/arguments") + light_host.read(f"{place}/variables")
    assert VALUE not in str(plan) + str(report)
    assert light_host.read(f"{place}/who") == "daemon\n" and light_host.read(f"{place}/rights") == "600:daemon\n"
    arguments = light_host.read(f"{place}/arguments").splitlines()
    assert arguments[:2] == ["/bin/bash", "-eu"] and arguments[2].startswith("/run/.statecfg-")
    assert not light_host.path(arguments[2]).exists()
    (action,) = nodes(report)["command:load"]["actions"]
    assert action["args"]["argv"] == ["/bin/bash", "-eu", "make.sh"] and action["args"]["stdin"] == "<secret pw>"
    assert action["log"] == "read <secret pw>\n"
    for path in light_host.path("/var/lib/statecfg").rglob("*"):
        assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path


def test_a_script_loads_no_code_of_other_users(light_host: Host, tmp_path: Path) -> None:
    light_host.run(["sh", "-c", "echo 'raise SystemExit(9)' > /tmp/calendar.py && chown daemon: /tmp/calendar.py"])
    path = script(tmp_path, "#!/usr/bin/env python3\nimport calendar\nprint(calendar.isleap(2000))\n", "leap.py")
    node = apply(light_host, command("leap", script=path, always=True))
    assert node["actions"][0]["log"] == "True\n"
    light_host.run(["rm", "/tmp/calendar.py"])


def test_a_failing_script_is_reported_by_its_name_and_removed(light_host: Host, tmp_path: Path) -> None:
    path = script(tmp_path, "nonsense-word\nexit 3\n")
    node = apply(light_host, command("broken", script=path, interpreter=["bash", "-u"]), status="failed")
    assert node["reason"].startswith("run: make.sh: exit status 3: make.sh: line 1: nonsense-word")
    assert left(light_host) == []
    node = apply(light_host, command("broken", script=path, interpreter=["no-such"]), status="failed")
    assert "make.sh: no-such can't be started" in node["reason"]
    node = apply(light_host, command("broken", script=path, interpreter=["sh"], user="nobody-here"), status="failed")
    assert "nobody-here" in node["reason"]
    assert left(light_host) == []


@pytest.mark.parametrize(
    ("shell", "attrs", "reason"),
    [
        ("exit 3", {"failed_when": {"exit": 1}}, ""),
        ("echo no; exit 1", {"failed_when": {"exit": [1, 2]}}, "exit status 1: no"),
        ("exit 3", {"failed_when": {"stderr": "fatal"}}, "exit status 3"),
        ("exit 3", {"failed_when": {"exit": 1}, "expect": [0, 2]}, "exit status 3"),
        ("echo ok; echo an ERROR; echo x", {"failed_when": {"stdout": "ERR"}}, "stdout matches failed_when: an ERROR"),
        ("echo ERROR >&2", {"failed_when": {"stdout": "ERROR"}}, ""),
        ("echo ERR >&2", {"failed_when": {"stdout": "ERR", "stderr": "^ERR$"}}, "stderr matches failed_when: ERR"),
        ("kill -9 $$", {"failed_when": {"exit": 1}}, "ended by signal 9"),
        ("exit 3", {"stdin": "x"}, "exit status 3"),
        ("sleep 60", {"failed_when": {"exit": 1}, "timeout": 0.2}, "still running after 0.2 s"),
    ],
)  # fmt: skip
def test_a_command_fails_as_its_rules_say(light_host: Host, shell: str, attrs: Any, reason: str) -> None:
    node = apply(light_host, command("judged", shell=shell, effects={}, **attrs), status="failed" if reason else "ok")
    assert reason in node.get("reason", "")


def test_each_attempt_is_in_the_log_and_has_its_own_timeout(light_host: Host) -> None:
    light_host.run(["rm", "-f", "/srv/tries"])
    shell = "echo x >> /srv/tries; n=$(wc -l < /srv/tries); echo try $n; [ $n != 1 ] || sleep 60; [ $n = 3 ]"
    slow: dict[str, Any] = {"shell": shell, "timeout": 0.5, "retries": 5, "retry_delay": [0.1, 0], "effects": {}}
    (action,) = apply(light_host, command("slow", **slow))["actions"]
    assert action["log"].splitlines() == [
        "try 1", "[attempt 1 of 6: still running after 0.5 s, stopped]", "[the next attempt starts in 0.1 s]",
        "try 2", "[attempt 2 of 6: exit status 1: try 2]", "[the next attempt starts in 0 s]",
        "try 3", "[attempt 3 of 6: succeeded]",
    ]  # fmt: skip
    node = apply(light_host, command("never", argv=["false"], retries=2, retry_delay=0), status="failed")
    assert node["reason"] == "run: false: exit status 1 (attempt 3 of 3)"


def start(project: Path, options: list[str]) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "statecfg", "apply", "play.yml", "--yes", *options]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=project, env=environ, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_stops_waiting_for_the_next_attempt(light_host: Host, tmp_path: Path, number: int) -> None:
    (tmp_path / "statecfg.toml").touch()
    light_host.run(["rm", "-f", "/srv/stopped"])
    play = "hosts: {}\nresources:\n  - command: wait\n    always: true\n    shell: echo x >> /srv/stopped; {}\n"
    more = "    retries: 3\n    retry_delay: 600\n"
    (tmp_path / "play.yml").write_text(play.format(light_host.name, "exit 1") + more)
    options = reach(tmp_path, [light_host])
    run = start(tmp_path, options)
    try:
        processes.wait_until(lambda: light_host.path("/srv/stopped").exists(), 60, "the first attempt")
        time.sleep(1)  # until the host waits; a stop during the attempt has the same result
        began = time.monotonic()
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert time.monotonic() - began < 30
    if number == signal.SIGINT:
        assert run.returncode == 130, out + err
        assert "not repeated: the run was stopped" in out
    # The executor holds the host's lock until it ends.
    (tmp_path / "play.yml").write_text(play.format(light_host.name, "exit 0"))
    statecfg("apply", "play.yml", "--yes", *options, cwd=tmp_path, STATECFG_LOCK_TIMEOUT="60")
    assert light_host.read("/srv/stopped") == "x\nx\n"


def test_hosts_get_the_code_for_rare_attributes_only_if_they_need_it(light_host: Host) -> None:
    plain = command("plain", argv=["true"], effects={})
    (digest,) = bundle.parts({}, [[{"type": "command", "attrs": {"retries": 0}}]])
    kept = light_host.path(f"/var/lib/statecfg/cache/{digest}")
    light_host.run(["find", "/var/lib/statecfg/cache", "-name", f"{digest}*", "-delete"])
    assert bundle.parts({}, [[{"type": "command", "attrs": {"argv": ["true"]}}]]) == {}
    apply(light_host, plain)
    assert not kept.exists()
    apply(light_host, command("repeated", argv=["true"], retries=1, effects={}))
    assert kept.exists()


def test_destroy_undoes_a_command_with_a_script(light_host: Host, tmp_path: Path) -> None:
    made = "/srv/undone"
    path = script(tmp_path, f"#!/bin/sh\ncat > {made}\n")
    node = command("made", script=path, stdin=Secret("pw", VALUE), creates=made, undo=["rm", made], retries=1)
    apply(light_host, node, playbook="undone")
    assert light_host.read(made) == VALUE
    report = fleet_run(light_host, [], "destroy", playbook="undone")
    assert report["status"] == "ok", report
    assert not light_host.path(made).exists()


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., str]:
    """Give a function that validates a playbook for two hosts and returns its warnings."""
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "inventory.yml").write_text("hosts: {web1: , web2: }\n")

    def check(resources: str, code: int = 0) -> str:
        (tmp_path / "play.yml").write_text(f"hosts: all\nresources:\n{resources}")
        return statecfg("validate", "play.yml", cwd=tmp_path, code=code).err

    return check


def test_validate_warns_once_about_each_command_that_nothing_guards(checked: Callable[..., str]) -> None:
    text = "this command has no guard, so it runs in every apply; guard it with `creates`, `unless` or `onlyif`, "
    text += "run it after changes only with `restart_on`, or write `always: true`\n"
    build = '  - command: build-{{ host.name }}\n    argv: ["true"]\n'
    other = '  - command: other\n    argv: ["true"]\n    always: false\n'
    expected = f"warning: play.yml:3:5: command:build-web1: {text}warning: play.yml:5:5: command:other: {text}"
    assert checked(build + other) == expected


@pytest.mark.parametrize(
    "attribute",
    [
        "creates: /x", "removes: /x", "unless: [test, -e, /x]", "onlyif: test -e /x", "effects: {}", "always: true",
        'restart_on: ["file:/x"]', "when_host: {path: /x}",
    ],
)  # fmt: skip
def test_a_command_with_a_guard_or_a_clear_intent_gets_no_warning(checked: Callable[..., str], attribute: str) -> None:
    made = "  - file: /x\n    content: x\n"
    assert checked(f'{made}  - command: build\n    argv: ["true"]\n    {attribute}\n') == ""


@pytest.mark.parametrize(
    ("text", "attribute", "said"),
    [
        ("echo hi\n", "", "the first line of make.sh does not name the program that runs it"),
        ("#! bash\n", "", 'write a first line such as "#!/bin/sh", or set interpreter: [bash, -eu]'),
        ("#!/bin/sh\r\n", "", "the lines of make.sh end with CR LF"),
        (None, "", "make.sh does not exist"),
        ("#!/bin/sh\n", "interpreter: [bash, !secret {env: WORD}]", "a secret, which every user of the host can read"),
    ],
)
def test_validate_refuses_a_script_that_the_host_could_not_run(
    checked: Callable[..., str], tmp_path: Path, text: str | None, attribute: str, said: str
) -> None:
    if text is not None:
        (tmp_path / "make.sh").write_bytes(text.encode())
    err = checked(f"  - command: build\n    script: make.sh\n    creates: /x\n    {attribute}\n", code=5)
    assert said in err and "play.yml:" in err
