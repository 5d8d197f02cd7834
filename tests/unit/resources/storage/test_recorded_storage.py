"""SELinux, LVM and mounts, which the test machine can't run: their facets from recorded outputs, and their undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import FACETS, REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Probe, Stat
from statecfg.resources.storage import lvm_groups
from tests.each import each
from tests.unit.resources.test_cases import declared, layers
from tests.unit.resources.test_recorded import Undone

# In the format of policycoreutils 3.6; not recorded on a host.
SEMANAGE: dict[str, Any] = {"/usr/sbin/semanage": ""}
BOOLEANS = """\
abrt_anon_write                (off  ,  off)  Allow ABRT to modify public files used for public file transfer services.
httpd_can_network_connect      (on   ,  off)  Allow httpd to can network connect
"""
CONTEXTS = """\
/srv/www(/.*)?                                     all files          system_u:object_r:httpd_sys_content_t:s0
/srv/run                                           named pipe         system_u:object_r:var_run_t:s0
/srv/raw                                           directory          <<None>>

SELinux Local fcontext Equivalence

/srv/home = /home
"""
PORTS = """\
http_cache_port_t              tcp      8080, 8118, 8123, 10001-10010
http_cache_port_t              udp      3130
http_port_t                    tcp      80, 81, 443
"""


def loaded(facet: str, **answers: str) -> dict[str, Any]:
    """Return a facet of a host on which semanage prints these answers; `_` is a blank in the command line."""
    probes = {f"semanage {command.replace('__', ' --')}": Probe(0, text.encode()) for command, text in answers.items()}
    return FACETS[facet].load(MemoryMachine(SEMANAGE, probes=probes))


def test_booleans_are_loaded_with_both_values() -> None:
    assert loaded("selinux_boolean", boolean__list__noheading=BOOLEANS) == {
        "abrt_anon_write": {"running": "off", "persistent": "off"},
        "httpd_can_network_connect": {"running": "on", "persistent": "off"},
    }


def test_local_rules_for_labels_are_loaded_without_equivalences() -> None:
    assert loaded("selinux_fcontext", fcontext__list__locallist__noheading=CONTEXTS) == {
        "/srv/www(/.*)? (all files)": {"setype": "httpd_sys_content_t"},
        "/srv/run (named pipe)": {"setype": "var_run_t"},
        "/srv/raw (directory)": {"setype": "<<none>>"},
    }
    with pytest.raises(CheckError, match="semanage prints a rule that statecfg can't read: /srv/x"):
        loaded("selinux_fcontext", fcontext__list__locallist__noheading="/srv/x  of a new kind\n")


def test_labels_of_ports_are_loaded_with_their_origin() -> None:
    local = "http_port_t                    tcp      8080\n"
    found = loaded("selinux_port", port__list__noheading=PORTS, port__list__noheading__locallist=local)
    assert found["8080/tcp"] == {"setype": "http_port_t", "local": True}
    assert found["10001-10010/tcp"] == found["3130/udp"] == {"setype": "http_cache_port_t"}
    assert found["443/tcp"] == {"setype": "http_port_t"} and len(found) == 8


@each("facet", ["selinux_boolean", "selinux_fcontext", "selinux_port"])
def test_semanage_that_fails_is_an_error_and_not_an_empty_list(facet: str) -> None:
    with pytest.raises(CheckError, match=r"semanage .* fails"):
        FACETS[facet].load(MemoryMachine(SEMANAGE))
    assert FACETS[facet].load(MemoryMachine()) == {}


def test_undo_of_a_boolean_restores_both_values() -> None:
    machine = MemoryMachine(SEMANAGE, {"selinux_boolean": {"a": {"running": "off", "persistent": "on"}}})
    assert Undone(machine, {"selinux_boolean": "a", "value": True}).ops == ["set_boolean"]
    assert machine.entry("selinux_boolean", "a") == {"running": "off", "persistent": "on"}
    machine = MemoryMachine(SEMANAGE, {"selinux_boolean": {"a": {"running": "on", "persistent": "off"}}})
    assert Undone(machine, {"selinux_boolean": "a", "value": True}).ops == ["set_boolean", "set_boolean"]
    assert machine.entry("selinux_boolean", "a") == {"running": "on", "persistent": "off"}


def test_undo_of_a_rule_for_labels_relabels_again() -> None:
    node = {"selinux_fcontext": "/srv", "setype": "b_t", "restore": "/srv"}
    assert Undone(MemoryMachine({**SEMANAGE, "/srv": None}), node).ops == ["delete_context", "relabel"]
    assert Undone(MemoryMachine(SEMANAGE), node).ops == ["delete_context"]
    former = {"selinux_fcontext": {"/srv (all files)": {"setype": "a_t"}}}
    machine = MemoryMachine({**SEMANAGE, "/srv": None}, former)
    assert Undone(machine, node).ops == ["set_context", "relabel"]
    assert machine.entry("selinux_fcontext", "/srv (all files)") == {"setype": "a_t"}

    def by_hand(machine: MemoryMachine) -> None:
        machine.affect({"selinux_fcontext": {"/srv (all files)": {"setype": "c_t"}}})

    undone = Undone(MemoryMachine(SEMANAGE), node, by_hand)
    assert (undone.ops, undone.left) == ([], ["the rule for /srv (all files) was changed by others: it stays"])


def test_undo_of_a_port_restores_its_local_label_or_that_of_the_policy() -> None:
    node = {"selinux_port": "8080/tcp", "setype": "http_port_t"}
    assert Undone(MemoryMachine(SEMANAGE), node).ops == ["delete_port"]
    policy = {"selinux_port": {"8080/tcp": {"setype": "http_cache_port_t"}}}
    assert Undone(MemoryMachine(SEMANAGE, policy), node).ops == ["delete_port"]
    machine = MemoryMachine(SEMANAGE, {"selinux_port": {"8080/tcp": {"setype": "ssh_port_t", "local": True}}})
    assert Undone(machine, node).ops == ["set_port"]
    machine = MemoryMachine(SEMANAGE, {"selinux_port": {"8080/tcp": {"setype": "ssh_port_t", "local": True}}})
    assert Undone(machine, {"selinux_port": "8080/tcp", "absent": True}).ops == ["set_port"]
    assert machine.entry("selinux_port", "8080/tcp") == {"setype": "ssh_port_t", "local": True}


# Recorded with LVM 2.03.16 of Debian 12 on a loop device. Without device mapper there were no logical volumes: the rows
# of lvs follow its manual page.
LVM: dict[str, Any] = {"/usr/sbin/lvm": "", "/dev": None}
OPTIONS = "--reportformat json --units b --nosuffix --options"
PVS = '{"report": [{"pv": [{"pv_name":"/dev/loop7", "vg_name":"vgtest"}, {"pv_name":"/dev/vdb", "vg_name":""}]}]}'
VGS = """\
  {
      "report": [
          {
              "vg": [
                  {"vg_name":"vgtest", "vg_size":"62914560", "vg_free":"62914560", "vg_extent_size":"4194304"}
              ]
          }
      ]
  }
