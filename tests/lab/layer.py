"""The read-only layer between the files of this machine and those of a host. It hides files that a new Debian lacks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tests.lab import login, owner
from tests.lab.few_packages import STATUS, few_packages
from tests.lab.unused_units import unused_units

# Directories that are empty when a host starts, with their modes.
EMPTY = {
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    "run": 0o755,
    "dev": 0o755,
    "mnt": 0o755,
    "srv": 0o755,
    "etc/systemd/system": 0o755,
    "etc/apt/sources.list.d": 0o755,
    "etc/apt/apt.conf.d": 0o755,
    "etc/apt/auth.conf.d": 0o755,
    "etc/apt/preferences.d": 0o755,
    "etc/sudoers.d": 0o750,
    "etc/update-motd.d": 0o755,
    "etc/ssh": 0o755,
    "var/lib/apt/lists": 0o755,
    "var/cache/apt": 0o755,
    "var/log": 0o755,
}
# Files and directories that do not exist on hosts.
HIDDEN = [
    "etc/machine-id",
    "etc/apt/sources.list",
    "usr/sbin/policy-rc.d",  # container images use it to prevent the start of services
    "etc/statecfg",
    "var/lib/statecfg",
    "var/cache/statecfg",
]
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer", "man-db.timer", "systemd-timesyncd.service", "getty.target"]

SSHD_CONFIG = """\
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM yes
UseDNS no
PrintMotd no
MaxStartups 200
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
"""
SSH_UNIT = "/lib/systemd/system/ssh.service"
# apt describes the state of all packages in a compressed log, also when it only simulates an installation. Without this
# log, a simulation needs a third of the CPU time.
APT = 'Dir::Log::Planner "/dev/null";\n'


def lower_layer() -> Path:
    """Return the layer of this test process. The first call creates it. The key `base()/key` logs in as root."""
    home = owner.base()
    layer = home / "layer"
    if layer.exists():
        return layer
    login.make_key(home / "key")
    layer.mkdir(mode=0o755)
    for name, mode in EMPTY.items():
        _empty(layer, name, mode)
    for name in (*HIDDEN, *unused_units()):
        _hide(layer, name)
    for entry in os.listdir("/root"):
        if entry != ".pyenv":  # other versions of Python, if installed
            _hide(layer, f"root/{entry}")
    _ssh(layer, home)
    _devices(layer / "dev")
    units = layer / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    (units / "multi-user.target.wants").mkdir()
    (units / "multi-user.target.wants/ssh.service").symlink_to(SSH_UNIT)
    (layer / "var/cache/apt/archives/partial").mkdir(parents=True)
    (layer / "var/lib/apt/lists/partial").mkdir()
    (layer / "var/log/apt").mkdir()
    write(layer, "etc/apt/apt.conf.d/tests", APT)
    if STATUS.exists():
        write(layer, str(STATUS).lstrip("/"), few_packages())
    (layer / "run/sshd").mkdir(mode=0o755)
    (layer / "run/lock").mkdir(mode=0o1777)
    return layer


def bare_layer(bare: Path) -> Path:
    """Return the layer over a bare Debian. The first call creates it.

    It contains root's authorized key, and hides units that no test needs.
    """
    home = owner.base()
    lower_layer()  # creates the key
    layer = home / "bare"
    if not layer.exists():
        keys = layer / "root/.ssh"
        keys.mkdir(parents=True)
        for directory in (keys, layer / "root"):
            directory.chmod(0o700)
        _authorize(keys, home)
        for name in unused_units(bare):
            _parents(layer, name)
            _whiteout(layer, name)
        write(layer, "etc/apt/apt.conf.d/tests", APT)
    return layer


def hide(layer: Path, names: Iterable[str]) -> None:
    """Hide files and directories of this machine in a layer."""
    for name in names:
        _hide(layer, name)


def write(layer: Path, name: str, text: str) -> None:
    """Write a file into a layer."""
    _parents(layer, name)
    (layer / name).write_text(text)


def directory(layer: Path, name: str) -> None:
    """Make a directory in a layer that is empty on hosts."""
    whiteout = layer / name
    if whiteout.is_char_device():
        whiteout.unlink()
    _empty(layer, name, 0o755)


def _authorize(keys: Path, home: Path) -> None:
    (keys / "authorized_keys").write_text((home / "key.pub").read_text())
    (keys / "authorized_keys").chmod(0o600)


def _ssh(layer: Path, home: Path) -> None:
    (layer / "etc/ssh/sshd_config").write_text(SSHD_CONFIG)
    keys = layer / "root/.ssh"
    if not (keys.exists() or keys.is_symlink()):
        keys.mkdir(mode=0o700)
    else:
        keys.unlink()  # the whiteout that hides the directory of this machine
        _empty(layer, "root/.ssh", 0o700)
    _authorize(keys, home)


def _devices(directory: Path) -> None:
    for name, (major, minor) in DEVICES.items():
        os.mknod(directory / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (directory / name).chmod(0o666)
    for name, target in {
        "fd": "/proc/self/fd",
        "stdin": "fd/0",
        "stdout": "fd/1",
        "stderr": "fd/2",
        "ptmx": "pts/ptmx",
    }.items():
        (directory / name).symlink_to(target if target.startswith("/") or name == "ptmx" else f"/proc/self/{target}")
    (directory / "pts").mkdir()
    (directory / "shm").mkdir(mode=0o1777)


def _parents(layer: Path, name: str) -> None:
    """Create the parents of a name with the owners and modes of this machine. An overlay shows those of a layer."""
    above = Path(name).parents
    for directory in reversed([parent for parent in above if parent != Path(".")]):
        if not (layer / directory).exists():
            (layer / directory).mkdir()
            real = Path("/", directory)
            if real.exists():
                now = real.stat()
                os.chown(layer / directory, now.st_uid, now.st_gid)
                (layer / directory).chmod(stat.S_IMODE(now.st_mode))


def _empty(layer: Path, name: str, mode: int) -> None:
    _parents(layer, name)
    (layer / name).mkdir(exist_ok=True)
    (layer / name).chmod(mode)
    os.setxattr(layer / name, "trusted.overlay.opaque", b"y")


def _hide(layer: Path, name: str) -> None:
    """Create a whiteout, which hides the entry below it."""
    if Path("/", name).exists() or Path("/", name).is_symlink():
        _parents(layer, name)
        _whiteout(layer, name)


def _whiteout(layer: Path, name: str) -> None:
    os.mknod(layer / name, stat.S_IFCHR, os.makedev(0, 0))
