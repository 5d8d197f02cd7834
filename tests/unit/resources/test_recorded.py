"""Node types that no test can run for real, from recorded outputs: what they load from a host, and their undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.nodetype import FACETS, REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import ANYTHING, Probe
from statecfg.resources.services import init_scripts, systemd
from statecfg.resources.storage import swaps
from statecfg.resources.system import kernel_modules
from tests.each import each
from tests.unit.resources.test_cases import actions, declared, layers, planned, taken

# Recorded on a Debian 12 with the kernel 6.1.0-18-amd64.
RELEASE = {"/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n"}
BUILT_IN = "kernel/fs/ext4/ext4.ko\nkernel/drivers/char/hw_random/rng-core.ko\n"
AVAILABLE = "kernel/drivers/net/dummy.ko:\nkernel/net/bridge/br_netfilter.ko: kernel/net/bridge/bridge.ko\n"
LOADED = """\
br_netfilter 36864 0 - Live 0x0000000000000000
bridge 311296 1 br_netfilter, Live 0x0000000000000000
"""
SWAPS = """\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/vda5                               partition\t998396\t\t0\t\t-2
/srv/my\\040swap                         file\t\t1048572\t\t0\t\t5
"""
KERNEL = {
    **RELEASE,
    "/proc/modules": LOADED,
    "/lib/modules/6.1.0-18-amd64/modules.builtin": BUILT_IN,
    "/lib/modules/6.1.0-18-amd64/modules.dep": AVAILABLE,
    "/etc/modules-load.d/own.conf": "own\n",
    "/etc/modprobe.d/own.conf": "options own a=1\n",
}


def test_modules_of_the_kernel_are_loaded_from_its_lists() -> None:
    assert FACETS["module"].load(MemoryMachine(KERNEL)) == {
        "br_netfilter": {"loaded": True},
        "bridge": {"loaded": True},
        "ext4": {"built_in": True},
        "rng_core": {"built_in": True},
    }
    assert FACETS["module"].load(MemoryMachine(RELEASE)) == {}  # a kernel without support for modules
    assert kernel_modules.key("rng-core") == "rng_core"


class Recording(MemoryMachine):
    """A machine in memory that records the programs that it would run."""

    def run(self, argv: Sequence[str], effect: Any = ANYTHING, **options: Any) -> Any:
        self.ran = [*getattr(self, "ran", []), " ".join(argv)]
        return super().run(argv, effect, **options)


def scripts(*marks: str, probes: Any = None) -> Recording:
    """Return a host with three init scripts, and a file that is none."""
    names = ("web", "db", "cron")
    files: dict[str, Any] = {f"/etc/init.d/{name}": "#!/bin/sh\n" for name in names}
    machine = Recording({**files, "/etc/init.d/README": "", **dict.fromkeys(marks)}, probes=probes)
    for name in names:
        machine.chmod(f"/etc/init.d/{name}", 0o755)
    machine.turn("test")
    return machine


def test_services_of_openrc_are_loaded_from_its_runlevels() -> None:
    """Recorded with Debian's package openrc 0.45.2."""
    shown = (
        b"                 cron |      default                                        \n                   db | boot\n"
    )
    machine = scripts("/run/openrc", probes={"rc-update show": Probe(0, shown)})
    assert FACETS["units"].load(machine) == {
        "cron.service": {"enabled": "enabled", "level": "default"},
        "db.service": {"enabled": "enabled", "level": "boot"},
        "web.service": {"enabled": "disabled"},
    }


def test_services_of_openrc_and_system_v_have_their_own_programs() -> None:
    def ran(machine: Recording, *ops: Callable[..., Action]) -> list[str]:
        for op in ops:
            assert op("web.service").perform(machine)["status"] == "ok"
        return machine.ran

    openrc = scripts("/run/openrc")
    assert ran(openrc, systemd.enable, systemd.start, systemd.reload, systemd.disable) == [
        "rc-update add web default",
        "rc-service web start",
        "rc-service web restart",
        "rc-update --all delete web",
    ]
    openrc.write("/etc/init.d/web", '#!/sbin/openrc-run\nextra_started_commands="checkconfig reload"\n')
    assert ran(openrc, systemd.reload)[-1] == "rc-service web reload"
    assert ran(scripts(), systemd.enable, systemd.stop, systemd.reload, systemd.disable) == [
        "update-rc.d web defaults",
        "update-rc.d web enable",
        "service web stop",
        "service web force-reload",
        "update-rc.d web defaults",
        "update-rc.d web disable",
    ]
    refused = systemd.mask("web.service").perform(scripts())
    assert refused["reason"] == "masked needs systemd, and this host runs System V"


