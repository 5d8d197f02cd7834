"""A real sshd on loopback with its own keys. It runs as the user who runs the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import login, owner, processes


@dataclass
class PlainSshd:
    """A running sshd. A client logs in as `user` with `identity` and `known_hosts`."""

    address: str
    port: int
    user: str
    identity: Path
    known_hosts: Path
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        """Return the process id of the listener."""
        return self.process.pid

    def sessions(self) -> list[int]:
        """Return the process ids of the open sessions, which are the children of the listener."""
        return processes.children(self.pid)

    def ssh(
        self, argv: Sequence[str], *, user: str | None = None, stdin: str = "", check: bool = True, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the real ssh client. `argv` is quoted for the remote shell."""
        return login.ssh(self, argv, user=user, stdin=stdin, check=check, seconds=seconds)

    def stop(self) -> None:
        """End the listener, its sessions and their processes."""
        processes.end(self.process)
        owner.forget(self)


def plain_sshd(
    directory: Path,
    *,
    config: Sequence[str] = (),
    forced_command: str | None = None,
    user: str | None = None,
) -> PlainSshd:
    """Start an sshd on 127.0.0.1 at a free port and wait until it answers.

    Parameters: `directory`, the parent of a new directory for keys, configuration and log; `config`, lines of
    sshd_config, which take precedence over the default ones; `forced_command`, a command that all sessions run instead
    of the client's command; `user`, the user who logs in (default: the user who runs the tests; another user needs root
    and must be able to read `directory`).
    Result: the running sshd. Errors: `Unavailable` if this machine has no sshd or the user has no login shell.
    """
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise owner.Unavailable("there is no sshd (Debian: openssh-server)")
    account = pwd.getpwnam(user) if user else pwd.getpwuid(os.geteuid())
    if account.pw_shell.endswith(("/nologin", "/false")):
        raise owner.Unavailable(f"{account.pw_name} has no login shell")
    port = free_port()
    home = directory.resolve() / f"sshd-{port}"
    home.mkdir(parents=True)
    home.chmod(0o755)  # sshd reads authorized_keys as the user who logs in
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # the privilege separation directory of sshd
    login.make_key(home / "host_key")
    login.make_key(home / "identity")
    restriction = "" if forced_command is None else 'command="{}" '.format(forced_command.replace('"', '\\"'))
    (home / "authorized_keys").write_text(restriction + (home / "identity.pub").read_text())
    host_key = " ".join((home / "host_key.pub").read_text().split()[:2])
    (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    lines = [
        *config,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {home / 'host_key'}",
        f"AuthorizedKeysFile {home / 'authorized_keys'}",
        f"PidFile {home / 'pid'}",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "StrictModes no",
        "UsePAM no",
        "UseDNS no",
        "Subsystem sftp internal-sftp",
    ]
    # bash takes the shells of sessions for subshells, which don't read ~/.bashrc. It may take longer than a test.
    variables = ["SHLVL=1"]
    if account.pw_uid == os.geteuid():  # so that sessions don't use the own ledger of the user who runs the tests
        variables.append(f"STATECFG_STATE_DIR={home / 'state'}")
    lines.append(f"SetEnv {' '.join(variables)}")
    (home / "sshd_config").write_text("\n".join(lines) + "\n")
    log = home / "log"
    process = owner.start([program, "-D", "-f", str(home / "sshd_config"), "-E", str(log)], stdin=subprocess.DEVNULL)
    server = PlainSshd("127.0.0.1", port, account.pw_name, home / "identity", home / "known_hosts", log, process)
    owner.remember(server)
    try:
        login.await_ssh(server, process, log)
    except BaseException:
        server.stop()
        raise
    return server


def free_port() -> int:
    """Return a free TCP port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