"""
LVS = """\
{"report": [{"lv": [
    {"vg_name":"vgtest", "lv_name":"data", "lv_size":"12582912", "lv_attr":"owi-a-s---", "origin":"", "pool_lv":""},
    {"vg_name":"vgtest", "lv_name":"root", "lv_size":"8388608", "lv_attr":"-wi-ao----", "origin":"", "pool_lv":""},
    {"vg_name":"vgtest", "lv_name":"old", "lv_size":"4194304", "lv_attr":"swi-a-s---", "origin":"data", "pool_lv":""},
    {"vg_name":"vgtest", "lv_name":"pool", "lv_size":"4194304", "lv_attr":"twi-a-tz--", "origin":"", "pool_lv":""},
    {"vg_name":"vgtest", "lv_name":"thin", "lv_size":"4194304", "lv_attr":"Vwi-a-tz--", "origin":"", "pool_lv":"pool"}
]}]}
"""
COMMANDS = {
    "lvm_device": (f"pvs {OPTIONS} pv_name,vg_name", PVS),
    "lvm_group": (f"vgs {OPTIONS} vg_name,vg_extent_size,vg_free", VGS),
    "lvm_volume": (f"lvs {OPTIONS} vg_name,lv_name,lv_size,lv_attr,origin,pool_lv", LVS),
}


class Disks(MemoryMachine):
    """A machine in memory whose paths /dev/vd? are devices."""

    def stat(self, path: str) -> Stat | None:
        return Stat("other", 0o660, "root", "disk") if path.startswith("/dev/vd") else super().stat(path)


def test_volumes_are_loaded_from_the_reports_of_lvm() -> None:
    machine = MemoryMachine(LVM, probes={command: Probe(0, text.encode()) for command, text in COMMANDS.values()})
    assert FACETS["lvm_device"].load(machine) == {"/dev/loop7": {"group": "vgtest"}, "/dev/vdb": {"group": ""}}
    assert FACETS["lvm_group"].load(machine) == {"vgtest": {"extent": 4194304, "free": 62914560}}
    assert FACETS["lvm_volume"].load(machine) == {
        "vgtest/data": {"present": True, "size": 12582912, "carries": ["vgtest/old"]},
        "vgtest/old": {"present": True, "size": 4194304},
        "vgtest/pool": {"present": True, "size": 4194304, "carries": ["vgtest/thin"]},
        "vgtest/root": {"present": True, "size": 8388608, "open": True},
        "vgtest/thin": {"present": True, "size": 4194304},
    }


def test_a_device_is_found_by_its_path_without_links() -> None:
    """LVM prints the link of an encrypted disk, such as /dev/mapper/disk."""
    command = COMMANDS["lvm_device"][0]
    machine = MemoryMachine(LVM, probes={command: Probe(0, PVS.replace("/dev/loop7", "/dev/mapper/disk").encode())})
    machine.mkdir("/dev/mapper", 0o755, "root", "root")
    machine.symlink("/dev/mapper/disk", "../dm-0", "root", "root")
    found = {"/dev/dm-0": {"group": "vgtest"}, "/dev/vdb": {"group": ""}}
    assert FACETS["lvm_device"].load(machine) == found
    missing = Probe(0, PVS.replace("/dev/loop7", "[unknown]").encode())
    assert "[unknown]" in FACETS["lvm_device"].load(MemoryMachine(LVM, probes={command: missing}))


@pytest.mark.parametrize("facet", COMMANDS)
@pytest.mark.parametrize(
    "answer", [Probe(5, b"", b"  Can't open /etc/lvm\n"), Probe(0, b""), Probe(0, b'{"report": []}')],
    ids=["failed", "silent", "empty"],
)  # fmt: skip
def test_a_report_that_fails_is_an_error_and_not_an_empty_list(facet: str, answer: Probe) -> None:
    machine = MemoryMachine(LVM, probes={COMMANDS[facet][0]: answer})
    with pytest.raises(CheckError, match="does not list the volumes"):
        FACETS[facet].load(machine)
    assert FACETS[facet].load(MemoryMachine()) == {}


BLKID = "blkid --probe --output export -- /dev/vdb"


def test_undo_of_a_volume_group_frees_its_new_devices() -> None:
    blkid = {
        "blkid --probe --output export -- /dev/vdc": Probe(2, b""),
        "blockdev --getsize64 /dev/vdc": Probe(0, b"65536\n"),
        "cmp --silent --ignore-initial=0:0 --bytes=65536 -- /dev/vdc /dev/zero": Probe(1, b""),
    }
    node = {"lvm_volume_group": "data", "devices": ["/dev/vdb", "/dev/vdc"]}
    machine = Disks(LVM, {"lvm_device": {"/dev/vdb": {"group": ""}}}, blkid)
    assert Undone(machine, node).ops == ["remove_group", "free_devices"]
    assert machine.entry("lvm_device", "/dev/vdb") == {"group": ""}
    assert machine.entry("lvm_device", "/dev/vdc") is None
    had = {"lvm_device": {"/dev/vdb": {"group": "data"}}, "lvm_group": {"data": {"extent": 4 << 20, "free": 0}}}
    machine = Disks(LVM, had, blkid)
    assert Undone(machine, node).ops == ["reduce_group", "free_devices"]
    assert machine.entry("lvm_group", "data") is not None


def test_undo_of_a_volume_group_knows_the_devices_of_its_last_definition() -> None:
    node = layers([declared({"lvm_volume_group": "data", "devices": ["/dev/vdb", "/dev/vdc"]})], Path())[0][0]
    devices = {name: {"group": "data"} for name in ("/dev/vdb", "/dev/vdc")}
    machine = Disks(LVM, {"lvm_device": devices, "lvm_group": {"data": {"extent": 4 << 20, "free": 0}}})
    memory = {"exists": False, "devices": {"/dev/vdb": None}}
    spec = REGISTRY["lvm_volume_group"].run_undo(node, memory, machine, {}, {})
    assert [action.op for action in spec.actions] == ["remove_group", "free_devices"]
    assert spec.actions[0].args["devices"] == ["/dev/vdb", "/dev/vdc"]
    assert spec.actions[1].args["devices"] == ["/dev/vdb"]


def test_undo_of_a_volume_group_keeps_volumes() -> None:
    def by_hand(machine: MemoryMachine) -> None:
        machine.affect({"lvm_volume": {"data/shop": {"size": 4 << 20}}})

    machine = Disks(LVM, {"lvm_device": {"/dev/vdb": {"group": ""}}})
    undone = Undone(machine, {"lvm_volume_group": "data", "devices": ["/dev/vdb"]}, by_hand)
    assert (undone.ops, undone.left) == ([], ["the volume group data stays, because it contains data/shop"])


def test_devices_with_content_are_refused() -> None:
    machine = Disks(LVM, probes={BLKID: Probe(0, b"TYPE=ext4\n")})
    machine.turn("test")
    node = layers([declared({"lvm_volume_group": "data", "devices": ["/dev/vdb"]})], Path())[0][0]
    with pytest.raises(CheckError, match="/dev/vdb contains ext4, which a volume group would destroy"):
        REGISTRY["lvm_volume_group"].run_check(node, {}, [], machine)


SIZE = {"blockdev --getsize64 /dev/vdb": Probe(0, b"1048576\n")}
BEGIN, END = (f"cmp --silent --ignore-initial={skip}:0 --bytes=65536 -- /dev/vdb /dev/zero" for skip in (0, 983040))


@pytest.mark.parametrize(
    ("probes", "error"),
    [
        ({BLKID: Probe(2, b"", b"blkid: error: /dev/vdb: Input/output error\n")}, "blkid can't read /dev/vdb: blkid"),
        ({BLKID: Probe(2, b"")}, "/dev/vdb can't be read"),
        ({BLKID: Probe(2, b""), "blockdev --getsize64 /dev/vdb": Probe(0, b"0\n")}, "/dev/vdb can't be read"),
        ({BLKID: Probe(2, b""), **SIZE, BEGIN: Probe(2, b""), END: Probe(0, b"")}, "/dev/vdb can't be read"),
        ({BLKID: Probe(2, b""), **SIZE, BEGIN: Probe(1, b""), END: Probe(2, b"")}, "/dev/vdb can't be read"),
        ({BLKID: Probe(2, b""), **SIZE, BEGIN: Probe(1, b""), END: Probe(0, b"")}, ""),
    ],
    ids=["blkid says so", "no size", "no medium", "no beginning", "no end", "readable"],
)
@pytest.mark.parametrize(
    "text", [{"lvm_volume_group": "data", "devices": ["/dev/vdb"]}, {"filesystem": "/dev/vdb", "fstype": "ext4"}]
)
def test_a_device_that_cannot_be_read_is_not_empty(text: dict[str, Any], probes: dict[str, Probe], error: str) -> None:
    """blkid of util-linux 2.38 ends with status 2 and prints nothing, also if it can't read a device."""
    machine = Disks(LVM, probes=probes)
    machine.turn("test")
    node = layers([declared(text)], Path())[0][0]
    if not error:
        assert REGISTRY[node.type].run_check(node, {}, [], machine)
        return
    with pytest.raises(CheckError, match=error):
        REGISTRY[node.type].run_check(node, {}, [], machine)