def test_undo_enables_a_service_of_openrc_in_its_former_runlevel() -> None:
    probes = {"rc-service db status": Probe(0, b" * status: started\n")}
    enabled = {"enabled": "enabled", "level": "boot"}
    files: dict[str, Any] = {"/etc/init.d/db": "", "/run/openrc": None}
    machine = MemoryMachine(files, {"units": {"db.service": enabled}}, probes)
    assert Undone(machine, {"service": "db", "enabled": False}).ops == ["enable"]
    assert machine.entry("units", "db.service") == enabled


def test_init_scripts_of_system_v_are_loaded_from_their_links() -> None:
    machine = scripts("/etc/rc2.d", "/etc/rcS.d")
    machine.symlink("/etc/rc2.d/S01web", "../init.d/web")
    machine.symlink("/etc/rc2.d/K01db", "../init.d/db")
    assert {name: entry["enabled"] for name, entry in FACETS["units"].load(machine).items()} == {
        "cron.service": "disabled",
        "db.service": "disabled",
        "web.service": "enabled",
    }
    assert [init_scripts.has_links(machine, f"{name}.service") for name in ("web", "db", "cron")] == [True, True, False]


def test_host_without_any_services_is_an_error() -> None:
    with pytest.raises(CheckError, match="runs neither systemd nor OpenRC, and has no init scripts"):
        FACETS["units"].load(MemoryMachine())


def test_swap_space_in_use_is_loaded_from_its_list() -> None:
    loaded = FACETS["swap"].load(MemoryMachine({"/proc/swaps": SWAPS}))
    assert loaded == {"/dev/vda5": {"used": True}, "/srv/my swap": {"used": True, "priority": 5}}
    assert swaps.megabytes("2G") == 2048


class Undone:
    """A node that was applied in memory, and then undone.

    :ivar ops: the ops of the undo
    :ivar left: what the undo says that stays
    """

    def __init__(self, machine: MemoryMachine, node: dict[str, Any], by_hand: Any = None) -> None:
        machine.turn("test")
        nodes = layers([declared(node)], Path())
        ((applied,),) = nodes
        memory = REGISTRY[applied.type].run_remember(applied, machine)
        plan = planned(machine, nodes)
        assert actions(plan)
        taken(machine, plan)
        if by_hand is not None:
            by_hand(machine)
        machine.turn("undo")
        found = REGISTRY[applied.type].run_undo(applied, memory, machine, {})
        spec = found if isinstance(found, ActionSpec) else ActionSpec(found)
        self.ops, self.left = [action.op for action in spec.actions], spec.left
        for action in spec.actions:
            assert action.perform(machine)["status"] == "ok"


def kernel(**modules: dict[str, bool]) -> MemoryMachine:
    facets = {"module": {"br_netfilter": {"loaded": True}, "bridge": {"loaded": True}, **modules}}
    return MemoryMachine(KERNEL, facets)


def test_undo_of_a_kernel_module_unloads_it() -> None:
    machine = kernel()
    undone = Undone(machine, {"kernel_module": "dummy", "parameters": {"numdummies": 2}})
    assert (undone.ops, undone.left) == (["remove", "remove", "unload"], [])
    assert machine.entry("module", "dummy") is None
    assert machine.stat("/etc/modules-load.d/dummy.conf") is None


def test_undo_keeps_a_module_that_is_in_use_or_was_loaded_before() -> None:
    def used(machine: MemoryMachine) -> None:
        machine.write("/proc/modules", LOADED + "dummy 16384 1 - Live 0x0000000000000000\n")

    undone = Undone(kernel(), {"kernel_module": "dummy"}, used)
    assert undone.ops == ["remove"]
    assert undone.left == ["the module dummy is in use (1 times): it stays"]
    assert Undone(kernel(), {"kernel_module": "br_netfilter"}).ops == ["remove"]


def test_undo_of_a_blocked_module_restores_its_files_and_loads_it() -> None:
    machine = kernel(own={"loaded": True})
    undone = Undone(machine, {"kernel_module": "own", "blocked": True})
    assert undone.ops == ["write", "write", "load"]
    assert machine.read("/etc/modprobe.d/own.conf") == b"options own a=1\n"
    assert machine.read("/etc/modules-load.d/own.conf") == b"own\n"


FSTAB = {"/etc/fstab": "# by hand\n", "/srv": None, "/dev/vdb1": ""}


