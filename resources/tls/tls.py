"""Private keys and certificates: their check, the ops that let the host's openssl make them, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine import process
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import files, paths, places, records, restore

if TYPE_CHECKING:
    from typing import TypedDict

    from statecfg.resources.shared import snapshot

    class PrivateKeyMemory(TypedDict):
        """The memory of a `tls_key`. `was` has no content, unless the node removes the key."""

        path: str
        was: snapshot.PathRecord | None


DAY = 86400  # seconds
CURVES = {256: "prime256v1", 384: "secp384r1", 521: "secp521r1"}


def made(machine: Machine, argv: Sequence[str], config: str, path: str, **options: Any) -> Result:
    """Let openssl print a key or a certificate, and write it to a file. Its output is in no log.

    :param config: what openssl reads from its standard input
    :param options: of `Machine.write`
    """

    def perform() -> Result:
        assert isinstance(machine, RealMachine)
        outcome = process.run(argv, 600.0, input=config.encode(), apart=True)
        if outcome.reason or outcome.status:
            lines = outcome.errors.decode("utf-8", "replace").strip().splitlines()
            return error("openssl: %s" % (outcome.reason or (lines[-1] if lines else "status %d" % outcome.status)))
        return machine.write(path, outcome.output, **options)

    # A plan runs nothing: it only knows that the content of the file is another one afterwards.
    return machine.run(argv, {"files": [path]}, first=perform)


def show_new(machine: Machine, path: str, what: str, mode: int | None, owner: str | None, group: str | None) -> None:
    """Show a file in the plan whose content only the host makes.

    :param what: the content, in words
    """
    old = machine.apparent(path)
    fields = {"kind": "file", "mode": None if mode is None else f"{mode:04o}", "owner": owner, "group": group}
    for field, value in fields.items() if old is None else ():
        if value is not None:
            machine.shows(path, field, None, value)
    machine.shows(path, "text", None if old is None else "another one", what)


@op
def create_key(
    machine: Machine,
    path: str,
    algorithm: str,
    bits: int | None = None,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
) -> Result:
    """Create a private key. It never leaves the host."""
    argv = ["openssl", "genpkey", "-algorithm", algorithm.upper()]
    if algorithm == "rsa":
        argv += ["-pkeyopt", "rsa_keygen_bits:%d" % (bits or 3072)]
    elif algorithm == "ec":
        argv += ["-pkeyopt", f"ec_paramgen_curve:{CURVES[bits or 256]}", "-pkeyopt", "ec_param_enc:named_curve"]
    show_new(machine, path, f"a new {algorithm} key", mode, owner, group)
    return made(machine, argv, "", path, mode=mode, owner=owner, group=group)


@op
def issue(
    machine: Machine,
    path: str,
    reason: str,
    key: str,
    days: int,
    config: str,
    authority: str | None = None,
    authority_key: str | None = None,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
) -> Result:
    """Issue a certificate.

    :param reason: why a new one is needed
    :param config: the configuration of openssl with the subject and the extensions
    :param authority: the certificate of the authority that signs it; None: its own key signs it
    """
    argv = ["openssl", "req", "-x509", "-new", "-key", key, "-days", str(days), "-sha256", "-config", "/dev/stdin"]
    show_new(machine, path, f"a new certificate: {reason}", mode, owner, group)
    if authority is not None:
        argv += ["-CA", authority, "-CAkey", str(authority_key)]
    return made(machine, argv, config, path, mode=mode, owner=owner, group=group)


def check_key(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Create a missing key, and compare mode, owner and group of an existing one.

    :raises CheckError: if something else is at the path
    """
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path)
    files.check_type(path, stat, bool(attrs.get("absent")))
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []
    mode = paths.mode_bits(attrs["mode"])
    if stat is None:
        paths.require_parent(world, path, node, nodes)
        owner, group = paths.owners(world, node, nodes)
        return [create_key(path, attrs["algorithm"], attrs.get("bits"), mode, owner, group)]
    if not re.search(rb"^-----BEGIN [A-Z ]*PRIVATE KEY-----", places.read(world, path), re.M):
        raise CheckError(f"{path} is not a private key in PEM; move it away, and statecfg creates one")
    return paths.attribute_actions(world, path, stat, mode, node, nodes)


def remember_key(node: HostNode, world: World) -> PrivateKeyMemory:
    """Record mode, owner and group of an existing key. Its content is recorded only if the node removes it."""
    path = node.attrs["path"]
    if node.attrs.get("absent"):
        return {"path": path, "was": files.remember(node, world)["was"]}
    stat = world.stat(path)
    if stat is None:
        return {"path": path, "was": None}
    return {"path": path, "was": {"kind": stat.file_type, "mode": stat.mode, "owner": stat.owner, "group": stat.group}}


def undo_key(node: HostNode, memory: Any, world: World) -> ActionSpec:
    """Remove a key that the node created, or restore mode, owner and group of an older one."""
    restoring = restore.Restore(world, {})
    put_back(restoring, node, memory)
    return restoring.spec()


