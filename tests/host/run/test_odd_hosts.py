"""Unusual hosts: login shells that print text, other login shells, odd environments and other Pythons."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.resources import command, directory, file, line_in_file, symlink
from tests.host.run import rig
from tests.lab import Host, add_user

PYTHONS = sorted(
    {
        str(path.resolve()): path
        for path in [
            *Path("/root/.pyenv/versions").glob("3.*/bin/python3"),
            *(Path(f"/usr/bin/python3.{minor}") for minor in range(8, 20)),
        ]
        if path.exists()
    }.values()
)


def version(python: Path) -> tuple[int, ...]:
    said = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, said.stdout.split()))


GOOD = [path for path in PYTHONS if version(path) >= (3, 8)]
OLD = [path for path in PYTHONS if version(path) < (3, 8)]


@pytest.fixture(scope="module")
def user(target: Host) -> str:
    add_user(target, "odd")
    return "odd"


@pytest.fixture
def home(target: Host, user: str) -> Iterator[str]:
    """Give the home of an ordinary user, and restore it afterwards."""
    place = f"/home/{user}"
    target.run(["cp", "-a", place, "/srv/home-before"])
    yield place
    target.run(["rm", "-rf", place])
    target.run(["mv", "/srv/home-before", place])
    target.run(["usermod", "--shell", "/bin/bash", user])


def as_user(target: Host, user: str, place: str, name: str = "made", **more: object) -> rig.Done:
    made = file(f"{place}/{name}", content="made\n", mode="0600")
    return rig.run(target, rig.define(made), inventory={"user": user, **more})


def worked(done: rig.Done) -> None:
    report = done.host()
    assert (report["status"], set(done.outcomes().values())) == ("ok", {"changed"}), report


@pytest.mark.parametrize("size", [40, 10_000, 60_000])
def test_a_login_shell_that_prints_text_causes_only_a_warning(target: Host, user: str, home: str, size: int) -> None:
    target.write(f"{home}/.bashrc", f'printf \'%{size}s\' \'{{"type": "end", "status": "ok"}}\'\necho noise >&2\n')
    done = as_user(target, user, home)
    worked(done)
    (warning,) = done.host()["warnings"]
    assert f"its login shell prints {size} bytes in a session without a terminal" in warning


HALVES = """#!/usr/bin/python3
import os, sys
write = os.write
os.write = lambda opened, data: write(opened, data[: len(data) // 2 + 1])
at = sys.argv.index("-c") + 1
code = sys.argv[at]
sys.argv = ["-c", *sys.argv[at + 1 :]]
exec(compile(code, "<string>", "exec"))
"""


def test_a_system_that_writes_only_half_of_what_it_is_given(target: Host, user: str, home: str) -> None:
    target.write(f"{home}/python3", HALVES, mode=0o755)
    worked(as_user(target, user, home, python=f"{home}/python3"))
    slow = rig.run(target, rig.chain(f"{home}/slow", 1, 6.0, "word"), inventory={"python": f"{home}/python3"})
    assert slow.host()["status"] == "ok", slow.host()  # with a heartbeat


def test_a_login_shell_that_prints_too_much_is_refused(target: Host, user: str, home: str) -> None:
    target.write(f"{home}/.bashrc", "printf '%100000s' noise\n")
    report = as_user(target, user, home).host()
    assert report["status"] == "unreachable"
    assert report["error"]["summary"] == "its login shell printed more than 65536 bytes before the executor began"
    assert "start-up files" in report["error"]["hint"]


def test_output_of_a_command_is_never_read_as_a_frame(target: Host, place: str) -> None:
    said = "yes statecfg-executor | head -c 100000"
    script = f'for fd in 0 1 2 3 4 5 6 7 8 9; do eval "{said} >&$fd" 2>/dev/null; done; true'
    done = rig.run(target, rig.define(command("noise", shell=script, creates=f"{place}.none", effects={})))
    assert done.host()["status"] == "failed"
    assert "did not converge" in str(done.host()["layers"])


SHELLS = [shell for shell in ("dash", "bash", "zsh", "fish", "tcsh", "csh", "ksh", "busybox") if shutil.which(shell)]


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "busybox"])
def test_an_apply_works_with_any_login_shell(target: Host, user: str, home: str, shell: str) -> None:
    target.run(["usermod", "--shell", str(shutil.which(shell)), user])
    worked(as_user(target, user, home))


def test_an_account_without_login_is_reported_as_unreachable(target: Host, user: str, home: str) -> None:
    target.run(["usermod", "--shell", "/usr/sbin/nologin", user])
    report = as_user(target, user, home).host()
    assert report["status"] == "unreachable"
    assert "This account is currently not available" in report["error"]["summary"]
    assert "may run programs" in report["error"]["hint"]


@pytest.mark.parametrize("umask", ["000", "077"])
def test_the_login_umask_does_not_affect_file_modes(target: Host, user: str, home: str, umask: str) -> None:
    target.write(f"{home}/.bashrc", f"umask {umask}\n")
    folder = directory(f"{home}/folder")
    done = rig.run(target, rig.define(folder, file(f"{home}/folder/f", content="x", requires=[folder])),
                   inventory={"user": user})  # fmt: skip
    worked(done)
    modes = {path: target.path(f"{home}/{path}").stat().st_mode & 0o7777 for path in ("folder", "folder/f")}
    assert modes == {"folder": 0o755, "folder/f": 0o644}
    assert target.path(f"{home}/.local/state/statecfg").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    "line", ["unset HOME", "export LANG=C LC_ALL=C", "export LC_ALL=tr_TR.ISO-8859-9", "export PYTHONPATH=/nonsense"]
)
def test_the_login_environment_does_not_affect_an_apply(target: Host, user: str, home: str, line: str) -> None:
    target.write(f"{home}/.bashrc", f"{line}\n")
    worked(as_user(target, user, home, "gemacht-ö-ä"))
    assert target.path(f"{home}/gemacht-ö-ä").read_text() == "made\n"


def test_an_apply_works_with_a_full_noexec_tmp(target: Host, user: str, home: str) -> None:
    target.run(["mount", "-t", "tmpfs", "-o", "noexec,nosuid,size=4k,mode=1777", "none", "/tmp"])
    try:
        target.run(["sh", "-c", "cat /dev/zero > /tmp/fill || true"])
        worked(as_user(target, user, home))
    finally:
        target.run(["umount", "/tmp"])


def shims(target: Host, home: str, *names: str) -> None:
    """Limit the user's PATH to links to these programs."""
    target.run(["rm", "-rf", f"{home}/bin"])
    for name in names:
        target.run(["mkdir", "-p", f"{home}/bin"])
        target.run(["ln", "-s", name, f"{home}/bin/{Path(name).name}"])
    target.write(f"{home}/.bashrc", f"PATH={home}/bin\n")


def test_a_host_without_python_is_reported_as_unreachable(target: Host, user: str, home: str) -> None:
    shims(target, home, "/bin/true")
    report = as_user(target, user, home).host()
    assert report["status"] == "unreachable"
    assert "no Python 3.8 or newer found on this host; searched for python3 python3.14" in report["error"]["summary"]
    assert "found: none" in report["error"]["summary"]
    assert "python: /path/to/python3" in report["error"]["hint"]


@pytest.mark.skipif(not OLD, reason="not run on this machine: there is no Python older than 3.8")
@pytest.mark.parametrize("old", OLD, ids=lambda path: path.parts[-3])
def test_a_host_with_only_an_old_python_is_reported_as_unreachable(
    target: Host, user: str, home: str, old: Path
) -> None:
    report = rig.run(target, rig.define(file("/srv/old", content="x")), inventory={"python": str(old)}).host()
    assert report["status"] == "unreachable"
    assert f"found: {old}" in report["error"]["summary"]
    assert f"is Python {'.'.join(map(str, version(old)))}" in report["error"]["summary"]


def test_a_missing_python_from_the_inventory_is_reported(target: Host) -> None:
    done = rig.run(target, rig.define(file("/srv/old", content="x")), inventory={"python": "/opt/none/python3"})
    assert "searched for /opt/none/python3; found: none" in done.host()["error"]["summary"]


@pytest.mark.parametrize("python", GOOD, ids=lambda path: ".".join(map(str, version(path))))
def test_every_python_plans_and_applies(target: Host, place: str, python: Path) -> None:
    top = directory(place, mode="0750")
    text = file(f"{place}/text", content="a line\n", requires=[top])
    large = file(f"{place}/large", content="0123456789\n" * 2000, requires=[top])
    definition = rig.define(
        top, text, large,
        symlink(f"{place}/link", target="text", requires=[top]),
        line_in_file(f"{place}/text-2", line="key = value", create=True, requires=[top]),
        command("make", shell=f"date > {place}/made", creates=f"{place}/made", requires=[top]),
    )  # fmt: skip
    with_this = {"inventory": {"python": str(python)}}
    plan = rig.run(target, definition, "plan", **with_this)
    assert (plan.host()["status"], plan.host()["summary"]) == ("ok", {"changed": 6}), plan.host()
    assert not target.path(place).exists()
    done = rig.run(target, definition, **with_this)
    assert (done.host()["status"], done.host()["summary"]) == ("ok", {"changed": 6}), done.host()
    again = rig.run(target, definition, **with_this)
    assert (again.host()["status"], again.host()["summary"]) == ("ok", {"unchanged": 6}), again.host()
