"""Certificates of authorities that the host trusts: the bundle of Debian's ca-certificates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, files

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
PROGRAM = "/usr/sbin/update-ca-certificates"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----\s(.*?)-----END CERTIFICATE-----", re.S)


@op(mutex="ca-certificates")
def update_trust(machine: Machine, fresh: bool = False) -> Result:
    """Update the bundle of all trusted certificates.

    :param fresh: also remove the links to removed certificates
    """
    argv = [PROGRAM, "--fresh"] if fresh else [PROGRAM]
    return machine.run(argv, {"files": ["/etc/ssl/certs"]}, timeout=300.0, interruptible=False)


def fingerprints(text: bytes) -> list[str]:
    """Return the SHA-256 of each certificate in a PEM text, in hex.

    :raises binascii.Error: if one of them is not base64
    """
    bodies = [b"".join(body.split()) for body in _CERTIFICATE.findall(text)]
    return [hashlib.sha256(base64.b64decode(body, validate=True)).hexdigest() for body in bodies]


def trusted(world: World) -> set[str]:
    """Return the fingerprints of all certificates in the bundle.

    :raises Unknown: if a required node may change it
    """
    return set(fingerprints(world.read(BUNDLE))) if world.stat(BUNDLE) is not None else set()


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the certificate, and whether the bundle contains it.

    :raises CheckError: if the host has no ca-certificates
    """
    actions = drop_ins.check(node, nodes, world)
    if not actions and node.attrs.get("absent"):
        return []
    if world.is_known(PROGRAM) and world.stat(PROGRAM) is None:
        raise CheckError(f"{PROGRAM} does not exist; require the package ca-certificates")
    if actions or node.attrs["fingerprint"] not in trusted(world):
        actions.append(update_trust(fresh=bool(node.attrs.get("absent"))))
    return actions


def undo(node: HostNode, memory: Any, world: World) -> ActionSpec:
    """Restore the former file, or remove the certificate, and update the bundle."""
    spec = files.undo(node, memory, world)
    # If an earlier undo was interrupted, the file is gone, but the bundle still contains the certificate.
    stale = not world.acted and memory["was"] is None and node.attrs.get("fingerprint") in trusted(world)
    if spec.actions or stale:
        spec.actions.append(update_trust(fresh=True))
    return spec
