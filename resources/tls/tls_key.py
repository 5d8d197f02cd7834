"""Private keys for TLS."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, Mode, NodeOptions, Owner, OwnerGroup, node_type
from statecfg.resources.shared import paths
from statecfg.resources.tls import tls, tls_rules


@node_type
def tls_key(
    path: AbsolutePath,
    *,
    algorithm: Literal["ec", "rsa", "ed25519"] = "ec",
    bits: int | None = None,
    mode: Mode = "0600",
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a private key that the host's openssl creates. It never leaves the host, and no log shows it.

    statecfg creates a missing key. It never replaces an existing one, even if its algorithm or size differs: delete the
    file to get a new key.

    Undo: statecfg removes a key that it created. For an older key, it restores mode, owner and group.

    :param path: the path of the key in PEM
    :param algorithm: the algorithm of a new key: `ec`, `rsa` or `ed25519`
    :param bits: the size of a new key; default: 256 for ec (also 384 and 521), 3072 for rsa
    :param mode: permission bits as an octal string
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param absent: there must be no file at the path

    In YAML::

        - tls_key: /etc/ssl/private/shop.key
          group: ssl-cert
          mode: "0640"

    In Python::

        tls_key("/etc/ssl/private/shop.key", algorithm="rsa", bits=4096)
    """


tls_key.identity(paths.path_identity)


@tls_key.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a size that the algorithm does not have, and attributes that have no effect."""
    if attrs.get("absent"):
        paths.refuse_with_absent({**attrs, "algorithm": None, "mode": None}, ("path", "absent"))
    tls_rules.check_bits(attrs["algorithm"], attrs.get("bits"))


tls_key.needs(tls_rules.needs("openssl"))
tls_key.check(tls.check_key)
tls_key.remember(tls.remember_key)
tls_key.undo(tls.undo_key)