def test_undo_of_swap_space_removes_the_new_file() -> None:
    machine = MemoryMachine(FSTAB, {"swap": {}})
    undone = Undone(machine, {"swap": "/srv/swap", "size": "4M"})
    assert undone.ops == ["restore_lines", "stop", "remove"]
    assert machine.read("/etc/fstab") == b"# by hand\n"
    assert machine.stat("/srv/swap") is None


def test_undo_of_swap_space_restores_the_priority_of_a_device() -> None:
    machine = MemoryMachine(FSTAB, {"swap": {"/dev/vdb1": {"used": True}}})
    undone = Undone(machine, {"swap": "/dev/vdb1", "priority": 3})
    assert undone.ops == ["restore_lines", "stop", "use"]
    assert machine.stat("/dev/vdb1") is not None


@each(
    "size, ops, left",
    [
        (2, ["stop", "make_file", "make_swap", "use"], []),
        (3, [], ["the size of /srv/swap is now 3 MiB: it stays"]),
    ],
)
def test_undo_of_a_larger_swap_file_restores_its_size_unless_others_changed_it(
    size: int, ops: list[str], left: list[str]
) -> None:
    files = {"/etc/fstab": "/srv/swap none swap sw 0 0\n", "/srv/swap": "x" * (1 << 20)}
    machine = MemoryMachine(files, {"swap": {"/srv/swap": {"used": True}}})
    undone = Undone(
        machine, {"swap": "/srv/swap", "size": "2M"}, lambda machine: machine.write("/srv/swap", "x" * (size << 20))
    )
    assert (undone.ops, undone.left) == (ops, left)


def test_undo_of_removed_swap_space_creates_the_file_again() -> None:
    files = {"/etc/fstab": "/srv/swap none swap sw 0 0\n", "/srv/swap": "x" * (1 << 20)}
    machine = MemoryMachine(files, {"swap": {"/srv/swap": {"used": True, "priority": 7}}})
    undone = Undone(machine, {"swap": "/srv/swap", "absent": True})
    assert undone.ops == ["restore_lines", "make_file", "make_swap", "use"]
    assert machine.entry("swap", "/srv/swap") == {"used": True, "priority": 7}
    assert machine.read("/etc/fstab") == files["/etc/fstab"].encode()


# Debian 12 has no podman with quadlets. These tests follow podman-systemd.unit(5).
QUADLET = "/etc/containers/systemd/shop.container"
PODMAN = {"/usr/lib/systemd/system-generators/podman-system-generator": "", "/run/systemd/system": None}
CONTAINER = {"quadlet": "shop.container", "sections": {"Container": {"Image": "example.org/shop:1"}}}


def test_undo_of_a_quadlet_removes_its_file_and_its_unit() -> None:
    machine = MemoryMachine({**PODMAN, "/etc/containers": None})
    assert Undone(machine, CONTAINER).ops == ["remove", "remove", "daemon_reload"]
    assert machine.stat("/etc/containers/systemd") is None
    assert machine.entry("units", "shop.service") is None


def test_undo_of_a_quadlet_restores_the_former_file() -> None:
    machine = MemoryMachine({**PODMAN, QUADLET: "[Container]\nImage=old\n"}, {"units": {"shop.service": {}}})
    assert Undone(machine, CONTAINER).ops == ["write", "daemon_reload"]
    assert machine.read(QUADLET) == b"[Container]\nImage=old\n"
    assert machine.entry("units", "shop.service") is not None


def test_a_quadlet_of_which_podman_makes_no_unit_fails() -> None:
    machine = MemoryMachine({**PODMAN, "/etc/containers": None})
    machine.turn("test")
    nodes = layers([declared(CONTAINER)], Path())
    ((node,),) = nodes
    plan = planned(machine, nodes)
    taken(machine, plan)
    machine.affect({"units": {"shop.service": None}})  # as if podman had refused the file
    machine.turn("test", acted=True)
    with pytest.raises(CheckError, match=r"podman makes no unit shop\.service"):
        REGISTRY["quadlet"].run_check(node, {}, [], machine)


# Recorded with nft 1.0.6.
RULES = """\
# Warning: table ip filter is managed by iptables-nft, do not touch!
table ip filter {
\tchain INPUT {
\t\ttype filter hook input priority filter; policy accept;
\t}
}
table inet web {
\tset seen {
\t\ttype ipv4_addr
\t\tsize 65535
\t\tflags dynamic,timeout
\t\ttimeout 1m
\t\telements = { 192.0.2.3 timeout 30s,
\t\t\t     192.0.2.4 timeout 30s }
\t}

\tset plain {
\t\ttype inet_service
\t\telements = { 22, 80 }
\t}
}
"""


