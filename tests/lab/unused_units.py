"""Units of this machine that no test needs, and programs that make such units. Hosts don't have them.

To list units, systemd looks for each of them in all directories of units, and every plan with a service or a package
needs this list. With 250 units, it takes half a second of CPU time, and without these units, a twentieth of a second.
systemd starts the generators whenever it loads its units again.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

DIRECTORY = "usr/lib/systemd/system"
GENERATORS = "usr/lib/systemd/system-generators"
KEPT_GENERATORS = ("postgresql-generator", "systemd-fstab-generator", "systemd-sysv-generator")
# Scripts of Debian, of which systemd-sysv-generator would make units.
SCRIPTS = ("hwclock.sh", "procps", "rsync", "sudo", "x11-common")
# Units for hardware, for consoles, for the start from an initrd, for other kinds of containers, and for maintenance.
UNUSED = (
    "*cryptsetup*", "*hibernate*", "*hostname1.service", "*import1.service", "*importd*", "*integritysetup*",
    "*locale1.service", "*machine1.service", "*machined*", "*portable1.service", "*portabled*", "*suspend*",
    "*timedate1.service", "*veritysetup*", "autovt@*", "blockdev@*", "bluetooth.target", "boot-complete.target",
    "console-getty.service", "container-getty@*", "cryptdisks*", "debug-shell.service", "dev-hugepages.mount",
    "dpkg-db-backup.*", "e2scrub*", "emergency.*", "exit.target", "factory-reset.target", "first-boot-complete.target",
    "fstrim.*", "getty-*", "getty.target.wants", "getty@*", "graphical.target.wants", "halt.target", "hwclock.service",
    "hybrid-sleep.target", "initrd*", "kexec.target", "kmod-static-nodes.service", "kmod.service",
    "local-fs.target.wants", "machine.slice", "machines.target*", "mariadb-extra*", "mariadb@*", "nss-lookup.target",
    "packagekit*", "pam_namespace.service", "pg_*", "podman-*", "podman.*", "printer.target",
    "proc-sys-fs-binfmt_misc.*", "quota*", "rc-local.service", "rc.service", "rcS.service", "redis-server@*",
    "remote-fs.target.wants", "rescue-ssh.target", "rescue.*", "rpcbind.target", "rsync.service", "runlevel*",
    "serial-getty@*", "sigpwr.target", "sleep.target", "smartcard.target", "sound.target", "sudo.service",
    "sys-fs-fuse-connections.mount", "sys-kernel-*", "syslog.socket", "system-update*", "systemd-ask-password*",
    "systemd-backlight@*", "systemd-binfmt.service", "systemd-boot-check*", "systemd-exit.service",
    "systemd-firstboot.service", "systemd-fsck*", "systemd-halt.service", "systemd-hostnamed.service",
    "systemd-hybrid-sleep.service", "systemd-initctl.*", "systemd-journald-audit.socket", "systemd-journald-varlink@*",
    "systemd-journald@*", "systemd-kexec.service", "systemd-localed*", "systemd-machine-id-commit.service",
    "systemd-modules-load.service", "systemd-network-generator.service", "systemd-networkd*", "systemd-nspawn@*",
    "systemd-pcrphase*", "systemd-pstore.service", "systemd-quotacheck.service", "systemd-random-seed.service",
    "systemd-repart.service", "systemd-rfkill.*", "systemd-sysext.service", "systemd-time*sync.service",
    "systemd-timedated.service", "systemd-tmpfiles-clean.*", "systemd-update-utmp*", "systemd-volatile-root.service",
    "time-s*.target", "timers.target.wants", "usb-gadget.target", "var-lib-machines.mount", "x11-common.service",
)  # fmt: skip


def unused_units(root: Path = Path("/")) -> list[str]:
    """Return the files and directories of these units below a root directory, relative to it."""
    units = root / DIRECTORY  # it does not exist on a machine without systemd
    found = [path for path in units.glob("*") if _unused(path)]
    found += [path for path in units.glob("*.wants/*") if _unused(path) and not _unused(path.parent)]
    found += [path for path in (root / GENERATORS).glob("*") if path.name not in KEPT_GENERATORS]
    found += [path for path in (root / "etc/init.d").glob("*") if path.name in SCRIPTS]
    return sorted(str(path.relative_to(root)) for path in found)


def _unused(path: Path) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in UNUSED)
