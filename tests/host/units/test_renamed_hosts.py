"""A host is its machine: a renamed host keeps its resources, and nothing of a machine is destroyed by its old name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.host.units.fabric import Fabric
from tests.lab import Host, login

PLAY = "hosts: {0}\nresources: [{{directory: /srv/renamed}}, {{file: /srv/renamed/x, content: x}}]\n"


@pytest.fixture
def fabric(tmp_path: Path, bare_pair: list[Host]) -> Fabric:
    made = Fabric(tmp_path, bare_pair)
    made.play(PLAY.format("all"))
    return made


def inventory(fabric: Fabric, **hosts: Host) -> None:
    """Write an inventory with these names of hosts."""
    lines = [
        f"  {name}: {{address: {host.address}, port: {host.port}, user: {host.user}, key: {host.identity}}}\n"
        for name, host in hosts.items()
    ]
    (fabric.root / "inventory.yml").write_text("hosts:\n" + "".join(lines))


def test_a_renamed_host_keeps_its_resources(fabric: Fabric, pair: list[Host]) -> None:
    inventory(fabric, web1=pair[0], web2=pair[1])
    fabric.apply()
    inventory(fabric, web1=pair[0], shop2=pair[1])
    planned = fabric("plan", "site.yml", "--detailed-exitcode").out
    assert "left the playbook" not in planned and "web2" not in planned, planned
    # As after the hint of earlier versions, "add it": both names have the same address.
    inventory(fabric, web1=pair[0], web2=pair[1], shop2=pair[1])
    fabric.play(PLAY.format("[web1, shop2]"))
    assert "web2" not in fabric("plan", "site.yml").out
    refused = fabric("destroy", "--hosts", "web2", "site.yml", "--yes", code=None).out
    assert "this machine is shop2, which the playbook names" in refused, refused
    report = fabric.apply("--prune-hosts")
    assert sorted(report) == ["shop2", "web1"]
    assert "this machine is shop2" in fabric("destroy", "--hosts", "web2", "site.yml", "--yes", code=None).out
    assert pair[1].read("/srv/renamed/x") == "x"
    fabric("destroy", "--hosts", "shop2", "site.yml", "--yes")  # by its own name
    assert not pair[1].path("/srv/renamed").exists() and pair[0].path("/srv/renamed").exists()


def test_hosts_that_swapped_their_names_keep_their_resources(fabric: Fabric, pair: list[Host]) -> None:
    inventory(fabric, web1=pair[0], web2=pair[1])
    fabric.apply()
    inventory(fabric, web1=pair[1], web2=pair[0])
    fabric.play(PLAY.format("web1"))
    fabric("destroy", "--hosts", "web1", "site.yml", "--yes", code=None)
    assert pair[0].read("/srv/renamed/x") == "x"  # it is not the machine of that name any more


def test_machines_from_one_image_are_told_apart_by_their_ids(fabric: Fabric, pair: list[Host]) -> None:
    """Both have the same host key, so the key does not say which of them left the playbook."""
    inventory(fabric, web1=pair[0], web2=pair[1])
    names = ["/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub"]
    before = {name: pair[1].read(name) for name in names}
    known = pair[1].known_hosts.read_text()
    listed = (fabric.root / "known_hosts").read_text()

    def give_keys(texts: dict[str, str], key: str) -> None:
        for name, text in texts.items():
            pair[1].write(name, text, 0o600)
        os.kill(pair[1].listener, signal.SIGHUP)  # sshd starts again with these keys
        (fabric.root / "known_hosts").write_text(listed.replace(known, key))
        login.await_ssh(pair[1], pair[1].process, pair[1].log)

    address = known.split()[0]
    pair[1].known_hosts.write_text(f"{address} {' '.join(pair[0].known_hosts.read_text().split()[1:])}\n")
    give_keys({name: pair[0].read(name) for name in names}, pair[1].known_hosts.read_text())
    try:
        fabric.apply()
        fabric.play(PLAY.format("web1"))
        assert "destroy --hosts web2" in fabric("plan", "site.yml").out
        fabric.apply("--prune-hosts")
    finally:
        pair[1].known_hosts.write_text(known)
        give_keys(before, known)
    assert not pair[1].path("/srv/renamed").exists() and pair[0].path("/srv/renamed").exists()
