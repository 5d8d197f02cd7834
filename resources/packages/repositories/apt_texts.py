"""The texts of apt's files: repositories and pins. Only the controller uses this module."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.shared import drop_in_texts, paths, records

# The attributes of a repository that the host needs only as the content of the file.
WRITTEN = (
    "uris", "suites", "components", "sources", "architectures", "key", "key_source", "signed_by", "trusted", "enabled",
    "settings", "fetch",
)  # fmt: skip
SCHEMES = ("http", "https", "file", "cdrom", "copy", "ftp", "mirror", "mirror+file", "mirror+http", "mirror+https")
# Fields of a deb822 source without a corresponding attribute. Source: sources.list(5) of apt 2.6 and 3.0.
SETTINGS = (
    "Languages", "Targets", "PDiffs", "By-Hash", "Allow-Insecure", "Allow-Weak", "Allow-Downgrade-To-Insecure",
    "Snapshot", "Check-Valid-Until", "Valid-Until-Min", "Valid-Until-Max", "Check-Date", "Date-Max-Future",
    "InRelease-Path", "Description", "Include", "Exclude",
)  # fmt: skip
BEGIN, END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_PIN = re.compile(r"(version|release|origin) \S")


def check_repository(attrs: records.Attrs) -> None:
    """Check the attributes of a repository.

    :raises Wrong: if a value is not valid
    :raises ValueError: if attributes contradict each other
    """
    check_file(attrs["name"], "letters, digits, `_`, `-` and `.`")
    if attrs.get("absent"):
        paths.refuse_with_absent({name: attrs[name] for name in ("name", "absent", *_given(attrs))}, ("name", "absent"))
        return
    drop_in_texts.check_present(attrs, ("uris", "suites"))
    for name in ("uris", "suites"):
        if not attrs[name]:
            raise ValueError(f"{name} is empty; name at least one")
    for uri in attrs["uris"]:
        check_uri(uri)
    _check_words(attrs, ("suites", "components"))
    exact = [suite.endswith("/") for suite in attrs["suites"]]
    if any(exact) and attrs.get("components"):
        raise ValueError("a suite that ends with / is a path, and has no components")
    if not all(exact) and not attrs.get("components"):
        raise ValueError("components is required, such as [main]; or let the suite end with /, if there are none")
    if sum(attrs.get(name) is not None for name in ("key", "key_source", "signed_by")) > 1:
        raise ValueError("key, key_source and signed_by can't be combined")
    if hasattr(attrs.get("key"), "reveal"):
        raise PublicSecret("the key of a repository is public: write it as it is", "key")
    if attrs.get("key"):
        armored(attrs["key"].encode())
    for field in attrs.get("settings") or {}:
        if field not in SETTINGS:
            help = did_you_mean(field, SETTINGS) or "sources.list(5) lists them; the others are attributes"
            raise Wrong(f"settings: apt has no field {show(field)} for this", help)


def _given(attrs: records.Attrs) -> Iterable[str]:
    """Yield the attributes of a repository that are not at their default."""
    defaults = {"sources": False, "enabled": True, "fetch": True}
    return (name for name in WRITTEN if attrs.get(name) not in (None, defaults.get(name)))


def check_file(name: str, allowed: str) -> None:
    """Check the name of a file in a directory of apt, which ignores files with other characters.

    :raises Wrong: if the name contains other characters
    """
    if not re.match(r"[A-Za-z0-9_.-]+\Z", name):
        raise Wrong(f"not a valid name of a file in such a directory: {show(name)}", f"use {allowed}")


def check_uri(uri: str) -> None:
    """Check the address of a repository.

    :raises Wrong: if it is not valid, or contains a password
    """
    scheme, colon, rest = uri.partition(":")
    if scheme not in SCHEMES or not colon or not rest.strip("/") or re.search(r"\s", uri):
        raise Wrong(f"uris: not the address of a repository: {show(uri)}", "write one such as https://example.org/apt")
    if re.match(r"//[^/@]*:[^/@]*@", rest):
        text = "put the password into a `file` in /etc/apt/auth.conf.d with mode 0600: apt_auth.conf(5)"
        raise Wrong("uris: an address with a password, which all users of the host could read", text)


def _check_words(attrs: records.Attrs, names: Iterable[str]) -> None:
    for name in names:
        for word in attrs.get(name) or ():
            if not re.match(r"[^\s\[\]#]+\Z", word):
                raise Wrong(f"{name}: {show(word)} is not one word", "write a list with one word per entry")


def armored(key: bytes) -> list[str]:
    """Return the lines of a public key as text.

    :param key: the key, as text or binary
    :raises Wrong: if it is not a public key
    """
    text = key.decode("ascii", "replace")
    help = "export it with: gpg --armor --export KEY"
    if "PRIVATE KEY BLOCK" in text:
        raise Wrong("this is a private key", help)
    if key[:1] >= b"\x80":  # binary: a packet of RFC 9580
        if key[0] & 0x3F not in (6,) and key[0] >> 2 & 0xF != 6:
            raise Wrong("this is not a public key of OpenPGP", help)
        body = base64.b64encode(key).decode()
        check = base64.b64encode(_crc24(key).to_bytes(3, "big")).decode()
        return [BEGIN, "", *(body[at : at + 64] for at in range(0, len(body), 64)), "=" + check, END]
    begin, end = text.find(BEGIN), text.rfind(END)
    if begin < 0 or end < begin:
        raise Wrong("this is not a public key of OpenPGP", help)
    lines = [line.rstrip() for line in text[begin : end + len(END)].splitlines()]
    data = [line for line in lines[1:-1] if line and ":" not in line and line[0] not in "-="]
    try:
        base64.b64decode("".join(data), validate=True)
    except (binascii.Error, ValueError):
        raise Wrong("the text of this public key is damaged", help) from None
    return lines


def _crc24(data: bytes) -> int:
    """Return the checksum of a key's text. Source: section 6.1 of RFC 4880."""
    value = 0xB704CE
    for byte in data:
        value ^= byte << 16
        for _ in range(8):
            value <<= 1
            if value & 0x1000000:
                value ^= 0x1864CFB
    return value


