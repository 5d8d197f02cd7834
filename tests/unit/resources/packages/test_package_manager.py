"""Which package manager owns a host, and what statecfg reads from the database of rpm."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Probe
from statecfg.resources.packages import package_manager
from statecfg.resources.packages.managers.dnf import dnf
from statecfg.resources.packages.managers.pacman import pacman_database
from statecfg.resources.packages.managers.rpm import rpm, rpm_needs
from statecfg.resources.packages.managers.zypper import zypper, zypper_program
from statecfg.resources.packages.repositories import apt_texts, rpm_texts
from tests.each import each
from tests.unit.resources.test_cases import PATHS

DPKG, RPM = "/var/lib/dpkg/status", "/usr/lib/sysimage/rpm/rpmdb.sqlite"
DEBIAN, ALMA = "ID=debian\n", 'NAME="AlmaLinux"\nID="almalinux"\nID_LIKE="rhel centos fedora"\n'
ZYPP = "/var/lib/zypp/AutoInstalled"
LEAP = 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n'
HOSTS = {
    "a Debian": ({"/etc/os-release": DEBIAN, DPKG: ""}, "apt"),
    "a Debian with dnf": ({"/etc/os-release": DEBIAN, DPKG: "", RPM: "", "/usr/bin/dnf": ""}, "apt"),
    "a derivative": ({"/etc/os-release": "ID=mint\nID_LIKE='ubuntu debian'\n", DPKG: ""}, "apt"),
    "an Alma": ({"/etc/os-release": ALMA, RPM: ""}, "dnf"),
    "a Fedora with dpkg": ({"/etc/os-release": "ID=fedora\n", RPM: "", DPKG: ""}, "dnf"),
    "an old place of the database": ({"/usr/lib/os-release": ALMA, "/var/lib/rpm/Packages": ""}, "dnf"),
    "an Arch": ({"/etc/os-release": "ID=arch\n", "/var/lib/pacman/local/ALPM_DB_VERSION": "9\n"}, "pacman"),
    "a relative of Arch": (
        {"/etc/os-release": "ID=m\nID_LIKE=arch\n", "/var/lib/pacman/local/x": "", RPM: ""},
        "pacman",
    ),
    "openSUSE with dnf": ({"/etc/os-release": LEAP, RPM: "", ZYPP: ""}, "zypper"),
    "Fedora with zypper": ({"/etc/os-release": "ID=fedora\n", RPM: "", ZYPP: ""}, "dnf"),
    "an unknown system": ({"/etc/os-release": "ID=other\n", RPM: ""}, "dnf"),
    "a system without os-release": ({DPKG: ""}, "apt"),
}


@each("name", HOSTS)
def test_the_system_and_the_database_decide(name: str) -> None:
    files, manager = HOSTS[name]
    host = MemoryMachine(files)
    found = package_manager.package_manager.load(host)
    assert found == {"host": {"name": manager}}
    world = MemoryMachine(files, {"package_manager": found})
    assert package_manager.manager(world) is package_manager.named(manager)


def test_a_host_without_a_known_database_is_refused() -> None:
    with pytest.raises(CheckError, match="finds no package manager on this host; it knows apt, pacman, zypper, dnf"):
        package_manager.package_manager.load(MemoryMachine({"/etc/os-release": "ID=alpine\n"}))


def answers(text: str, status: int = 0) -> Mapping[str, Probe]:
    """Return what rpm prints."""
    query = " ".join(["rpm", "--query", "--all", "--queryformat", rpm._FORMAT])
    return {"rpm --eval %_target_cpu": Probe(0, b"x86_64\n"), query: Probe(status, text.encode(), b"rpmdb: damaged\n")}


def test_packages_of_rpm_have_their_version_and_lock() -> None:
    rows = ["bash\tx86_64\t5.1.8-9.el9\t100", "glibc\tx86_64\t2.34-1\t100", "glibc\ti686\t2.34-1\t90"]
    rows += ["kernel\tx86_64\t5.14-2\t300", "kernel\tx86_64\t5.14-1\t200", "tzdata\tnoarch\t1:2026a-1\t1"]
    rows += ["gpg-pubkey\t(none)\t3228467c-613798eb\t5"]
    locks = "# a comment\nkernel-0:5.14-2.*\n!bash-0:5.2-1.*\ntzdata-1:2026a-1.noarch\n"
    host = MemoryMachine({dnf.LOCKS: locks}, probes=answers("\n".join(rows)))
    assert dnf.packages(host) == {
        "bash": {"version": "5.1.8-9.el9"},
        "glibc": {"version": "2.34-1"},
        "glibc:i686": {"version": "2.34-1"},
        "kernel": {"version": "5.14-2", "older": ["5.14-1"], "held": True},
        "tzdata": {"version": "1:2026a-1", "held": True},
    }


def test_a_failed_query_is_an_error() -> None:
    """Otherwise, all packages would seem to be missing."""
    with pytest.raises(CheckError, match="rpm can't read its database: rpmdb: damaged"):
        rpm.packages(MemoryMachine(probes=answers("", 1)))


def test_the_ids_of_keys_are_those_of_rpm() -> None:
    """The key of the cases; gpg shows its fingerprint and its time of creation."""
    cases = yaml.safe_load(PATHS["dnf_repository"].read_text())
    key = next(case["node"]["key"] for case in cases if case["case"] == "a key")
    assert rpm_texts.key_ids(apt_texts.armored(key.encode())) == ["51558cc9-6b042cf9"]


def test_the_database_of_pacman() -> None:
    desc = "%NAME%\n{0}\n\n%VERSION%\n{1}\n\n"
    records = {
        "glibc-2.40+r16-1": desc.format("glibc", "2.40+r16-1") + "%REASON%\n1\n\n%PROVIDES%\nlibc=2.40\n\n",
        "tk-1:8.6-2": desc.format("tk", "1:8.6-2") + "%DEPENDS%\nlibc>=2\n\n%OPTDEPENDS%\ndocs: to read\n\n",
        "docs-1-1": desc.format("docs", "1-1"),
    }
    files = {f"{pacman_database.LOCAL}/{name}/desc": text for name, text in records.items()}
    host = MemoryMachine({**files, f"{pacman_database.LOCAL}/ALPM_DB_VERSION": "9\n"})
    versions = {"docs": "1-1", "glibc": "2.40+r16-1", "tk": "1:8.6-2"}
    assert pacman_database.packages(host) == {name: {"version": version} for name, version in versions.items()}
    assert pacman_database.automatic(host) == {"glibc": {"auto": True}}
    assert pacman_database.dependencies(host)["tk"] == {"hard": ["glibc"], "soft": ["docs"]}


def test_a_failed_query_of_pacman_is_not_one_without_configuration_files() -> None:
    command = "pacman -Qii -- shop"
    host = MemoryMachine({}, probes={command: Probe(0, b"Backup Files    : /etc/shop.conf [modified]\n")})
    assert pacman_database.conffiles(host, "shop") == ["/etc/shop.conf"]
    host = MemoryMachine({}, probes={command: Probe(1, b"", b"error: could not open database\n")})
    with pytest.raises(CheckError, match="pacman can't read its database: error: could not open database"):
        pacman_database.conffiles(host, "shop")


def test_a_lock_of_zypper_holds_a_whole_package_only() -> None:
    """A lock of some versions, of one repository or of a pattern of packages does not hold a package."""
    locks = "\ntype: package\nmatch_type: glob\nsolvable_name: ker*\n\n\ntype: pattern\nsolvable_name: bash\n\n"
    locks += "\nrepo: shop\ntype: package\nsolvable_name: bash\n\n\ntype: package\nversion: < 2\nsolvable_name: bash\n"
    rows = ["bash\tx86_64\t5.1.8-9\t100", "kernel\tx86_64\t5.14-2\t300"]
    host = MemoryMachine({zypper_program.LOCKS: locks}, probes=answers("\n".join(rows)))
    assert zypper.packages(host) == {
        "bash": {"version": "5.1.8-9"},
        "kernel": {"version": "5.14-2", "held": True},
    }


def test_packages_that_zypper_added_itself_are_automatic() -> None:
    text = "# AutoInstalled generated Mon Nov 23 20:07:23 2026\n#\nproduct:Leap\ntool-a\n#\n"
    assert zypper.automatic(MemoryMachine({zypper_program.AUTO: text})) == {"tool-a": {"auto": True}}


def test_dependencies_of_rpm_include_files_and_conditions() -> None:
    """Files and conditions are needs, too. The file of `shell` is in /usr, since both directories are one."""
    rows = ["shell\tx86_64\tprovides\tshell", "tool\tnoarch\thard\t/bin/sh", "tool\tnoarch\thard\trpmlib(FileDigests)"]
    rows += ["tool\tnoarch\thard\t(libx()(64bit) if extra)", "tool\tnoarch\tsoft\tdocs", "tool\tnoarch\tprovides\ttool"]
    rows += ["libx\tx86_64\tprovides\tlibx()(64bit)", "libx\ti686\tprovides\tlibx", "docs\tnoarch\tprovides\tdocs"]
    rows += ["gpg-pubkey\t(none)\tprovides\tdocs"]
    argv = {
        "rpm --eval %_target_cpu": "x86_64\n",
        "rpm --query --all --queryformat " + rpm_needs._FORMAT: "\n".join(rows),
        "rpm --query --file --queryformat " + rpm_needs._OWNERS + " -- /bin/sh": "shell\tx86_64\t/usr/bin/sh\n",
    }
    found = rpm_needs.dependencies(MemoryMachine(probes={key: Probe(0, text.encode()) for key, text in argv.items()}))
    none: dict[str, list[str]] = {"hard": [], "soft": []}
    tool = {"hard": ["libx", "shell"], "soft": ["docs"]}
    assert found == {"shell": none, "tool": tool, "libx": none, "libx:i686": none, "docs": none}
