"""Plan and apply playbooks/hello.yml in a scratch directory, on this machine and over SSH. Run it with script/demo."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAYBOOK = "playbooks/hello.yml"


class Failed(Exception):
    """A command of the demo failed or had an unexpected result."""


class Demo:
    """Runs the commands one after the other, and prints explanations between them."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.steps, self.folder = scratch, 0, ROOT
        colored = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.bold, self.dim, self.plain = ("\033[1m", "\033[2m", "\033[0m") if colored else ("", "", "")
        # The demo has its own store, ledger and cache: it leaves nothing behind and does not depend on earlier demos.
        mine = {
            "STATECFG_STATE_DIR": str(scratch / "state"),
            "STATECFG_STORE": str(scratch / "store.db"),
            "XDG_CACHE_HOME": str(scratch / "cache"),
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STATECFG_")}
        self.environment = {**kept, **mine}

    def say(self, text: str = "") -> None:
        print(text, flush=True)  # noqa: T201  # the demo prints for people

    def step(self, title: str, *text: str) -> None:
        """Print the number of a new step, its title and a few lines of explanation."""
        self.steps += 1
        self.say(f"\n{self.bold}{self.steps}. {title}{self.plain}")
        for line in text:
            self.say(f"   {line}")

    def statecfg(self, *arguments: str) -> dict[str, int]:
        """Show and run a command. Return the number of resources for each outcome. Raises Failed."""
        shown = shlex.join(["statecfg", *arguments])
        self.say(f"\n{self.dim}${self.plain} {self.bold}{shown}{self.plain}")
        report = self.scratch / "report.json"
        argv = [sys.executable, "-m", "statecfg", *arguments, "--json-into", str(report)]
        done = subprocess.run(argv, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed(f"{shown} ended with exit code {done.returncode}")
        (host,) = json.loads(report.read_text(encoding="utf-8"))["hosts"].values()
        return dict(host["summary"])

    def expect(self, summary: dict[str, int], **counts: int) -> None:
        """Check that a command had the outcomes that the demo promises. Raises Failed."""
        if {name: count for name, count in summary.items() if count} != counts:
            raise Failed(f"expected {counts}, got {summary}")


def here(demo: Demo) -> None:
    """On this machine, show plan, apply, a second apply, the other dialects, a manual change, and destroy."""
    root = demo.scratch / "hello"
    given = ["-e", f"root={root}"]
    demo.step("What would change on this machine?", "Nothing is touched: a plan only reads.")
    demo.expect(demo.statecfg("plan", PLAYBOOK, *given), changed=5)
    if root.exists():
        raise Failed("the plan made something")
    demo.step("Do it.", "Apply shows the plan and asks first; --yes is for scripts like this one.")
    demo.expect(demo.statecfg("apply", PLAYBOOK, *given, "--yes"), changed=5)
    show(demo, root)
    demo.step("Again: there is nothing left to do.")
    demo.expect(demo.statecfg("apply", PLAYBOOK, *given, "--yes"), unchanged=5)
    demo.step("The same definition in Python and in Hy: nothing to do for them, either.")
    for ending in ("py", "hy"):
        demo.expect(demo.statecfg("plan", f"playbooks/hello.{ending}", *given), unchanged=5)
    greeting = root / "greeting.txt"
    demo.step("A user edits a file by hand.", f"{greeting}", "The plan shows that difference, and nothing else.")
    greeting.write_text("Hello from another user.\n", encoding="utf-8")
    demo.expect(demo.statecfg("plan", PLAYBOOK, *given), changed=1, unchanged=4)
    demo.expect(demo.statecfg("apply", PLAYBOOK, *given, "--yes"), changed=1, unchanged=4)
    demo.step("Take it all back.", "The machine remembers what the playbook made, and what was there before: nothing.")
    demo.expect(demo.statecfg("destroy", PLAYBOOK, *given, "--yes"), changed=5)
    if root.exists():
        raise Failed(f"{root} is still there")


def show(demo: Demo, root: Path) -> None:
    """Print the current contents of the directory."""
    demo.say(f"\n   {root}/")
    for path in sorted(root.iterdir()):
        leads = f" -> {path.readlink()}" if path.is_symlink() else ""
        first = path.read_text(encoding="utf-8").splitlines()[-1]
        demo.say(f"     {path.name + leads:28} {demo.dim}{first}{demo.plain}")


def over_ssh(demo: Demo) -> None:
    """Show a saved plan and its apply over SSH. The demo starts an sshd on loopback for it."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    account = pwd.getpwuid(os.geteuid())
    if program is None or shutil.which("ssh-keygen") is None:
        demo.step("Over SSH: left out.", "There is no sshd here to log in to (Debian: apt-get install openssh-server).")
        return
    if account.pw_shell.endswith(("/nologin", "/false")):
        demo.step("Over SSH: left out.", f"The user {account.pw_name} has no login shell.")
        return
    with server(demo.scratch / "sshd", program, demo.scratch / "state") as (port, directory):
        demo.step(
            "The same over SSH.",
            f"A separate sshd listens on 127.0.0.1, port {port}, with keys made for this minute.",
            "The playbook is a copy that says `hosts: demo`. The plan is saved, then done exactly as it was saved.",
        )
        demo.folder = project(demo.scratch / "project", port, account.pw_name, directory)
        root = demo.scratch / "hello-over-ssh"
        given = ["-e", f"root={root}"]
        demo.expect(demo.statecfg("plan", PLAYBOOK, *given, "--out", "hello.plan"), changed=5)
        demo.expect(demo.statecfg("apply", "hello.plan"), changed=5)
        show(demo, root)
        demo.step("Again, over SSH: nothing to do.")
        demo.expect(demo.statecfg("apply", PLAYBOOK, *given, "--yes"), unchanged=5)


def project(folder: Path, port: int, user: str, directory: Path) -> Path:
    """Write a project with one host, `demo`, and a playbook for it. Return its directory."""
    (folder / "playbooks").mkdir(parents=True)
    source = ROOT / PLAYBOOK
    text = source.read_text(encoding="utf-8").replace('hosts: "@local"', "hosts: demo")
    (folder / PLAYBOOK).write_text(text, encoding="utf-8")
    shutil.copy(source.with_name("hello.html.j2"), folder / "playbooks")
    host = f"{{address: 127.0.0.1, port: {port}, user: {user}, key: {directory / 'identity'}}}"
    (folder / "inventory.yml").write_text(f"hosts:\n  demo: {host}\n", encoding="utf-8")
    settings = f'ssh_config = "{directory / "ssh_config"}"\n'
    (folder / "statecfg.toml").write_text(settings, encoding="utf-8")
    return folder


@contextmanager
def server(directory: Path, program: str, state: Path) -> Iterator[tuple[int, Path]]:
    """Run an sshd with new keys on loopback as the current user. It ends at the end of the `with` block."""
    directory.mkdir(mode=0o700)
    for name in ("host_key", "identity"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "statecfg-demo", "-f", str(directory / name)]
        subprocess.run(keygen, check=True)
    port = free_port()
    public = " ".join((directory / "host_key.pub").read_text(encoding="utf-8").split()[:2])
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {directory / 'host_key'}",
        f"AuthorizedKeysFile {directory / 'identity.pub'}",
        "PidFile none",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "StrictModes no",  # safe, because only this user can enter the directory of the keys
        "UsePAM no",
        f"SetEnv STATECFG_STATE_DIR={state}",
    ]
    (directory / "sshd_config").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}\n", encoding="utf-8")
    client = f"Host *\n  UserKnownHostsFile {directory / 'known_hosts'}\n  IdentitiesOnly yes\n"
    (directory / "ssh_config").write_text(client, encoding="utf-8")
    made = make_privilege_separation_directory()
    log = directory / "log"
    argv = [program, "-D", "-f", str(directory / "sshd_config"), "-E", str(log)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        await_greeting(process, port, log)
        yield port, directory
    finally:
        process.terminate()
        process.wait()
        if made is not None:
            made.rmdir()


def make_privilege_separation_directory() -> Path | None:
    """Create the empty directory that an sshd of root needs. Return it if it did not exist before."""
    folder = Path("/run/sshd")
    if os.geteuid() != 0 or folder.exists():
        return None
    folder.mkdir(mode=0o755)
    return folder


def await_greeting(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the sshd answers. Raises Failed with its log if it does not."""
    deadline = time.monotonic() + 15
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:  # the sshd does not listen yet
            time.sleep(0.05)
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    raise Failed(f"the sshd did not start:\n{said}")


def free_port() -> int:
    """Return a free TCP port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ended(number: int, frame: object) -> None:
    """On SIGTERM, clean up and exit as on Ctrl-C."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the demo. Return the exit code."""
    parser = argparse.ArgumentParser(prog="script/demo", description="Show statecfg at work in a scratch directory.")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory there")
    keep = parser.parse_args().keep
    signal.signal(signal.SIGTERM, ended)
    scratch = Path(tempfile.mkdtemp(prefix="statecfg-demo-"))
    demo = Demo(scratch)
    try:
        here(demo)
        over_ssh(demo)
        where = f"It is all in {scratch}." if keep else f"{scratch} is removed again; --keep leaves it there."
        demo.say(f"\n{where}\nRead on: README.md, docs/tutorial.md. Try: .venv/bin/statecfg --help")
    except Failed as problem:
        demo.say(f"\nscript/demo: {problem}")
        return 1
    except KeyboardInterrupt:
        demo.say("\nStopped.")
        return 130
    finally:
        if not keep:
            shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