def repository(attrs: records.Attrs, key: bytes) -> str:
    """Return the content of a file in /etc/apt/sources.list.d.

    :param key: the public key, as text or binary; empty without one
    """
    fields: dict[str, Any] = {
        "Enabled": None if attrs["enabled"] else "no",
        "Types": "deb deb-src" if attrs.get("sources") else "deb",
        "URIs": " ".join(attrs["uris"]),
        "Suites": " ".join(attrs["suites"]),
        "Components": " ".join(attrs.get("components") or ()) or None,
        "Architectures": " ".join(attrs.get("architectures") or ()) or None,
        "Trusted": {None: None, True: "yes", False: "no"}[attrs.get("trusted")],
        "Signed-By": attrs.get("signed_by"),
        **dict(sorted((attrs.get("settings") or {}).items())),
    }
    if key:
        fields["Signed-By"] = "".join("\n %s" % (line or ".") for line in armored(key))
    rows = ["%s:%s%s\n" % (name, "" if text[:1] == "\n" else " ", text) for name, text in fields.items() if text]
    return drop_in_texts.HEADER + "".join(rows)


def lists(attrs: records.Attrs) -> list[str]:
    """Return the beginnings of the names of the files in /var/lib/apt/lists, one for each address and suite."""
    return [list_of(uri, suite) for uri in attrs["uris"] for suite in attrs["suites"]]


def list_of(uri: str, suite: str) -> str:
    """Return how the names of the lists of a suite begin. Source: URItoFileName and debReleaseIndex of apt."""
    whole = uri.rstrip("/") + ("/" if suite == "/" else "/" + suite if suite.endswith("/") else f"/dists/{suite}/")
    rest = re.sub(r"^[a-z+]+:(//([^/@]*@)?)?", "", whole)
    quoted = re.sub(r"[\\|{}\[\]<>\"^~_=!@#$%&*]", lambda match: f"%{ord(match.group()):02x}", rest)
    return quoted.replace("/", "_")


def check_pin(attrs: records.Attrs) -> None:
    """Check the attributes of a pin.

    :raises Wrong: if a value is not valid
    :raises ValueError: if attributes contradict each other
    """
    if not re.match(r"[A-Za-z0-9_-]+\Z", attrs["name"]):
        raise Wrong(f"apt would ignore a file of the name {show(attrs['name'])}", "use letters, digits, `_` and `-`")
    paths.refuse_with_absent(attrs, ("name", "absent"))
    drop_in_texts.check_present(attrs, ("packages", "pin", "priority"))
    if attrs.get("absent"):
        return
    if not attrs["packages"]:
        raise ValueError('packages is empty; ["*"] means all packages')
    _check_words(attrs, ("packages",))
    if not _PIN.match(attrs["pin"]):
        help = 'write "release n=bookworm-backports", "version 1.22.*" or "origin deb.example.org"'
        raise Wrong(f"pin: apt can't read {show(attrs['pin'])}", help)
    if "*" in attrs["packages"] and attrs["pin"].startswith("version "):
        raise Wrong('pin: apt ignores a version for packages: ["*"]', "name packages, or a pattern such as `linux-*`")
    if not -32768 <= attrs["priority"] <= 32767 or attrs["priority"] == 0:
        raise Wrong(f"priority: {attrs['priority']} is not valid", "use a number from -32768 to 32767, but not 0")


def pin(attrs: records.Attrs) -> str:
    """Return the content of a file in /etc/apt/preferences.d."""
    rows = {"Package": " ".join(attrs["packages"]), "Pin": attrs["pin"], "Pin-Priority": attrs["priority"]}
    # apt reads a comment at the beginning of the file only if an empty line or a field follows it.
    return drop_in_texts.HEADER + "".join("%s: %s\n" % row for row in rows.items())
