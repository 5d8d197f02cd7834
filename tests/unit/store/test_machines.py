"""Which hosts are the same machine: by host key, then by the lineage of the ledger, then by the address."""

from __future__ import annotations

from statecfg.store.machines import MachineIdentity as Identity
from statecfg.store.machines import Machines
from tests.each import each


@each(
    "one, other, same",
    [
        (Identity("l1", "ssh-ed25519 a"), Identity("l1", "ssh-ed25519 a"), True),
        (Identity("l1", "ssh-ed25519 a"), Identity("l1", "ssh-ed25519 b"), False),  # a copied disk with a new key
        (Identity("l1", "ssh-ed25519 a"), Identity("l2", "ssh-ed25519 a"), True),  # another user's ledger
        (Identity("l1", "ssh-ed25519 a"), Identity("l1", "ssh-rsa b"), True),
        (Identity("l1", "", "web 22"), Identity("l2", "", "web 22"), False),  # a reused address
        (Identity("", "", "web 22"), Identity("l2", "ssh-rsa b", "web 22"), True),  # never contacted
        (Identity(), Identity(), False),
    ],
)
def test_the_same_machine(one: Identity, other: Identity, same: bool) -> None:
    assert one.is_same(other) is same and other.is_same(one) is same


def test_a_machine_is_destroyed_by_its_own_name_only() -> None:
    machines = Machines()
    machines.met = {"web2": Identity("l2", "ssh-rsa b"), "shop2": Identity("l2", "ssh-rsa b")}
    machines.named = {"shop2": Identity("l2", "ssh-rsa b"), "web1": Identity("l1", "ssh-rsa a")}
    assert machines.refusal("web2") == "this machine is shop2, which the playbook names: nothing was removed from it"
    assert machines.refusal("shop2") == "" and machines.refusal("unknown") == ""
