"""Rules for addresses, names and keys in files that consist of lines. Only the controller uses this module."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.shared import line_rules

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


def check_server(name: str, patterns: bool = False) -> None:
    """Check the name of an SSH server: a name or address, or ``[name]:port``. Source: sshd(8).

    :param patterns: whether it can be a list of patterns, with commas between them
    :raises Wrong: if it is not valid
    """
    if patterns:
        for pattern in name.split(","):
            check_server(re.sub(r"[*?]", "x", pattern.removeprefix("!")))
        return
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


def check_keys(lines: Sequence[str]) -> None:
    """Check the lines of a file with keys: each is a public key, with options of sshd in front of it if necessary.

    :raises Wrong: if one is not valid, or if a key is there twice
    """
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        found = re.match(r'(?:(?:[^\s"]|"(?:\\.|[^"\\])*")+\s+)?(?=(?:ssh|ecdsa|sk)-)', line)
        key = line[found.end() :] if found else line
        try:
            check_key(key)
        except Wrong as problem:
            raise Wrong(f"all_keys: element {number}: {problem}", problem.help) from None
        same = " ".join(key.split()[:2])
        if same in seen:
            raise Wrong(f"all_keys: element {number} is the same key as an earlier one", "remove one of them")
        seen.add(same)


def check_setting(name: str) -> None:
    """Check the name of a setting of the kernel.

    :raises Wrong: if it is not valid
    """
    if "/" in name.partition(".")[0]:
        # sysctl.d(5): if the first separator is a slash, dots belong to the names. Slashes and dots change places.
        help = name.translate(str.maketrans("./", "/."))
        raise Wrong(f"{show(name)} is not the name of a setting", f"write it with dots: {help}")
    if not re.match(r"[a-z_0-9]+(\.[A-Za-z0-9_:@*/-]+)+\Z", name):
        raise Wrong(
            f"{show(name)} is not the name of a setting", "write it as sysctl shows it, such as net.ipv4.ip_forward"
        )


def check_zone(attrs: Mapping[str, Any]) -> None:
    """Check the name of a time zone.

    :raises Wrong: if it is not valid
    """
    name = attrs["name"]
    if not re.match(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*\Z", name):
        raise Wrong(f"{show(name)} is not the name of a time zone", "write a name such as Europe/Berlin or Etc/UTC")


def check_own_name(attrs: Mapping[str, Any]) -> None:
    """Check the name that a host gives itself. Linux allows 64 bytes, and hostname(1) no underscore.

    :raises Wrong: if it is not valid
    """
    name = attrs["name"]
    check_host_name(name)
    if "_" in name:
        raise Wrong(f"{show(name)} contains an underscore, which hostname(1) refuses", "use `-`")
    if len(name) > 64:
        raise Wrong(f"a name of {len(name)} bytes; the name of a host has at most 64")


def check_mount_options(options: Sequence[str]) -> None:
    """Check each option of a mount.

    :raises Wrong: if one is empty, or contains a blank
    """
    for option in options:
        if not re.match(r'(?:[^\s,#"\\]|"[^\s"\\]*"|\\[0-7]{3})+\Z', option):
            help = "write one option each, without blanks; a value with commas needs quotes"
            raise Wrong(f"mount_options: {show(option)} is not an option", help)


def check_locale(name: str) -> None:
    """Check the name of a locale. Source: setlocale(3).

    :raises Wrong: if it is not valid
    """
    if not re.match(r"(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9-]+)?(@[a-z0-9]+)?\Z", name):
        raise Wrong(f"{show(name)} is not the name of a locale", "write a name such as de_DE.UTF-8")


def check_module(name: str, parameters: Mapping[str, object]) -> None:
    """Check the name and the parameters of a kernel module.

    :raises Wrong: if a name contains other characters than letters, digits, `_` and `-`
    """
    for what, text in (("the name of a module", name), *(("the name of a parameter", text) for text in parameters)):
        if not re.match(r"[A-Za-z0-9_-]+\Z", text):
            raise Wrong(f"{show(text)} is not {what}", "use letters, digits, `_` and `-`")
    for parameter, value in parameters.items():
        if hasattr(value, "reveal"):
            raise PublicSecret("modules have no secret parameters", "parameters")
        if not re.match(r"\S+\Z", str(value)):
            raise Wrong(f"parameters: {parameter} is {show(value)}", "write a value without blanks")
        line_rules.check_line(f"parameters: {parameter}", str(value))


def check_size(text: str) -> None:
    """Check a size.

    :raises Wrong: if it is not a number of MiB, GiB or TiB
    """
    if not re.match(r"[1-9][0-9]{0,6}[MGT]\Z", text):
        raise Wrong(f"{show(text)} is not a size", "write a number with M, G or T, such as 512M or 2G")


def size_in_bytes(text: str) -> int:
    """Return a size that `check_size` accepts in bytes."""
    return int(text[:-1]) << {"M": 20, "G": 30, "T": 40}[text[-1]]


def check_ages(attrs: Mapping[str, Any]) -> None:
    """Check the rules for the age of a password.

    :raises Wrong: if a number or the date is not valid
    """
    for name, lowest in (("min_days", 0), ("max_days", -1), ("warn_days", 0), ("inactive_days", -1)):
        days = attrs.get(name)
        if days is not None and not lowest <= days <= 99999:
            raise Wrong(f"{name} is {days}", f"write a number of days from {lowest} to 99999")
    date = attrs.get("expires")
    if date is not None and date != "never":
        try:
            valid = re.match(r"\d{4}-\d\d-\d\d\Z", date) and datetime.date.fromisoformat(date).year >= 1970
        except ValueError:
            valid = False
        if not valid:
            raise Wrong(f"expires: {show(date)} is not a date", "write a date such as 2027-01-31, or never")


def check_label(label: str, fstype: str) -> None:
    """Check the label of a file system. Source: the manual pages of mkfs.

    :raises Wrong: if it is empty or too long
    """
    longest = {"xfs": 12, "vfat": 11, "btrfs": 255}.get(fstype, 16)
    if not 0 < len(label.encode()) <= longest:
        raise Wrong(f"label: {show(label)} is empty or too long", f"{fstype} allows 1 to {longest} bytes")
