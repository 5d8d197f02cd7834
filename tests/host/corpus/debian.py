"""Builds a bare Debian in a directory, with a repository of the packages that the playbooks install.

mmdebstrap builds it once for each list of packages, from the Debian sources of this machine's apt. This takes about a
minute and downloads 120 MB. The result stays in the user's cache directory, so later runs need no network. The packages
are compressed anew with zstd, because unpacking all of Debian's own takes 4 s of CPU time more, on each host.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from tests.lab.apt import AptRepository
from tests.lab.owner import Unavailable

BASE = [
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "python3", "iproute2", "procps",
    "ca-certificates", "curl", "sudo", "kmod", "cron",
]  # fmt: skip
# apt resolves each list separately, so that a host can install one list without the others.
CLOSURES = (
    "nginx ssl-cert openssl",
    "redis-server",
    "fail2ban nftables unattended-upgrades apt-listchanges",
    "chrony tzdata",
    "postgresql python3-psycopg2",
    "mariadb-server python3-pymysql",
    "auditd libpam-pwquality",
    "logrotate rsyslog",
)
# Timers whose jobs would lock dpkg or change the host at some time of the day.
TIMERS = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer"
REPOSITORY = "srv/debian"
FETCH = """\
set -eu
for closure in {closures}; do
    apt-get -qq --yes --no-install-recommends --download-only -o Dir::Cache::archives={archives} install $closure
done
"""
FORMAT = 2  # increase this number to build the directory again


def bare() -> Path:
    """Return the directory of the bare Debian, and build it if necessary; raise `Unavailable` if this is impossible."""
    for program, package in {"mmdebstrap": "mmdebstrap", "dpkg-deb": "dpkg", "apt-get": "apt"}.items():
        if not shutil.which(program):
            raise Unavailable(f"there is no {program} (Debian: {package})")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "statecfg-tests"
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    wanted = repr((FORMAT, codename(), platform.machine(), BASE, CLOSURES, TIMERS))
    made = cache / f"debian-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
    with (cache / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = cache / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            _make(unfinished / "root", unfinished)
            (unfinished / "root").rename(made)
            shutil.rmtree(unfinished)
    return made


def codename() -> str:
    """Return the codename of this machine's Debian release; raise `Unavailable` on another system."""
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise Unavailable("the corpus installs Debian's packages, and this machine is not a Debian")
    return release["VERSION_CODENAME"]


def _sources() -> str:
    """Return this machine's sources of Debian packages, one on each line."""
    form = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)"
    ask = ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian"]
    for update in (False, True):
        if update:
            _run(["apt-get", "-qq", "update"])
        found = _run(ask)
        if found:
            return found
    raise Unavailable("apt has no source of Debian packages")


def _make(directory: Path, scratch: Path) -> None:
    archives, hook = scratch / "archives", scratch / "fetch"
    (archives / "partial").mkdir(parents=True)
    hook.write_text(FETCH.format(archives=archives, closures=" ".join(f'"{closure}"' for closure in CLOSURES)))
    _run(
        [
            "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=directory",
            '--aptopt=Apt::Install-Recommends "false"', f"--include={','.join(BASE)}",
            f'--customize-hook=APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" sh {hook}',
            f'--customize-hook=systemctl --quiet --root="$1" disable {TIMERS}',
            codename(), str(directory), "-",
        ],
        _sources(),
    )  # fmt: skip
    directory.chmod(0o755)
    for key in (directory / "etc/ssh").glob("ssh_host_*"):
        key.unlink()  # each host gets its own keys
    repository = AptRepository(directory / REPOSITORY)
    for package in sorted(archives.glob("*.deb")):
        tree = scratch / "tree"
        made = scratch / package.name.replace("%3a", "_")
        _run(["dpkg-deb", "--raw-extract", str(package), str(tree)])
        _run(["dpkg-deb", "-Zzstd", "--build", str(tree), str(made)])
        repository.take(made)
        shutil.rmtree(tree)
        made.unlink()
    (directory / "etc/apt/sources.list").unlink()
    (directory / "etc/apt/sources.list.d/debian.list").write_text(f"deb [trusted=yes] file:/{REPOSITORY} ./\n")
    _run(["chroot", str(directory), "apt-get", "-qq", "update"])


def _run(argv: list[str], stdin: str = "") -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise Unavailable(f"the bare Debian can't be made: {argv[0]}: {' / '.join(said[-3:])}")
    return done.stdout.strip()
