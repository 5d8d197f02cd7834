"""Hooks of units on their host: real programs over a real channel, and every way in which they can end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine import process
from statecfg.remote.machine.redact import Redactor
from statecfg.remote.units import hooks as unit_hooks
from tests import ROOT
from tests.host.run.test_executor_weight import PYTHONS
from tests.host.units.unit_host import SPEAK, UnitHost, step
from tests.lab.processes import wait_until

Json = dict[str, Any]
OWN = ("relation", "db:0", "mysql/0")
NODES: dict[tuple[str, ...], Json] = {
    OWN: {"private-address": "10.0.0.1"},
    ("relation", "db:0", "wordpress/0"): {"host": "10.0.0.5"},
    ("config",): {"title": "My Title"},
    ("leader",): {},
}
DEBUG, INFO, ERROR = 10, 20, 40


@pytest.fixture
def host(tmp_path: Path) -> Iterator[UnitHost]:
    made = UnitHost(tmp_path, NODES)
    yield made
    made.close()


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[int], list[int]]]:
    """Give a function that waits for a number of process ids in `pids`. Kill these processes at the end of the test."""
    path = tmp_path / "pids"

    def read(least: int) -> list[int]:
        deadline = time.monotonic() + 60
        while True:
            found = [int(word) for word in path.read_text().split()] if path.exists() else []
            if len(found) >= least:
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    yield read
    for pid in read(0):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def hook(host: UnitHost, script: str, **more: Any) -> Json:
    """Run this script as a hook; return its result."""
    if host.units is None:
        host.begin({"hooks/db-relation-changed": (0o755, script.encode())})
    return host.run(step(**more))


def python(text: str) -> str:
    return SPEAK + text


# The recorded scenarios of the original: script → log and error. <C> is the charm's directory.
SCENARIOS: list[tuple[str, list[tuple[int, str]], str]] = [
    (
        "#!/bin/bash\nenv | grep ^JUJU_REL | sort; env | grep -c SHOULD_NOT_LEAK; echo HOME=$HOME\n",
        [(INFO, "JUJU_RELATION=db\nJUJU_RELATION_ID=db:0\n0\nHOME=\n"), (DEBUG, "exit code 0.")],
        "",
    ),
    (
        '#!/bin/bash\npwd; echo "$# $0"; echo $CHARM_DIR\n',
        [(INFO, "<C>\n0 <C>/hooks/db-relation-changed\n<C>\n"), (DEBUG, "exit code 0.")],
        "",
    ),
    (
        "#!/bin/bash\nreadlink /proc/self/fd/0 | sed 's/[0-9]*//g'\n",
        [(INFO, "pipe:[]\n"), (DEBUG, "exit code 0.")],
        "",
    ),
    (
        "#!/bin/bash\necho out1; sleep 0.2; echo err1 >&2; sleep 0.2; printf 'a\\nb\\n'\n",
        [(INFO, "out1\n"), (ERROR, "err1\n"), (INFO, "a\nb\n"), (DEBUG, "exit code 0.")],
        "",
    ),
    ("#!/bin/sh\nexit 3\n", [(DEBUG, "exit code 3.")], "exit code 3."),
    (
        "#!/nonexistent\n",
        [
            (
                ERROR,
                "<C>/hooks/db-relation-changed can't be started: No such file or directory"
                " (its interpreter /nonexistent is missing)\n",
            ),
            (DEBUG, "exit code 1."),
        ],
        "exit code 1.",
    ),
    ("#!/bin/sh\nkill -9 $$\n", [(DEBUG, "signal 9.")], "signal 9."),
    ("echo no interpreter; exit 0\n", [(INFO, "no interpreter\n"), (DEBUG, "exit code 0.")], ""),
    (
        "#!/bin/sh\nprintf '\\303'; sleep 0.2; printf '\\244\\377\\0'\n",
        [(INFO, "ä\ufffd\ufffd"), (DEBUG, "exit code 0.")],
        "",
    ),
]


def test_output_is_logged_by_lines_and_not_by_writes(host: UnitHost) -> None:
    hook(host, "#!/bin/bash\nprintf a; sleep 0.2; printf 'b\\nc'; sleep 0.2; printf d\n")
    assert [text for level, text in host.log() if level == INFO] == ["ab\n", "cd"]


@pytest.mark.parametrize("script, logged, wrong", SCENARIOS, ids=range(len(SCENARIOS)))
def test_recorded_scenarios_give_the_recorded_log_and_error(
    host: UnitHost, monkeypatch: pytest.MonkeyPatch, script: str, logged: list[tuple[int, str]], wrong: str
) -> None:
    monkeypatch.setenv("SHOULD_NOT_LEAK", "1")
    done = hook(host, script)
    charm = str(host.home / "units" / "mysql-0" / "charm")
    joined: list[tuple[int, str]] = []  # adjacent texts of one level are joined, as the pipe may split them
    for level, text in host.log():
        if joined and joined[-1][0] == level:
            joined[-1] = (level, joined[-1][1] + text)
        else:
            joined.append((level, text))
    ends = [(level, f"hook db-relation-changed exited, {text}" if level == DEBUG else text) for level, text in logged]
    assert joined == [(level, text.replace("<C>", charm)) for level, text in ends]
    error = f"Error processing '{charm}/hooks/db-relation-changed': {wrong}" if wrong else ""
    assert (done["ok"], done["ran"], done["error"]) == (not wrong, True, error)
    assert all((each["unit"], each["hook"]) == ("mysql/0", "db-relation-changed") for each in host.of("unit-log"))
    assert host.go() == ""


def test_missing_hooks_are_skipped_and_non_executable_hooks_fail(host: UnitHost) -> None:
    host.begin({"hooks/start": (0o644, b"#!/bin/sh\n"), "hooks/upgrade": (0o755, b"#!/bin/sh\necho up\n")})
    hooks = host.home / "units" / "mysql-0" / "charm" / "hooks"
    done = host.run(step(hook="start", hooks=["start"], relation=None))
    assert (done["ok"], done["error"]) == (False, f"Error processing '{hooks}/start': hook is not executable")
    done = host.run(step(hook="stop", hooks=["stop"], relation=None))
    assert (done["ok"], done["ran"], done["error"]) == (True, False, "")
    assert host.log() == [(INFO, f"Hook does not exist, skipping {hooks}/stop")]
    done = host.run(step(hook="upgrade-charm", hooks=["upgrade-charm", "upgrade"], relation=None))
    assert (done["ok"], done["ran"]) == (True, True)
    assert (INFO, "up\n") in host.log()


def test_a_hook_gets_only_the_documented_environment(host: UnitHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOULD_NOT_LEAK", "1")
    script = python("print(json.dumps(dict(os.environ)), flush=True)")
    assert hook(host, script)["ok"]
    found = json.loads(host.log()[0][1])
    charm = str(host.home / "units" / "mysql-0" / "charm")
    socket, token = found.pop("JUJU_AGENT_SOCKET"), found.pop("JUJU_CLIENT_ID")
    assert len(token) == 32
    tools, _, plain = found.pop("PATH").partition(":")
    assert (os.path.isfile(tools + "/relation-get"), plain) == (True, process.PATH)
    found.pop("LC_CTYPE", None)  # Python sets this if there is no locale
    assert found == {
        **dict.fromkeys(("JUJU_SERVICE", "JUJU_CHARM"), "mysql"),
        **dict.fromkeys(("JUJU_UNIT_NAME", "JUJU_LOCAL_UNIT"), "mysql/0"),
        "CHARM_DIR": charm,
        "JUJU_SOCKET": socket,
        "JUJU_RELATION": "db",
        "JUJU_RELATION_ID": "db:0",
        "JUJU_REMOTE_UNIT": "wordpress/0",
        "JUJU_MEMBERS": "wordpress/0 wordpress/1",
        "DEBIAN_FRONTEND": "noninteractive",
        "APT_LISTCHANGES_FRONTEND": "none",
    }
    host.frames.clear()
    assert host.run(step(relation=None))["ok"]
    assert not {name for name in json.loads(host.log()[0][1]) if name.startswith(("JUJU_RE", "JUJU_MEMBERS"))}
    host.frames.clear()
    assert host.run(step(relation={**step()["relation"], "remote": "wordpress/0", "broken": True, "members": []}))["ok"]
    assert json.loads(host.log()[0][1])["JUJU_REMOTE_UNIT"] == ""


@pytest.mark.parametrize("built", ["dispatch", "layer.yaml"])
def test_charms_for_juju_2_get_its_variables(host: UnitHost, built: str) -> None:
    script = "#!/bin/sh\nenv | grep -E '^JUJU_(HOOK|DISP|CHARM_|VERS|REMOTE_A|DEP)|^PWD' | sort\n"
    program = "dispatch" if built == "dispatch" else "hooks/db-relation-departed"
    host.begin({built: (0o644, b""), "hooks/db-relation-departed": (0o755, b"#!/bin/false\n")} | at(program, script))
    departed = {**step()["relation"], "remote": "wordpress/2"}
    assert host.run(step(hook="db-relation-departed", relation=departed))["ok"]
    charm = host.home / "units" / "mysql-0" / "charm"
    assert host.log()[0][1].splitlines() == [
        f"JUJU_CHARM_DIR={charm}",
        "JUJU_DEPARTING_UNIT=wordpress/2",
        "JUJU_DISPATCH_PATH=hooks/db-relation-departed",
        "JUJU_HOOK_NAME=db-relation-departed",
        "JUJU_REMOTE_APP=wordpress",
        "JUJU_VERSION=2.8.0",
        f"PWD={charm}",
    ]


def at(program: str, script: str) -> dict[str, tuple[int, bytes]]:
    """Return the files of a charm that has only this program."""
    return {program: (0o755, script.encode())}


def test_settings_are_returned_only_if_the_hook_succeeds(host: UnitHost) -> None:
    script = python("put(a='b', c='d'); ask('open_port', port='80', proto='tcp'); sys.exit(os.path.exists('fail'))")
    done = hook(host, script)
    assert done["changes"]["relations"] == {"db:0": {"set": {"a": "b", "c": "d"}, "delete": []}}
    logged = [
        (DEBUG, "opened 80/tcp"),
        (DEBUG, "hook db-relation-changed exited, exit code 0."),
        (
            DEBUG,
            "Flushed values for hook 'db-relation-changed' on 'db:0'\n    Setting changed: 'a'='b' (was unset)\n"
            "    Setting changed: 'c'='d' (was unset)",
        ),
    ]
    assert host.log() == logged
    assert host.of("unit-port") == [{"type": "unit-port", "id": 1, "open": True, "port": "80/tcp"}]
    (host.home / "units" / "mysql-0" / "charm" / "fail").touch()
    host.frames.clear()
    done = host.run(step())
    assert (done["ok"], done["changes"]) == (False, {})
    assert host.log() == [(DEBUG, "opened 80/tcp"), (DEBUG, "hook db-relation-changed exited, exit code 1.")]
    assert [each["port"] for each in host.of("unit-port")] == ["80/tcp"]  # ports open at once, even if the hook fails
    assert [each["node"] for each in host.of("unit-ask")] == [list(OWN)]  # each hook reads its settings again


def test_the_tools_are_on_the_path(host: UnitHost) -> None:
    script = (
        '#!/bin/sh -e\nrelation-set from="$(relation-get host)" to=@- <<END\n$(config-get title)\nEND\n'
        "juju-log -l WARNING done\nrelation-list\n"
    )
    done = hook(host, script)
    assert (done["error"], done["changes"]["relations"]["db:0"]["set"]) == (
        "",
        {"from": "10.0.0.5", "to": "My Title\n"},
    )
    assert host.log()[:2] == [(30, "done"), (INFO, "wordpress/0\nwordpress/1\n")]


def test_secrets_are_masked_in_the_log_but_not_in_settings(host: UnitHost) -> None:
    host.channel.mask = Redactor({"pw": "s3cr3t-w0rd"}).value
    host.nodes["config",] = {"pw": "s3cr3t-w0rd"}
    script = python(
        "word = json.loads(ask('config_get', option_name='pw')['data'])\n"
        "print('it is ' + word[:5], end='', flush=True); time.sleep(0.2); print(word[5:] + '.', flush=True)\n"
        "put(db_word=word); print(word, end='')"
    )
    done = hook(host, script)
    assert done["changes"]["relations"]["db:0"]["set"] == {"db_word": "s3cr3t-w0rd"}
    logged = [text for _, text in host.log()]
    assert logged[:2] == ["it is <secret pw>.\n", "<secret pw>"]
    assert "s3cr3t-w0rd" not in "".join(logged)
    assert "'db_word'='<secret pw>'" in logged[-1]


def test_a_hook_past_its_deadline_is_ended_with_its_children(
    host: UnitHost, monkeypatch: pytest.MonkeyPatch, pids: Callable[[int], list[int]]
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    script = (
        f"#!/bin/sh\ntrap '' TERM\nrelation-set a=b\necho $$ >> {host.place}/pids\n"
        f"setsid sh -c 'trap \"\" TERM; echo $$ >> {host.place}/pids; sleep 1000' &\n"
        "while :; do sleep 1000; done\n"
    )
    begun = time.monotonic()
    done = hook(host, script, timeout=3.0)
    assert time.monotonic() - begun < 23
    path = host.home / "units" / "mysql-0" / "charm" / "hooks" / "db-relation-changed"
    assert done["error"] == f"Error processing '{path}': still running after 3 s, stopped"
    assert (done["ok"], done["changes"]) == (False, {})
    wait_until(lambda: not any(map(alive, pids(2))), 20, "the processes of the hook to end")
    assert not list((host.home / "units" / "mysql-0").glob("running*"))


def test_background_processes_outlive_the_hook_but_cannot_set_anything(
    host: UnitHost, monkeypatch: pytest.MonkeyPatch, pids: Callable[[int], list[int]]
) -> None:
    monkeypatch.setattr(unit_hooks, "HELD", 0.5)
    said = host.place / "said"
    script = python(
        f"hook, unit = os.getpid(), '{host.home}/units/mysql-0'\n"
        "put(a='1'); print('first', flush=True)\n"
        "if not os.fork():\n"
        f"    open('{host.place}/pids', 'a').write(f'{{os.getpid()}}\\n')\n"
        "    while os.getppid() == hook or any(name.startswith('running') for name in os.listdir(unit)):\n"
        "        time.sleep(0.02)\n"
        "    time.sleep(0.1)\n"
        f"    answer = put(a='2'); open('{said}.new', 'w').write(json.dumps(answer))\n"
        f"    os.rename('{said}.new', '{said}')\n"
        "    time.sleep(1000)\n"
    )
    begun = time.monotonic()
    done = hook(host, script)
    assert 0.4 < time.monotonic() - begun < 20  # the hook waits for the held output, but only for a limited time
    assert done["changes"]["relations"]["db:0"]["set"] == {"a": "1"}
    assert host.log()[0] == (INFO, "first\n")
    wait_until(said.exists, 20, "the answer to the background process")
    assert json.loads(said.read_text())["_error_code"] == "NoSuchClient"
    assert host.run(step(hook="stop", hooks=["stop"]))["ok"]
    assert [alive(pid) for pid in pids(1)] == [True]


def test_a_hook_above_the_output_limit_is_stopped(host: UnitHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_hooks, "MOST", 3 << 20)
    done = hook(host, "#!/bin/sh\nrelation-set a=b\nyes >&2 & yes\n")
    assert done["error"].endswith("': output limit: more than 3145728 bytes, stopped")
    assert (done["ok"], done["changes"]) == (False, {})
    assert 3 << 20 < sum(len(text) for _, text in host.log()) < 4 << 20
    assert {level for level, _ in host.log()} == {DEBUG, INFO, ERROR}


def test_a_hook_can_close_its_standard_streams(host: UnitHost) -> None:
    done = hook(host, "#!/bin/sh\nexec <&- >&- 2>&-\nsleep 0.3\nrelation-set a=b\n")
    assert done["changes"]["relations"]["db:0"]["set"] == {"a": "b"}


def test_a_killed_hook_changes_all_or_nothing(host: UnitHost) -> None:
    script = python(
        "print(os.getpid(), flush=True)\n"
        "for number in range(6):\n    put(**{f'{number}-{each}': 'x' for each in range(50)})\n"
    )
    whole = {f"{number}-{each}": "x" for number in range(6) for each in range(50)}
    dice = random.Random(7)
    host.begin({"hooks/db-relation-changed": (0o755, script.encode())})
    ends = set()
    for _ in range(30):
        number = host.start(step())
        pid = int(host.frame(lambda each: each["type"] == "unit-log" and each["level"] == INFO)["text"])
        time.sleep(dice.uniform(0, 0.02))
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        done = host.done(number)
        assert (done["changes"] or {"relations": {}})["relations"] == (
            {"db:0": {"set": whole, "delete": []}} if done["ok"] else {}
        )
        ends.add(done["ok"])
        host.frames.clear()
    assert False in ends


def test_units_run_in_parallel_with_one_hook_each(host: UnitHost) -> None:
    gate = host.place / "gate"
    script = f"#!/bin/sh\nwhile [ ! -e {gate}-$JUJU_UNIT_NAME ]; do sleep 0.02; done\nrelation-set me=$JUJU_UNIT_NAME\n"
    host.begin({"hooks/db-relation-changed": (0o755, script.encode())}, names=("mysql/0", "mysql/11"))
    for unit in ("mysql/0", "mysql/11"):
        host.nodes["relation", "db:0", unit] = {}
    (host.place / "gate-mysql").mkdir()
    first, second, third = (host.start(step(unit=unit)) for unit in ("mysql/0", "mysql/11", "mysql/0"))
    refused = host.done(third)
    assert (refused["ok"], refused["error"]) == (False, "a hook of mysql/0 is still running")
    (host.place / "gate-mysql" / "11").touch()
    assert host.done(second)["changes"]["relations"]["db:0"]["set"] == {"me": "mysql/11"}
    (host.place / "gate-mysql" / "0").touch()
    assert host.done(first)["changes"]["relations"]["db:0"]["set"] == {"me": "mysql/0"}
    assert host.go("enough") == "enough"


def test_losing_the_controller_ends_running_hooks(
    host: UnitHost, monkeypatch: pytest.MonkeyPatch, pids: Callable[[int], list[int]]
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    host.begin(
        {"hooks/db-relation-changed": (0o755, f"#!/bin/sh\necho $$ >> {host.place}/pids\nsleep 1000\n".encode())}
    )
    host.start(step())
    running = pids(1)
    host.channel._lose("the controller closed the connection")
    host.phase.join(60)
    assert host.stop == ["lost: the controller closed the connection"]
    wait_until(lambda: not any(map(alive, running)), 20, "the hook to end")


def test_a_charm_that_cannot_be_installed_fails_the_hook(host: UnitHost) -> None:
    (host.home / "units").mkdir(parents=True)
    (host.home / "units" / "mysql-0").write_text("in the way")
    done = hook(host, "#!/bin/sh\n")
    assert (done["ok"], done["ran"]) == (False, False)
    assert done["error"].startswith(f"{host.home}/units")
    unknown = host.run(step(unit="wiki/0", service="wiki"))
    assert (unknown["ok"], unknown["error"]) == (
        *(False, f"{host.home}/units/wiki-0: the charm of wiki is missing on this host and was not received"),
    )
    assert host.go() == ""


# Runs a hook in a separate Python, as on a host, until the hook ends or both are killed.
ALONE = """
import json, os, sys, threading
root, place, name = sys.argv[1:]
sys.path.insert(0, root)
from statecfg.remote.units import files as unit_files, hooks as unit_hooks
from statecfg.remote.graph.model import Blob
from statecfg.remote.units.agent import Agent
from statecfg.remote.units.context import Context
from statecfg.remote.units.step import UnitStep
assert not [each for each in sys.modules.values() if "site-packages" in str(getattr(each, "__file__", ""))]
left = unit_hooks.end_left(place)
step = UnitStep.from_json({"unit": "mysql/0", "service": "mysql", "charm": "mysql", "hook": name,
        "relations": {"db:0": ["x/0"]},
        "relation": {"id": "db:0", "name": "db", "remote": "x/0", "members": ["x/0"]}})
