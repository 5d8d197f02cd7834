"""Which hosts are the same machine: by machine id and host key, then by the ledger, then by the address."""

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
        (Identity("l1", "ssh-rsa a", "", "m1"), Identity("l2", "ssh-rsa a", "", "m2"), False),  # from one image
        (Identity("l1", "ssh-rsa a", "", "m1"), Identity("l2", "ssh-rsa a", "", "m1"), True),
        (Identity("l1", "ssh-rsa a", "", "m1"), Identity("l2", "ssh-rsa b", "", "m1"), False),  # an image with an id
        (Identity("l1", "ssh-rsa a", "", "m1"), Identity("l1", "ssh-rsa b", "", "m1"), True),  # a new host key
        (Identity("l1", "", "", "m1"), Identity("l2", "ssh-rsa b", "", "m1"), True),
        (Identity("l1", "ssh-rsa a", "web 22", "m1"), Identity("", "", "web 22"), True),  # never contacted
    ],
)
def test_the_same_machine(one: Identity, other: Identity, same: bool) -> None:
    assert one.is_same(other) is same and other.is_same(one) is same


def test_a_machine_is_destroyed_by_its_own_name_only() -> None:
    machines = Machines()
    machines.met = {"web2": Identity("l2", "ssh-rsa b"), "shop2": Identity("l2", "ssh-rsa b")}
    machines.named = {"shop2": Identity("l2", "ssh-rsa b"), "web1": Identity("l1", "ssh-rsa a")}
    assert machines.refusal("web2").startswith("this machine is shop2, which the playbook names: nothing was removed")
    assert machines.refusal("shop2") == "" and machines.refusal("unknown") == ""
