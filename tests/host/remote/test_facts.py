"""The facts that hosts collect, compared with the tools of this machine; and the facts of projects."""

from __future__ import annotations

import json
import os
import platform
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from statecfg.facts import catalogue
from statecfg.remote.facts import NAMES, collect, own

READ = "def fact(world):\n    return "


def output(*argv: str) -> str:
    """Return the output of a program of this machine; skip the test if there is no such program."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"not run on this machine: there is no program {argv[0]}")
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def value(name: str) -> Any:
    values, failed = collect([name], {})
    assert failed == {}
    assert catalogue.wrong_fact(name, json.loads(json.dumps(values[name]))) == ""
    return values[name]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_fact_has_its_type(name: str) -> None:
    value(name)


def test_the_system_is_described_as_its_tools_describe_it() -> None:
    shown = [output("uname", flag).strip() for flag in ("-r", "-m", "-n")]
    assert [value("kernel"), value("architecture"), value("hostname")] == shown
    assert value("cpus") == int(output("nproc", "--all"))
    assert value("python") == platform.python_version()
    assert value("user") == output("id", "-un").strip()
    release = platform.freedesktop_os_release()
    system = value("os")
    assert (system["id"], system["version"]) == (release["ID"], release.get("VERSION_ID", ""))
    assert system["name"] == release["PRETTY_NAME"]


def test_memory_is_that_of_the_kernel() -> None:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    assert abs(value("memory") - int(lines["MemTotal"].split()[0]) // 1024) <= 1
    assert value("swap") == int(lines["SwapTotal"].split()[0]) // 1024


def test_addresses_and_routes_are_those_of_ip() -> None:
    shown = json.loads(output("ip", "-j", "addr"))
    expected = {
        (link["ifname"], "ipv6" if one["family"] == "inet6" else "ipv4", one["local"], one["prefixlen"], one["scope"])
        for link in shown
        for one in link["addr_info"]
        if not one.get("temporary")
    }
    found = {tuple(one.values()) for one in value("addresses")}
    assert found == expected
    routes = json.loads(output("ip", "-j", "route")) + json.loads(output("ip", "-6", "-j", "route"))
    wanted = sorted((one["dst"], one.get("gateway", ""), one["dev"], one.get("metric", 0)) for one in routes)
    mine = [(one["destination"], one["gateway"], one["interface"], one["metric"]) for one in value("routes")]
    whole = [(dst.removesuffix("/32").removesuffix("/128"), *rest) for dst, *rest in mine]
    assert sorted(whole) == wanted


def test_the_main_address_is_the_source_of_outgoing_packets() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        try:
            connection.connect(("192.0.2.99", 9))  # sends nothing
        except OSError:
            assert value("ipv4") == ""
        else:
            assert value("ipv4") in (connection.getsockname()[0], "")


def test_mounts_are_those_of_findmnt() -> None:
    mounted = [line.split(" ") for line in output("findmnt", "-rn", "-o", "TARGET,FSTYPE").splitlines()]
    assert sorted((one["path"], one["type"]) for one in value("mounts")) == sorted(
        (path.encode().decode("unicode_escape"), kind) for path, kind in mounted
    )
    (root,) = [one for one in value("mounts") if one["path"] == "/"][-1:]
    if root["size"]:
        assert root["size"] == shutil.disk_usage("/").total >> 20


def test_disks_are_those_of_lsblk() -> None:
    shown = json.loads(output("lsblk", "-Jbdo", "NAME,SIZE,TYPE"))["blockdevices"]
    disks = {one["name"]: int(one["size"]) >> 20 for one in shown if one["type"] == "disk" and int(one["size"])}
    skipped = ("zram", "nbd", "fd", "ram")
    assert {one["name"]: one["size"] for one in value("disks")} == {
        name: size for name, size in disks.items() if not name.startswith(skipped)
    }


def test_users_are_those_of_the_name_service() -> None:
    users = value("users")
    assert set(users) == {entry.pw_name for entry in pwd.getpwall()}
    assert users["root"]["home"] == pwd.getpwnam("root").pw_dir


def test_packages_are_those_of_dpkg() -> None:
    shown = output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n")
    rows = [line.split(" ") for line in shown.splitlines()]
    assert value("packages") == {name: version for status, name, version in rows if status == "installed"}


def test_virtualization_is_that_of_systemd() -> None:
    if shutil.which("systemd-detect-virt") is None:
        pytest.skip("not run on this machine: there is no program systemd-detect-virt")
    told = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, check=False).stdout.strip()
    found = value("virtualization")
    assert (found["kind"] == "none") == (told == "none")
    if found["kind"] == "container":
        assert found["name"] == told


def test_a_fact_of_the_project_reads_the_host(tmp_path: Path) -> None:
    (tmp_path / "rack").write_text("r7\n")
    sources = {
        "rack": ["facts/rack.py", f"{READ}world.read({str(tmp_path / 'rack')!r}).decode().strip()\n"],
        "machine": ["facts/machine.py", f"{READ}world.probe(['uname', '-m']).text.strip()\n"],
        "plain": ["facts/plain.py", "import os\ndef fact():\n    print('noise')\n    return [1, {'a': None}]\n"],
    }
    values, failed = collect([f"own.{name}" for name in sources], sources)
    assert failed == {}
    assert values == {"own.rack": "r7", "own.machine": platform.machine(), "own.plain": [1, {"a": None}]}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def fact():\n    return 1 / 0\n", "facts/x.py:2: ZeroDivisionError: division by zero"),
        ("def fact():\n    open('{place}', 'w')\n", "facts/x.py:2: WriteAttempt: tried to open {place} for writing"),
        ("import os\ndef fact():\n    os.system('touch {place}')\n", "facts/x.py:3: WriteAttempt: tried os.system("),
        ("import subprocess\ndef fact():\n    subprocess.run(['true'])\n", "WriteAttempt: tried"),
        ("def fact():\n    return {{1}}\n", "TypeError: Object of type set is not JSON serializable"),
        ("def fact():\n    return float('nan')\n", "ValueError: Out of range float values"),
        ("def fact():\n    return 'x' * 100000\n", "its value has more than 65536 bytes"),
        ("import os\ndef fact():\n    os._exit(3)\n", "facts/x.py ended without a value"),
    ],
)
def test_a_fact_of_the_project_that_fails_says_why_and_changes_nothing(tmp_path: Path, source: str, why: str) -> None:
    place = str(tmp_path / "made")
    values, failed = collect(["own.x"], {"x": ["facts/x.py", source.format(place=place)]})
    assert values == {}
    assert why.format(place=place) in failed["own.x"]
    assert not os.path.exists(place)


def test_a_slow_fact_is_stopped_with_everything_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "SECONDS", 1.0)
    source = "import time\ndef fact():\n    time.sleep(600)\n"
    begun = time.monotonic()
    _, failed = collect(["own.x"], {"x": ["facts/x.py", source]})
    assert failed == {"own.x": "it took more than 1 s"}
    assert time.monotonic() - begun < 60