files = {"hooks/" + name: (0o755, Blob.of(sys.stdin.read()))}
unit_files.install(place, "mysql/0", "1", files)
said = []
context = Context(step, lambda node, over: {"x": "y"}, said.append)
agent = Agent(place, lambda level, text: said.append(text))
token = agent.begin(context)
charm = unit_files.charm_dir(place, "mysql/0")
hook = unit_hooks.Hook(os.path.join(charm, "hooks", name), charm, name, 60.0, context.log)
environment = unit_hooks.environment(step, charm, "/nonexistent", agent.path, token)
changes = []
error = hook.run(environment, lambda pid: None, lambda: changes.append(context.finish()))
agent.close()
print(json.dumps({"left": left, "error": error, "changes": changes, "said": [each["text"] for each in said]}))
"""


@pytest.mark.parametrize("python_on_host", PYTHONS)
def test_a_new_run_ends_hooks_left_by_a_killed_run(
    tmp_path: Path, python_on_host: str, pids: Callable[[int], list[int]]
) -> None:
    argv = [python_on_host, "-I", "-S", "-X", "utf8", "-W", "error", "-c", ALONE, str(ROOT), str(tmp_path)]
    lasting = (
        f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nsetsid sh -c 'echo $$ >> {tmp_path}/pids; exec sleep 1000' &\nwait\n"
    )
    running = subprocess.Popen([*argv, "start"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdin and running.stdout
    running.stdin.write(lasting)
    running.stdin.close()
    try:
        left = pids(2)
    finally:
        running.kill()
        running.wait(10)
        running.stdout.close()
    assert all(map(alive, left))
    text = python(
        "print(put(a='b')); sys.exit(json.loads(ask('relation_get', unit_name='x/0', setting_name='x')['data']) != 'y')"
    )
    done = subprocess.run([*argv, "db-relation-changed"], input=text, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["left"], found["error"]) == (["mysql/0"], "")
    assert found["changes"][0]["relations"] == {"db:0": {"set": {"a": "b"}, "delete": []}}
    assert found["said"][0] == "{'_answer': '1'}\n"
    wait_until(lambda: not any(map(alive, left)), 20, "the processes of the killed hook to end")
    assert [each.name for each in (tmp_path / "units" / "mysql-0").iterdir() if each.name.startswith("running")] == []
