"""Units of this machine that no test needs. Hosts don't have them.

To list units, systemd compares each of them with the files of all others, and every plan with a service or a package
needs this list. With 250 units, it takes half a second of CPU time, and without these units, an eighth of a second.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

DIRECTORY = "usr/lib/systemd/system"
# Units for hardware, for consoles, for the start from an initrd, for other kinds of containers, and for maintenance.
UNUSED = (
    "*cryptsetup*", "*hibernate*", "*import1.service", "*importd*", "*integritysetup*", "*machine1.service",
    "*machined*", "*portable1.service", "*portabled*", "*suspend*", "*veritysetup*", "autovt@*", "blockdev@*",
    "bluetooth.target", "boot-complete.target", "console-getty.service", "container-getty@*", "cryptdisks*",
    "debug-shell.service", "dpkg-db-backup.*", "e2scrub*", "factory-reset.target", "first-boot-complete.target",
    "fstrim.*", "getty-static*", "hwclock.service", "hybrid-sleep.target", "initrd*", "kexec.target", "kmod.service",
    "machine.slice", "machines.target", "packagekit*", "pam_namespace.service", "pg_*", "printer.target",
    "proc-sys-fs-binfmt_misc.*", "quota*", "rc-local.service", "rc.service", "rcS.service", "rescue-ssh.target",
    "rpcbind.target", "rsync.service", "runlevel*", "serial-getty@*", "sigpwr.target", "sleep.target",
    "smartcard.target", "sound.target", "sudo.service", "system-update*", "systemd-ask-password*",
    "systemd-backlight@*", "systemd-binfmt.service", "systemd-boot-check*", "systemd-firstboot.service",
    "systemd-hybrid-sleep.service", "systemd-initctl.*", "systemd-kexec.service", "systemd-machine-id-commit.service",
    "systemd-modules-load.service", "systemd-network-generator.service", "systemd-networkd*", "systemd-nspawn@*",
    "systemd-pcrphase*", "systemd-pstore.service", "systemd-quotacheck.service", "systemd-random-seed.service",
    "systemd-repart.service", "systemd-rfkill.*", "systemd-sysext.service", "systemd-time-wait-sync.service",
    "systemd-volatile-root.service", "usb-gadget.target", "var-lib-machines.mount", "x11-common.service",
)  # fmt: skip


def unused_units(root: Path = Path("/")) -> list[str]:
    """Return the files and directories of these units below a root directory, relative to it."""
    names = (path.name for path in (root / DIRECTORY).glob("*"))  # none on a machine without systemd
    return sorted(f"{DIRECTORY}/{name}" for name in names if any(fnmatch(name, pattern) for pattern in UNUSED))