def test_undo_of_a_logical_volume_keeps_data_without_permission() -> None:
    group = {"lvm_group": {"data": {"extent": 4 << 20, "free": 1 << 30}}}
    node = {"lvm_logical_volume": "shop", "volume_group": "data", "size": "8M"}
    undone = Undone(MemoryMachine(LVM, group), node)
    assert (undone.ops, undone.left) == (
        [], ["data/shop stays, because it may contain data; lvremove removes it"]
    )  # fmt: skip
    assert Undone(MemoryMachine(LVM, group), {**node, "remove_content": True}).ops == ["remove_volume"]
    undone = Undone(MemoryMachine(LVM, {**group, "lvm_volume": {"data/shop": {"size": 4 << 20}}}), node)
    assert undone.left == ["data/shop keeps its new size: another one could destroy data"]


class Asking(MemoryMachine):
    """A machine in memory that, as a real one, asks whether a program may start."""

    def run(self, *arguments: Any, first: Any = None, **options: Any) -> Any:
        refused = first() if first is not None else None
        return refused if refused is not None else super().run(*arguments, **options)


def test_a_group_with_a_volume_that_the_plan_does_not_name_stays() -> None:
    command, text = COMMANDS["lvm_volume"]
    planned = [f"vgtest/{name}" for name in ("data", "old", "pool", "root", "thin")]
    for answer, volumes, refused in (
        (Probe(0, text.encode()), planned, ""),
        (Probe(0, text.encode()), planned[1:], "also contains vgtest/data, which was not planned; plan again"),
        (Probe(5, b"", b"no lock"), planned, "lvs does not list the volumes: no lock"),
    ):
        machine = Asking(LVM, {"lvm_group": {"vgtest": {"extent": 4194304, "free": 0}}}, {command: answer})
        result = lvm_groups.remove_group("vgtest", volumes, []).perform(machine)
        assert refused in result.get("reason", "")
        assert (machine.entry("lvm_group", "vgtest") is None) is not bool(refused)


def test_undo_of_a_mount_keeps_an_option_that_others_added() -> None:
    line = "tmpfs /srv/a tmpfs defaults 0 0\n"
    now = {"source": "tmpfs", "fstype": "tmpfs", "options": ["rw", "relatime", "size=1024k"]}
    machine = MemoryMachine({"/etc/fstab": line, "/srv/a": None}, {"mount": {"/srv/a": now}})
    node = {"mount": "/srv/a", "source": "tmpfs", "fstype": "tmpfs", "mount_options": ["size=2m"]}
    others = {"mount": {"/srv/a": {"options": ["rw", "noatime", "size=2m"]}}}
    undone = Undone(machine, node, lambda machine: machine.affect(others))
    assert undone.left == ["/srv/a is now mounted with rw,noatime,size=2m: it stays"]
    assert undone.ops == ["restore_lines"]