def test_tables_of_nftables_are_loaded_without_what_their_rules_add() -> None:
    files = {"/usr/sbin/nft": ""}
    probes = {"nft --stateless list ruleset": Probe(0, RULES.encode())}
    loaded = FACETS["nftables"].load(MemoryMachine(files, probes=probes))
    assert list(loaded) == ["ip filter", "inet web"]
    text = loaded["inet web"]["content"].read().decode()
    assert "192.0.2" not in text and "elements = { 22, 80 }" in text and "timeout 1m\n\t}\n" in text
    assert FACETS["nftables"].load(MemoryMachine()) == {}


def test_rules_that_nft_does_not_print_are_an_error() -> None:
    probes = {"nft --stateless list ruleset": Probe(1, b"", b"netlink: Error: Operation not permitted\n")}
    with pytest.raises(CheckError, match="nft does not print the running rules: netlink: Error"):
        FACETS["nftables"].load(MemoryMachine({"/usr/sbin/nft": ""}, probes=probes))


def test_rules_of_ufw_are_loaded_from_its_files() -> None:
    """Recorded with ufw 0.36.2. A rule with a profile has one line for each protocol of the profile."""
    files = {
        "/etc/default/ufw": "IPV6=yes\n",
        "/etc/ufw/user.rules": (
            "*filter\n### RULES ###\n\n### tuple ### limit_log tcp 22 0.0.0.0/0 any 192.0.2.0/24 in_eth0 comment=6974\n"
            "-A ufw-user-input -j DROP\n### tuple ### route:allow any any 10.0.0.1 53 0.0.0.0/0 in_eth0!out_eth1\n"
            "### tuple ### deny tcp 88,749 0.0.0.0/0 any 0.0.0.0/0 Kerberos%20Full - in\n"
            "### tuple ### deny udp 464 0.0.0.0/0 any 0.0.0.0/0 Kerberos%20Full - in\n"
        ),
        "/etc/ufw/user6.rules": "### tuple ### allow any any ::/0 any 2001:db8::/32 out\n",
    }
    assert FACETS["ufw_rule"].load(MemoryMachine(files)) == {
        "order": {"ipv6": True},
        "in on eth0 proto tcp from 192.0.2.0/24 to any port 22, IPv4": {
            "action": "limit", "log": "log", "comment": "it"
        },
        "route in on eth0 out on eth1 from any port 53 to 10.0.0.1, IPv4": {
            "action": "allow", "log": "", "comment": ""
        },
        "in from any to any app Kerberos Full, IPv4": {"action": "deny", "log": "", "comment": ""},
        "out from 2001:db8::/32 to any, IPv6": {"action": "allow", "log": "", "comment": ""},
    }  # fmt: skip
    files["/etc/ufw/user.rules"] = "### tuple ### allow all of it\n"
    with pytest.raises(CheckError, match="contains a rule that statecfg can't read"):
        FACETS["ufw_rule"].load(MemoryMachine(files))


def test_state_of_ufw_is_what_runs_and_what_the_next_boot_does() -> None:
    files = {
        "/etc/ufw/ufw.conf": "# x\nENABLED=no\nLOGLEVEL=low\n",
        "/etc/default/ufw": 'DEFAULT_INPUT_POLICY="DROP"\n',
    }
    active = {"ufw status": Probe(0, b"Status: active\n\nTo\n")}
    loaded = FACETS["ufw"].load(MemoryMachine(files, probes=active))
    assert loaded["state"] == {"value": "active until the next boot"} and loaded["incoming"] == {"value": "deny"}
    with pytest.raises(CheckError, match="ufw does not say whether the firewall is active: ERROR: problem"):
        failed = {"ufw status": Probe(1, b"", b"ERROR: problem running ufw-init\n")}
        FACETS["ufw"].load(MemoryMachine(files, probes=failed))


def test_lines_of_pam_are_undone_in_the_file_to_which_a_link_leads() -> None:
    """As on a host with authselect."""
    text = "auth required pam_a.so\nauth required pam_b.so\n"
    machine = MemoryMachine({"/etc/authselect/system-auth": text, "/etc/pam.d": None})
    machine.symlink("/etc/pam.d/system-auth", "/etc/authselect/system-auth", "root", "root")
    node = {"pam": "a", "service": "system-auth", "module_type": "auth", "module": "pam_a.so", "absent": True}
    assert Undone(machine, node).ops == ["restore_stack"]
    link = machine.stat("/etc/pam.d/system-auth")
    assert link is not None and link.file_type == "symlink"
    assert machine.read("/etc/authselect/system-auth").decode() == text
