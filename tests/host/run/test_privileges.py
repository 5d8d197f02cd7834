"""Becoming root with sudo: no process, file or report shows the sudo password or a secret that it does not need."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.playbook.secrets import Secret
from statecfg.resources import command, file
from statecfg.run.options import Limits
from statecfg.transport.become import Become
from tests.host.run import rig
from tests.lab import Host, add_user

PASSWORD = "pa55 wörd $HOME 'quoted'"
CANARIES = ["canary-first-0123456789", "canary \"quoted\" 'two' \\n %s", "canäry-üñí", "canary-lines-1\ncanary-lines-2"]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    from tests import lab
    from tests.lab.fixtures import or_skip

    with or_skip():
        (found,) = lab.light_hosts(1, prefix="sudo")
    add_user(found, "free", sudo="nopasswd")
    add_user(found, "asked", sudo="password", password=PASSWORD)
    add_user(found, "nobodys", password=PASSWORD)
    yield found
    found.stop()


def as_root(host: Host, place: str, user: str, become: Become) -> rig.Done:
    owned = file(f"{place}.txt", content="root's\n", mode="0600", owner="root")
    return rig.run(host, rig.define(owned), inventory={"user": user}, become=become)


@pytest.mark.parametrize(("user", "become"), [("free", Become()), ("asked", Become(password=PASSWORD))])
def test_an_apply_with_sudo_acts_as_root(host: Host, place: str, user: str, become: Become) -> None:
    done = as_root(host, place, user, become)
    assert (done.host()["status"], set(done.outcomes().values())) == ("ok", {"changed"}), done.host()
    info = host.path(f"{place}.txt").stat()
    assert (info.st_uid, info.st_mode & 0o7777) == (0, 0o600)
    assert not host.path(f"/home/{user}/.local/state/statecfg").exists()


def test_the_inventory_can_request_sudo(host: Host, place: str) -> None:
    owned = file(f"{place}.txt", content="root's\n", mode="0600", owner="root")
    done = rig.run(host, rig.define(owned), inventory={"user": "free", "become": "sudo"})
    assert done.host()["status"] == "ok"


@pytest.mark.parametrize(
    ("user", "become", "says"),
    [
        ("asked", Become(password="wrong"), "sudo rejected the password"),
        ("asked", Become(), "sudo asks for a password: pass -K"),
        ("nobodys", Become(password=PASSWORD), "sudo does not allow this login to become root"),
        ("free", Become(user="nobody-there"), "user nobody-there does not exist"),
    ],
)
def test_a_sudo_refusal_is_reported_and_nothing_changes(
    host: Host, place: str, user: str, become: Become, says: str
) -> None:
    report = as_root(host, place, user, become).host()
    assert (report["status"], report["error"]["summary"]) == ("unreachable", says)
    assert report["error"]["detail"] == "Nothing was changed."
    assert report["error"]["hint"]
    assert not host.path(f"{place}.txt").exists()


def test_sudo_with_a_password_works_with_a_shell_that_prints_text(host: Host, place: str) -> None:
    host.write("/home/asked/.bashrc", "echo welcome; echo more\n")
    try:
        done = as_root(host, place, "asked", Become(password=PASSWORD))
        assert done.host()["status"] == "ok", done.host()
    finally:
        host.path("/home/asked/.bashrc").unlink()


class Sampler:
    """Reads the arguments and the environment of every process again and again."""

    def __init__(self, *needles: str) -> None:
        self.needles = [needle.encode() for needle in needles]
        self.hits: list[str] = []
        self.samples = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.over.is_set():
            for entry in Path("/proc").iterdir():
                if not entry.name.isdigit():
                    continue
                for what in ("cmdline", "environ"):
                    try:
                        data = (entry / what).read_bytes()
                    except OSError:
                        continue  # the process has ended since the listing
                    self.hits += [f"{entry}/{what}" for needle in self.needles if needle in data]
            self.samples += 1


def test_the_sudo_password_is_in_no_arguments_environment_or_report(host: Host, place: str) -> None:
    slow = command("slow", argv=["sh", "-c", f"env > {place}.env; sleep 1"], creates=f"{place}.env")
    with Sampler(PASSWORD) as sampler:
        become = Become(password=PASSWORD)
        done = rig.run(host, rig.define(slow), inventory={"user": "asked"}, become=become)
    assert done.host()["status"] == "ok"
    assert sampler.samples > 10
    assert not sampler.hits
    print(f"{sampler.samples} samples of every process: the password in none")
    assert PASSWORD not in host.read(f"{place}.env")
    assert PASSWORD not in json.dumps(done.report, ensure_ascii=False)
    assert PASSWORD not in str([event.data for _, event in done.events])
    assert PASSWORD not in repr(become)
    nowhere(host, PASSWORD)


def nowhere(host: Host, text: str, *but: str) -> None:
    """Check that no file written on the host contains the text, except the given files."""
    upper = host.home / "upper"
    for path in upper.rglob("*"):
        if path.is_file() and not path.is_symlink() and f"/{path.relative_to(upper)}" not in but:
            assert text.encode() not in path.read_bytes(), path


def spellings(text: str) -> list[str]:
    """Return the forms in which the text could appear in our output."""
    raw = text.encode()
    return [text, json.dumps(text)[1:-1], repr(text)[1:-1], raw.hex(), base64.b64encode(raw).decode().rstrip("=")[:-1]]


@pytest.mark.parametrize("number", range(len(CANARIES)))
@pytest.mark.parametrize("mode", ["plan", "apply"])
def test_a_secret_appears_only_in_its_target_file(host: Host, place: str, number: int, mode: str) -> None:
    value = CANARIES[number]
    secret = Secret("canary", value)
    path = f"{place}.secret"
    host.write(path, f"{value} was here\n")
    held = file(path, content=secret, mode="0600")
    definition = rig.define(held, command("says-it", shell=f"cat {path}; cat {path} >&2; false", requires=[held]))
    with Sampler(value) as sampler:
        done = rig.run(host, definition, mode, limits=Limits(keep_going=True))
        again = rig.run(host, definition, mode)
    everything = json.dumps([done.report, again.report], ensure_ascii=False)
    everything += str([(event.name, event.data) for _, event in [*done.events, *again.events]])
    for spelling in spellings(value):
        assert spelling not in everything, spelling
    assert "<secret canary>" in everything
    assert not sampler.hits
    if mode == "apply":
        assert host.read(path) == value
        assert done.outcomes()["command:says-it"] == "failed"
    host.path(path).unlink()
    # The former content may be a secret. It is kept for undo, readable only by its owner.
    kept = list(host.path("/var/lib/statecfg/before").glob("*"))
    assert all(each.stat().st_mode & 0o777 == 0o600 and each.parent.stat().st_mode & 0o777 == 0o700 for each in kept)
    nowhere(host, value, *(f"/var/lib/statecfg/before/{each.name}" for each in kept))


def test_a_secret_printed_in_pieces_is_still_masked(host: Host, place: str) -> None:
    value = CANARIES[0]
    half = len(value) // 2
    path = f"{place}.secret"
    shell = f"printf %s {value[:half]}; sleep 0.3; echo {value[half:]}"
    graphs = [file(path, content=Secret("canary", value)), command("pieces", argv=["sh", "-c", shell], effects={})]
    done = rig.run(host, rig.define(*graphs))
    streamed = "".join(event.data["text"] for _, event in done.events if event.name == "output")
    assert value not in streamed
    assert value not in json.dumps(done.report)