def put_back(restoring: restore.Restore, node: HostNode, memory: Any) -> None:
    """Restore the file of a key."""
    if node.attrs.get("absent"):
        if memory["was"] is not None:
            restoring.back_if_missing(memory["path"], memory["was"])
    elif memory["was"] is None:
        restoring.back(memory["path"], None, ("file",))
    else:
        restoring.restore_attributes(memory["path"], memory["was"], ("mode", "owner", "group"), node.attrs)


def check_certificate(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Issue a certificate that is missing, wrong or about to expire; compare mode, owner and group of another one.

    :raises CheckError: if the key, or the authority, does not exist
    """
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path)
    files.check_type(path, stat, bool(attrs.get("absent")))
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []
    for name in filter(None, (attrs["key"], attrs.get("authority"), attrs.get("authority_key"))):
        if world.is_known(name) and world.stat(name) is None:
            raise CheckError(f"{name} does not exist; declare the node that creates it and require it")
    mode = paths.mode_bits(attrs["mode"])
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    reason = "the certificate is missing" if stat is None else wrong(attrs, world)
    if not reason and stat is not None:
        return paths.attribute_actions(world, path, stat, mode, node, nodes)
    options = {name: attrs.get(name) for name in ("authority", "authority_key")}
    owner, group = paths.owners(world, node, nodes)
    days, config = attrs["days"], attrs["config"]
    return [issue(path, reason, attrs["key"], days, config, mode=mode, owner=owner, group=group, **options)]


def wrong(attrs: records.Attrs, world: World) -> str:
    """Return why a new certificate is needed, "" if the present one is as wanted.

    :raises CheckError: if openssl cannot read the key
    """
    path, key, authority = attrs["path"], attrs["key"], attrs.get("authority")
    ask = ["openssl", "x509", "-in", path, "-noout", "-subject", "-issuer", "-nameopt", "RFC2253,utf8"]
    ask += ["-ext", "subjectAltName,basicConstraints", "-pubkey", "-checkend", str(attrs["renew_before"] * DAY)]
    found = world.probe(ask, inputs=("tls", [path]))
    text = found.text
    if "BEGIN PUBLIC KEY" not in text:
        return "the file is not a certificate"
    public = world.probe(["openssl", "pkey", "-in", key, "-pubout"], inputs=("tls", [key]))
    if public.status:
        raise CheckError(f"openssl cannot read the key {key}")
    lines = dict(line.partition("=")[::2] for line in text.splitlines() if line.startswith(("subject=", "issuer=")))
    if public.text.strip() not in text:
        return "the certificate belongs to another key"
    if lines["subject"] != "CN=" + attrs["common_name"]:
        return f"the certificate has the subject {lines['subject']}"
    if names(text) != sorted(attrs["names"]):
        return "the certificate has other names: %s" % (", ".join(names(text)) or "none")
    if ("CA:TRUE" in text) != bool(attrs.get("is_authority")):
        return f"the certificate {'belongs to' if 'CA:TRUE' in text else 'does not belong to'} an authority"
    if "Certificate will expire" in text:
        return f"the certificate expires within {attrs['renew_before']} days"
    if authority is None:
        return "" if lines["issuer"] == lines["subject"] else "an authority has signed the certificate"
    verify = ["openssl", "verify", "-partial_chain", "-CAfile", authority, path]
    signed = world.probe(verify, inputs=("tls", [path, authority])).status == 0
    return "" if signed else f"{posixpath.basename(authority)} has not signed the certificate"


def names(text: str) -> list[str]:
    """Return the names and addresses of a certificate, such as `DNS:a` and `IP:192.0.2.1`, sorted.

    :param text: what openssl prints about it
    """
    import ipaddress  # only hosts with certificates need it

    found = re.search(r"Subject Alternative Name:.*\n\s*(.*)", text)
    listed = [entry.strip() for entry in found.group(1).split(",")] if found is not None else []
    addresses = [entry.partition(":")[2] for entry in listed if entry.startswith("IP Address:")]
    return sorted(
        [entry for entry in listed if not entry.startswith("IP Address:")]
        + [f"IP:{ipaddress.ip_address(address)}" for address in addresses]
    )


def remember_certificate(node: HostNode, world: World) -> files.FileMemory:
    """Record the former file with its content: a certificate is public."""
    return files.remember(_whole(node), world)


def undo_certificate(node: HostNode, memory: Any, world: World) -> ActionSpec:
    """Restore the former file, or remove the certificate."""
    whole = _whole(node)
    made = {name: node.attrs.get(name) for name in ("mode", "owner", "group")}
    whole = HostNode(node.provides, node.type, node.requires, {**whole.attrs, **made, "content": None})
    return files.undo(whole, memory, world)


def _whole(node: HostNode) -> HostNode:
    """Return the file as `file` would declare it, with any content."""
    absent = bool(node.attrs.get("absent"))
    attrs = {"path": node.attrs["path"], "absent": absent, "content": None if absent else Blob.of(b"")}
    return HostNode(node.provides, node.type, node.requires, attrs)
