"""Rules for keys and certificates. Only the controller uses this module."""

from __future__ import annotations

import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import entry_rules
from statecfg.resources.tls import trusted_authorities


def fingerprint(text: bytes) -> str:
    """Return the fingerprint of the only certificate in a PEM text.

    :raises Wrong: if there is none, or more than one, or if there is a private key
    """
    if b"PRIVATE KEY-----" in text:
        raise Wrong("the content contains a private key", "take only the certificate")
    try:
        found = trusted_authorities.fingerprints(text)
    except binascii.Error:
        raise Wrong("the content is not a valid certificate", "copy the whole file") from None
    if len(found) != 1:
        help = "write one certificate that begins with -----BEGIN CERTIFICATE-----; each further one is a separate node"
        raise Wrong(f"the content contains {len(found)} certificates", help)
    return found[0]


def needs(program: str) -> Callable[[Mapping[str, Any]], list[str]]:
    """Return a function that returns what a key or certificate needs, with the program that makes it."""

    def needed(attrs: Mapping[str, Any]) -> list[str]:
        owners = [f"{what}:{attrs[name]}" for what, name in (("user", "owner"), ("group", "group")) if attrs.get(name)]
        others = [f"path:{attrs[name]}" for name in ("key", "authority", "authority_key") if attrs.get(name)]
        return [f"inside:{attrs['path']}", *owners, *others, f"program:{program}"]

    return needed


def check_bits(algorithm: str, bits: int | None) -> None:
    """Check the size of a key.

    :raises Wrong: if the algorithm has no such keys
    """
    if bits is None:
        return
    if algorithm == "ed25519":
        raise Wrong("bits has no effect with ed25519", "remove it")
    if algorithm == "ec" and bits not in (256, 384, 521):
        raise Wrong(f"no curve has {bits} bits", "write 256, 384 or 521")
    if algorithm == "rsa" and not 2048 <= bits <= 16384:
        raise Wrong(f"an RSA key with {bits} bits", "write 2048 to 16384")


def check_certificate(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a certificate together.

    :raises ValueError: if one is missing or not valid, or they contradict each other
    """
    if attrs.get("key") is None:
        raise ValueError("key is required unless absent is true")
    if not attrs.get("names") and not attrs.get("common_name"):
        raise ValueError("names or common_name is required unless absent is true")
    if attrs.get("is_authority") and attrs.get("common_name") is None:
        raise ValueError("is_authority requires common_name")
    for name in attrs.get("names") or ():
        qualified(name)
    subject = common_name(attrs)
    if not re.match(r"[A-Za-z0-9_.:@*()'/ -]{1,64}\Z", subject) or subject != subject.strip():
        help = "write common_name with at most 64 letters, digits, blanks, `.`, `_`, `-`, `@`, `*`, `(`, `)` and `/`"
        raise Wrong(f"{show(subject)} can't be the common name of the subject", help)
    if not 1 <= attrs["days"] <= 36500:
        raise Wrong(f"days is {attrs['days']}", "write 1 to 36500")
    if not 0 <= attrs["renew_before"] < attrs["days"]:
        raise Wrong(f"renew_before is {attrs['renew_before']}", f"write 0 to {attrs['days'] - 1}: less than days")
    if (attrs.get("authority") is None) != (attrs.get("authority_key") is None):
        raise ValueError("authority and authority_key require each other")


def common_name(attrs: Mapping[str, Any]) -> str:
    """Return the common name of the subject: that of the node, otherwise the first name."""
    return str(attrs.get("common_name") or attrs["names"][0])


def qualified(name: str) -> str:
    """Return a name in the form of openssl: `DNS:NAME` or `IP:ADDRESS`.

    :raises Wrong: if it is neither a name nor an address
    """
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        entry_rules.check_host_name(name.removeprefix("*."))
        return f"DNS:{name}"


def config(subject: str, names: Sequence[str], is_authority: bool, signed: bool) -> str:
    """Return the configuration of openssl for a certificate.

    :param subject: the common name
    :param names: names and addresses as `qualified` returns them
    :param signed: whether an authority signs it
    """
    usage = "keyCertSign,cRLSign" if is_authority else "digitalSignature,keyEncipherment"
    rows = [
        "[req]", "distinguished_name = subject", "prompt = no", "string_mask = utf8only",
        "x509_extensions = extensions",
        "[subject]", f"CN = {subject}",
        "[extensions]", "subjectKeyIdentifier = hash", f"keyUsage = critical,{usage}",
        f"basicConstraints = critical,CA:{str(is_authority).upper()}",
    ]  # fmt: skip
    rows += ["authorityKeyIdentifier = keyid"] if signed else []
    rows += [] if is_authority else ["extendedKeyUsage = serverAuth,clientAuth"]
    rows += [f"subjectAltName = {','.join(names)}"] if names else []
    return "".join(f"{row}\n" for row in rows)
