"""Rules for addresses, names and keys in files that consist of lines. Only the controller uses this module."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Sequence

from statecfg.remote.graph.wrong_values import Wrong, show

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\Z")
_KEY_TYPE = re.compile(r"(ssh|ecdsa-sha2|sk-ssh|sk-ecdsa-sha2)-[a-z0-9@.-]+\Z")


def check_address(text: str) -> None:
    """Check an IP address.

    :raises Wrong: if it is not valid
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise Wrong(
            f"{show(text)} is not an IP address", "write an address such as 192.0.2.11 or 2001:db8::7"
        ) from None


def check_host_name(name: str) -> None:
    """Check the name of a host. Source: hosts(5) and RFC 1123; an underscore is common and allowed.

    :raises Wrong: if it is not valid
    """
    if not _HOST_NAME.match(name) or len(name) > 253:
        raise Wrong(
            f"{show(name)} is not the name of a host", "use letters, digits, `-` and `.`, such as db1.example.org"
        )


def check_host_names(names: Sequence[str]) -> None:
    """Check the names of an address.

    :raises ValueError: if there are none, or one is not valid
    """
    if not names:
        raise ValueError("names is required unless absent is true")
    for name in names:
        check_host_name(name)


def check_server(name: str) -> None:
    """Check the name of an SSH server: a name or address, or ``[name]:port``. Source: sshd(8).

    :raises Wrong: if it is not valid
    """
    found = re.match(r"\[([^\]]+)\]:([0-9]{1,5})\Z", name)
    if found and not 1 <= int(found[2]) <= 65535:
        raise Wrong(f"{show(name)} has a port that is not from 1 to 65535")
    host = found[1] if found else name
    try:
        ipaddress.ip_address(host)
    except ValueError:
        check_host_name(host)


def check_key(text: str) -> None:
    """Check a public key: its type, the key in base64, and optionally a comment.

    :raises Wrong: if it is not valid
    """
    key_type, _, rest = text.partition(" ")
    key = rest.split(" ")[0]
    if not _KEY_TYPE.match(key_type):
        help = "write type and key, such as ssh-ed25519 AAAA…; restrictions have their own attribute"
        raise Wrong(f"{show(key_type)} is not the type of a public key", help)
    try:
        data = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    size = int.from_bytes(data[:4], "big")
    if not data or data[4 : 4 + size] != key_type.encode():
        raise Wrong(
            f"the key after {key_type} is not a public key of this type", "copy the whole line of the .pub file"
        )


def check_setting(name: str) -> None:
    """Check the name of a setting of the kernel.

    :raises Wrong: if it is not valid
    """
    if name.startswith("kernel/") or "/" in name.partition(".")[0]:
        raise Wrong(f"{show(name)} is not the name of a setting", f"write it with dots: {name.replace('/', '.')}")
    if not re.match(r"[a-z_0-9]+(\.[A-Za-z0-9_:@*/-]+)+\Z", name):
        raise Wrong(
            f"{show(name)} is not the name of a setting", "write it as sysctl shows it, such as net.ipv4.ip_forward"
        )


def check_zone(name: str) -> None:
    """Check the name of a time zone.

    :raises Wrong: if it is not valid
    """
    if not re.match(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*\Z", name):
        raise Wrong(f"{show(name)} is not the name of a time zone", "write a name such as Europe/Berlin or Etc/UTC")


def check_own_name(name: str) -> None:
    """Check the name that a host gives itself. Linux allows 64 bytes.

    :raises Wrong: if it is not valid
    """
    check_host_name(name)
    if len(name) > 64:
        raise Wrong(f"a name of {len(name)} bytes; the name of a host has at most 64")


def check_mount_options(options: Sequence[str]) -> None:
    """Check the options of a mount, each by itself.

    :raises Wrong: if one is empty, or contains a blank
    """
    for option in options:
        if not option or re.search(r"\s", option):
            raise Wrong(f"mount_options: {show(option)} is not an option", "write one option each, without blanks")
