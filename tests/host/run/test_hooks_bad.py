"""Misbehaving programs and services as hooks of a run: they are limited and reported, and the run continues."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.host.hooks.http.servers import Asked, answer, serving
from tests.host.hooks.test_http_bad_services import HEAD, drip, stall
from tests.host.run import hooked, rig
from tests.host.run.hooked import Site
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts

BIG = 1 << 20
PROGRAMS = {
    "hangs": "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1000; done\n",
    "floods": "#!/bin/sh\nhead -c 1G /dev/zero &\nhead -c 1G /dev/zero >&2\nwait\n",
    "never-reads": '#!/bin/sh\nexec <&-\nsleep 0.2\necho \'{"output": "done"}\'\n',
    "stays": "#!/bin/sh\ncat > /dev/null\nsetsid sleep 1000 > /dev/null 2>&1 < /dev/null &\n",
    "stays-with-pipe": "#!/bin/sh\ncat > /dev/null\nsetsid sleep 1000 &\n",
    "signal": "#!/bin/sh\ncat > /dev/null\nkill -SEGV $$\n",
    "invalid-json": "#!/bin/sh\ncat > /dev/null\nprintf '{\"output\": \\n  nope}'\n",
    "two-documents": "#!/bin/sh\ncat > /dev/null\necho '{}{}'\n",
    "not-executable": "#!/bin/sh\n",
    "no-interpreter": "#!/srv/no/such/program\n",
    "loud": "#!/bin/sh\nexec >&1\ncat > /dev/null\nhead -c 1000000 /dev/zero | tr '\\0' '\\001'\nexit 9\n",
    "no-program": "\x7fELF\0\0\0\0",
}


@dataclass
class Ended:
    """How the command ended: exit code, output, duration in seconds and peak memory in MiB."""

    code: int
    report: dict[str, Any]
    err: str
    seconds: float
    memory: float


# A forked process starts with the memory of its parent, so a small process starts the command.
BETWEEN = """
import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
os.write(int(sys.argv[1]), b"%d" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def measured(site: Site, *words: str) -> Ended:
    """Run the command as `Site.run` does, and measure it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **site.environment}
    begun = time.monotonic()
    argv = [sys.executable, "-m", "statecfg", *words, "--json"]
    with (
        open(site.root / "out", "w+b") as out,
        open(site.root / "err", "w+b") as err,
        open(site.root / "kb", "w") as kb,
    ):
        between = [sys.executable, "-S", "-c", BETWEEN, str(kb.fileno()), *argv]
        ended = subprocess.run(
            between, cwd=site.root, env=environment, stdout=out, stderr=err, pass_fds=[kb.fileno()], check=False
        )
    text = (site.root / "out").read_text()
    assert text, (site.root / "err").read_text()
    seconds, used = time.monotonic() - begun, int((site.root / "kb").read_text())
    return Ended(ended.returncode, json.loads(text), (site.root / "err").read_text(), seconds, used / 1024)


@pytest.fixture(scope="module")
def machines() -> Iterator[list[Host]]:
    yield from light_hosts(2, "bad")


def bad_site(root: Any, machines: list[Host], policy: str = "continue") -> Site:
    """Return a project where each bad program is a hook of a separate file, on the controller and on the host."""
    site = Site(root, machines)
    resources = "".join(f"- file: /srv/site-{name}\n  content: one\n  tags: [{name}]\n" for name in PROGRAMS)
    site.playbook(resources)
    for name, program in PROGRAMS.items():
        folder = site.type(name, {"post-create": program}, "text: {default: ''}\n")
        if name == "not-executable":
            (folder / "post-create").chmod(0o644)
        for host, where in zip(machines, ("controller", "host"), strict=True):
            configuration = {"text": "x" * BIG} if name == "never-reads" else {}
            site.register(
                f"{name}-{where}",
                {
                    "exec": {"type": name, "configuration": configuration}, "events": ["post-create"], "where": where,
                    "select": {"hosts": host.name, "tags": [name]}, "onFailure": policy,
                    "deadline": "PT1S" if name == "hangs" else "PT1M",
                },
            )  # fmt: skip
    return site


SAID = {
    "hangs": "still running after 1 s, stopped", "floods": "output limit: more than", "signal": "ended by signal 11",
    "invalid-json": "invalid JSON returned from hook (line 2, column 3: Expecting value)",
    "two-documents": "invalid JSON returned from hook (line 1, column 3: Extra data)",
    "not-executable": "not-executable.hook/post-create is not executable",
    "no-interpreter": "(its interpreter /srv/no/such/program is missing)", "no-program": "Exec format error",
    "loud": "invalid JSON returned from hook (line 1, column 1",
}  # fmt: skip


@pytest.fixture(scope="module")
def bad(machines: list[Host], tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Ended]:
    """Give a project whose hooks are all bad, and how an apply of it ended."""
    site = bad_site(tmp_path_factory.mktemp("bad") / "site", machines)
    return site, measured(site, "apply", "site.yml", "--yes")


def test_a_run_with_misbehaving_hook_programs_succeeds_within_limits(
    bad: tuple[Site, Ended], machines: list[Host]
) -> None:
    site, ended = bad
    print(f"{ended.seconds:.1f} s, {ended.memory:.0f} MiB")
    assert (ended.code, ended.memory < 250, ended.seconds < 120) == (0, True, True), ended.err
    for host in ended.report["hosts"].values():
        assert host["status"] == "ok" and set(hooked.outcomes(host).values()) == {"changed"}
    assert not hooked.left_here(site)
    processes.wait_until(lambda: not any(map(rig.everything_ours, machines)), 20, "all processes on the hosts to end")
    assert len(ended.err) < 40_000 and "\0" not in ended.err


@pytest.mark.parametrize("where", ["controller", "host"])
def test_the_report_and_the_hook_log_name_every_misbehaving_program(
    bad: tuple[Site, Ended], machines: list[Host], where: str
) -> None:
    site, ended = bad
    host = machines[where == "host"]
    fired = {each["hook"].removesuffix(f"-{where}"): each for each in ended.report["hosts"][host.name]["fired"]}
    assert sorted(fired) == sorted(PROGRAMS)
    for name, each in fired.items():
        assert each["status"] == ("continued" if name in SAID else "ok"), each
        assert SAID.get(name, "") in each.get("error", "") and len(each.get("error", "")) < 1200
        if name in SAID:
            assert f"{host.name}: hook {name}-{where} (post-create of file:/srv/site-{name}): failed; " in ended.err
    log = site.run("hook", "log", "--limit", "40", "--json").json()["events"]
    logged = {each["hook"].removesuffix(f"-{where}"): each for each in log if each["hook"].endswith(where)}
    for name in PROGRAMS:
        words = json.dumps([logged[name].get(key, "") for key in ("error", "detail", "msg", "exit_status")])
        assert logged[name]["resource"] == f"file:/srv/site-{name}"
        assert (logged[name]["severity"] != "info") == (name in SAID)
        for part in SAID.get(name, "").split(" ("):
            assert part.strip("()") in words, words


def flood(line: socket.socket, _: Asked) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
    for _ in range(100):
        line.sendall(b" " * BIG)


SERVICES = {
    "stalls": (stall, "Client.Timeout exceeded"), "drips": (drip(HEAD, b" "), "Client.Timeout"),
    "redirects": (answer(302, "", Location="http://127.0.0.2:9/v1"), "redirect"),
    "fails": (answer(500, "boom"), "returned 500: boom"), "floods": (flood, "its body is larger than"),
    "lies": (answer(200, '{"object": '), "unexpected EOF"),
}  # fmt: skip


def test_a_run_with_misbehaving_http_hooks_succeeds_within_limits(machines: list[Host], tmp_path: Path) -> None:
    site = Site(tmp_path / "site", machines[:1])
    site.files(served="1")
    with ExitStack() as stack:
        urls = {name: stack.enter_context(serving(talk)).url for name, (talk, _) in SERVICES.items()}
        with serving(answer(200)) as gone:
            pass
        for name, url in {**urls, "refuses": gone.url}.items():
            timeout = "PT1S" if name in ("stalls", "drips") else "PT30S"
            site.http(url, name, onFailure="continue", hook={"timeout": timeout})
        ended = measured(site, "apply", "site.yml", "--yes")
    (host,) = ended.report["hosts"].values()
    assert (ended.code, host["status"], ended.memory < 250, ended.seconds < 100) == (0, "ok", True, True), ended.err
    fired = {each["hook"]: each for each in host["fired"]}
    expected = {**{name: words for name, (_, words) in SERVICES.items()}, "refuses": "onnection refused"}
    assert {each["status"] for each in fired.values()} == {"continued"} and sorted(fired) == sorted(expected)
    for name, words in expected.items():
        assert words in fired[name]["error"]
    assert hooked.outcomes(host) == {"file:/srv/site-served": "changed"}
