"""Key pairs of SSH."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, Mode, NodeOptions, Owner, OwnerGroup, PublicLine, node_type
from statecfg.resources.shared import paths
from statecfg.resources.ssh import ssh_keys
from statecfg.resources.tls import tls_rules


@node_type
def ssh_key(
    path: AbsolutePath,
    *,
    algorithm: Literal["ed25519", "ecdsa", "rsa"] = "ed25519",
    bits: int | None = None,
    comment: PublicLine | None = None,
    mode: Mode = "0600",
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage an SSH key pair that the host's ssh-keygen creates, such as a host key or the key of a user.

    The private key has no passphrase. It never leaves the host, and no log shows it. The public key is beside it, in
    the file with the suffix `.pub` and mode 0644. statecfg creates missing files, and derives a missing public key from
    the private key. It never replaces an existing private key, even if its algorithm or size differs: delete the file
    to get a new key.

    Undo: statecfg removes the files that it created. For older ones, it restores mode, owner and group.

    :param path: the path of the private key
    :param algorithm: the algorithm of a new key: `ed25519`, `ecdsa` or `rsa`
    :param bits: the size of a new key; default: 256 for ecdsa (also 384 and 521), 3072 for rsa
    :param comment: the comment of a new key
    :param mode: permission bits of the private key as an octal string
    :param owner: user who owns both files, by name or number
    :param group: group that owns both files, by name or number
    :param absent: there must be no file at both paths

    In YAML::

        - ssh_key: /etc/ssh/ssh_host_rsa_key
          algorithm: rsa
          bits: 4096

    In Python::

        ssh_key("/home/deploy/.ssh/id_ed25519", owner="deploy", group="deploy", comment="deploy@web1")
    """


@ssh_key.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify both files."""
    return ["path:" + attrs["path"], "path:" + ssh_keys.public(attrs["path"])]


@ssh_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a size that the algorithm does not have, and attributes that have no effect."""
    if attrs.get("absent"):
        paths.refuse_with_absent({**attrs, "algorithm": None, "mode": None}, ("path", "absent"))
    tls_rules.check_bits("ec" if attrs["algorithm"] == "ecdsa" else attrs["algorithm"], attrs.get("bits"))


ssh_key.needs(tls_rules.needs("ssh-keygen"))
ssh_key.implemented_by(ssh_keys)
