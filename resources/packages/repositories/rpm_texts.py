"""The files of repositories of dnf and zypper, and the ids of their keys. Only the controller uses this module."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.packages.repositories import apt_texts, rpm_key_users, rpm_repositories
from statecfg.resources.shared import drop_in_texts, paths, records

SOURCES = ("baseurl", "metalink", "mirrorlist")
# The attributes that the host needs only as the content of files.
WRITTEN = (
    *SOURCES, "description", "enabled", "gpgcheck", "repo_gpgcheck", "gpgkey", "key", "key_source", "priority",
    "settings", "autorefresh",
)  # fmt: skip
DEFAULTS = {"enabled": True, "gpgcheck": True}
# Settings of a repository without a separate attribute. Source: dnf.conf(5), "[main] and repo options".
DNF_SETTINGS = (
    "cost", "module_hotfixes", "skip_if_unavailable", "bandwidth", "countme", "deltarpm", "enablegroups", "excludepkgs",
    "exclude", "fastestmirror", "includepkgs", "ip_resolve", "localpkg_gpgcheck", "max_parallel_downloads",
    "metadata_expire", "minrate", "proxy", "proxy_auth_method", "retries", "sslcacert", "sslverify", "sslverifystatus",
    "sslclientcert", "sslclientkey", "throttle", "timeout", "username", "user_agent", "zchunk", "type",
)  # fmt: skip
# Source: zypper(8), "Repository Management", and RepoFileReader.cc of libzypp.
ZYPP_SETTINGS = ("keeppackages", "path", "pkg_gpgcheck", "service", "type", "proxy")
SCHEMES = ("http", "https", "file", "ftp", "media", "dir", "cd", "dvd", "iso", "nfs", "hd", "plugin")
_NAME = re.compile(r"[A-Za-z0-9_.:-]+\Z")


def check_repository(attrs: records.Attrs, settings: tuple[str, ...], manual: str) -> None:
    """Check the attributes of a repository.

    :param settings: the settings that the package manager knows
    :param manual: its manual page
    :raises Wrong: if a value is not valid
    :raises ValueError: if attributes contradict each other
    """
    if not _NAME.match(attrs["name"]) or attrs["name"] == "main":
        raise Wrong(f"not a valid id of a repository: {show(attrs['name'])}", "use letters, digits and `_.:-`")
    if attrs.get("absent"):
        given = [name for name in (*WRITTEN, "fetch") if attrs.get(name) not in (None, DEFAULTS.get(name))]
        paths.refuse_with_absent({name: attrs[name] for name in ("name", "absent", *given)}, ("name", "absent"))
        return
    if sum(attrs.get(name) is not None for name in SOURCES) != 1:
        raise ValueError(f"exactly one of {', '.join(SOURCES)} is required")
    if attrs.get("baseurl") == []:
        raise ValueError("baseurl is empty; name at least one address")
    for uri in attrs.get("baseurl") or [attrs.get("metalink") or attrs.get("mirrorlist")]:
        check_uri(uri)
    if sum(attrs.get(name) is not None for name in ("key", "key_source", "gpgkey")) > 1:
        raise ValueError("key, key_source and gpgkey can't be combined")
    if hasattr(attrs.get("key"), "reveal"):
        raise PublicSecret("the key of a repository is public: write it as it is", "key")
    if attrs.get("key"):
        apt_texts.armored(attrs["key"].encode())
    if attrs.get("priority") is not None and not 1 <= attrs["priority"] <= 99:
        raise Wrong(f"priority: {attrs['priority']} is not valid", "use a number from 1 to 99; 1 is preferred")
    for field in attrs.get("settings") or {}:
        if field == "password":
            raise Wrong("settings: all users of the host could read the password", "allow the host's address instead")
        if field not in settings:
            help = did_you_mean(field, settings) or f"{manual} lists them; the others are attributes"
            raise Wrong(f"settings: {show(field)} is not a setting of a repository", help)


def check_uri(uri: str) -> None:
    """Check the address of a repository. It may contain variables such as `$releasever`.

    :raises Wrong: if it is not valid, or contains a password
    """
    scheme, colon, rest = uri.partition(":")
    if scheme not in SCHEMES or not colon or not rest.strip("/") or re.search(r"\s", uri):
        raise Wrong(f"not the address of a repository: {show(uri)}", "write one such as https://example.org/rpm")
    if re.match(r"//[^/@]*:[^/@]*@", rest):
        raise Wrong("an address with a password, which all users of the host could read", "use a mirror without one")


def content(attrs: records.Attrs, zypp: bool = False) -> str:
    """Return the content of a repository's file.

    :param zypp: whether zypper reads it
    """
    fields: dict[str, Any] = {
        "name": attrs.get("description") or attrs["name"],
        "baseurl": "\n        ".join(attrs.get("baseurl") or ()) or None,
        "metalink": attrs.get("metalink"),
        "mirrorlist": attrs.get("mirrorlist"),
        "enabled": attrs["enabled"],
        "gpgcheck": attrs["gpgcheck"],
        "repo_gpgcheck": attrs.get("repo_gpgcheck"),
        "gpgkey": "\n       ".join(attrs.get("gpgkey") or ()) or None,
        "priority": attrs.get("priority"),
        **({"autorefresh": attrs.get("autorefresh")} if zypp else {}),
        **dict(sorted((attrs.get("settings") or {}).items())),
    }
    if attrs.get("key") or attrs.get("key_source"):
        fields["gpgkey"] = "file://" + rpm_repositories.KEY + attrs["name"]
    rows = [f"{key}={_text(value)}\n" for key, value in fields.items() if value is not None]
    return f"{drop_in_texts.HEADER}[{attrs['name']}]\n{''.join(rows)}"


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def sent(node: Any, context: Any, directory: str, zypp: bool = False) -> Any:
    """Return the node as the host needs it: with the content of both files, and the ids of the keys.

    :raises Wrong: if the key is not valid
    """
    attrs, path = node.attrs, f"{directory}{node.attrs['name']}.repo"
    if attrs.get("absent"):
        return drop_in_texts.sent(node, path, None).with_attrs(key_path=rpm_repositories.KEY + attrs["name"])
    key = (attrs.get("key") or "").encode()
    if attrs.get("key_source"):
        key = context.read(node, attrs["key_source"]).read()
    more: Mapping[str, Any] = {}
    if key:
        lines = apt_texts.armored(key)
        text = "\n".join(lines) + "\n"
        more = {"key_path": rpm_repositories.KEY + attrs["name"], "key_content": text, "keys": key_ids(lines)}
    fetch = attrs.get("fetch") if attrs.get("fetch") is not None else attrs["enabled"]
    gone: dict[str, Any] = dict.fromkeys(WRITTEN)
    return drop_in_texts.sent(node, path, content(attrs, zypp), **{**gone, **more, "fetch": fetch or None})


def key_ids(lines: list[str]) -> list[str]:
    """Return the version and the release of the gpg-pubkey package of each key: its short id and its creation time.

    :param lines: the key as text, see `apt_texts.armored`
    :raises Wrong: if it has no key of version 4
    """
    data = base64.b64decode("".join(line for line in lines[1:-1] if line and ":" not in line and line[0] not in "-="))
    found = []
    for tag, body in rpm_key_users.packets(data):
        if tag == 6 and body[:1] == b"\x04":
            digest = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest()
            found.append(f"{digest[-8:]}-{int.from_bytes(body[1:5], 'big'):x}")
    if not found:
        raise Wrong("the key has another version than 4, which rpm does not accept", "make another key with gpg")
    return found
