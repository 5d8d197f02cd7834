"""Templates of Ansible's roles: its names, its whitespace, and the line `#jinja2:` with other settings.

A role asks for them with `templates: ansible`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jinja2.utils import missing

from statecfg.facts.catalogue import Facts
from statecfg.graph.host_text import carried
from statecfg.graph.value import Value
from statecfg.templates.filters.limits import Refused

STYLE = "ansible"
HEADER = "#jinja2:"
MANAGED = "Managed by statecfg"
ROLE_NAME = "ansible_role_name"
# The settings of Ansible's module `template`, as far as they differ from ours; see `Sandbox`.
SETTINGS: Mapping[str, Any] = {"lstrip_blocks": False, "keep_trailing_newline": False}
# The settings that the line `#jinja2:` may have, each with the type of its value.
_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("trim_blocks", "lstrip_blocks", "keep_trailing_newline"), bool),
    **dict.fromkeys((f"{part}_start_string" for part in ("block", "variable", "comment")), str),
    **dict.fromkeys((f"{part}_end_string" for part in ("block", "variable", "comment")), str),
    **dict.fromkeys(("line_statement_prefix", "line_comment_prefix", "newline_sequence"), str),
}  # fmt: skip

_FAMILIES = {"debian": "Debian", "redhat": "RedHat", "suse": "Suse", "arch": "Archlinux", "alpine": "Alpine"}
_DISTRIBUTIONS = {
    "almalinux": "AlmaLinux", "alpine": "Alpine", "amzn": "Amazon", "arch": "Archlinux", "centos": "CentOS",
    "debian": "Debian", "fedora": "Fedora", "gentoo": "Gentoo", "linuxmint": "Linux Mint", "ol": "OracleLinux",
    "opensuse-leap": "openSUSE Leap", "opensuse-tumbleweed": "openSUSE Tumbleweed", "rhel": "RedHat",
    "rocky": "Rocky", "sles": "SLES", "ubuntu": "Ubuntu",
}  # fmt: skip
_MANAGERS = {"debian": "apt", "redhat": "dnf", "suse": "zypper", "arch": "pacman", "alpine": "apk", "gentoo": "portage"}


class Alias(NamedTuple):
    """One of Ansible's facts.

    :param facts: the names of the facts that it is made of
    :param of: returns its value
    """

    facts: tuple[str, ...]
    of: Callable[[Facts], Any]


def _default(family: str) -> Callable[[Facts], Mapping[str, Any]]:
    """Return the function for the address of the default route."""

    def of(facts: Facts) -> Mapping[str, Any]:
        routes = [route for route in facts.routes if route.family == family and route.destination == "default"]
        own = facts.ipv4 if family == "ipv4" else facts.ipv6
        if not routes or not own:
            return {}
        found = {"address": own, "interface": routes[0].interface, "gateway": routes[0].gateway}
        prefix = next((str(item.prefix) for item in facts.addresses if item.address == own), None)
        return found if prefix is None else {**found, "prefix": prefix}

    return of


def _addresses(family: str) -> Callable[[Facts], list[str]]:
    return lambda facts: [
        item.address for item in facts.addresses if item.family == family and item.scope != "host"
    ]  # fmt: skip


def _systemd(facts: Facts) -> Mapping[str, Any]:
    version = facts.packages.get("systemd", "") or facts.packages.get("systemd-libs", "")
    number = re.match(r"(?:\d+:)?(\d+)", version)
    return {"version": int(number[1])} if number is not None else {}


FACTS: Mapping[str, Alias] = {
    "all_ipv4_addresses": Alias(("addresses",), _addresses("ipv4")),
    "all_ipv6_addresses": Alias(("addresses",), _addresses("ipv6")),
    "architecture": Alias(("architecture",), lambda facts: facts.architecture),
    "default_ipv4": Alias(("routes", "addresses", "ipv4"), _default("ipv4")),
    "default_ipv6": Alias(("routes", "addresses", "ipv6"), _default("ipv6")),
    "distribution": Alias(("os",), lambda facts: _DISTRIBUTIONS.get(facts.os.id, facts.os.id.capitalize())),
    "distribution_major_version": Alias(("os",), lambda facts: facts.os.version.partition(".")[0]),
    "distribution_release": Alias(("os",), lambda facts: facts.os.codename),
    "distribution_version": Alias(("os",), lambda facts: facts.os.version),
    "hostname": Alias(("hostname",), lambda facts: facts.hostname.partition(".")[0]),
    "interfaces": Alias(("addresses",), lambda facts: sorted({item.interface for item in facts.addresses})),
    "kernel": Alias(("kernel",), lambda facts: facts.kernel),
    "machine": Alias(("architecture",), lambda facts: facts.architecture),
    "machine_id": Alias(("machine_id",), lambda facts: facts.machine_id),
    "memtotal_mb": Alias(("memory",), lambda facts: facts.memory),
    "nodename": Alias(("hostname",), lambda facts: facts.hostname),
    "os_family": Alias(("os",), lambda facts: _FAMILIES.get(facts.os.family, facts.os.family.capitalize())),
    "pkg_mgr": Alias(("os",), lambda facts: _MANAGERS.get(facts.os.family, "unknown")),
    "processor_nproc": Alias(("cpus",), lambda facts: facts.cpus),
    "processor_vcpus": Alias(("cpus",), lambda facts: facts.cpus),
    "python_version": Alias(("python",), lambda facts: facts.python),
    "service_mgr": Alias(("init",), lambda facts: {"sysv": "sysvinit"}.get(facts.init, facts.init)),
    "swaptotal_mb": Alias(("swap",), lambda facts: facts.swap),
    "system": Alias((), lambda facts: "Linux"),
    "systemd": Alias(("packages",), _systemd),
    "user_id": Alias(("user",), lambda facts: facts.user),
    "virtualization_role": Alias(
        ("virtualization",), lambda facts: "NA" if facts.virtualization.kind == "none" else "guest"
    ),
    "virtualization_type": Alias(("virtualization",), lambda facts: facts.virtualization.name or "NA"),
}


class AnsibleFacts(Mapping[str, Any]):
    """The facts of a host under Ansible's names: `ansible_facts`."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getitem__(self, name: str) -> Any:
        return FACTS[name].of(self._facts)

    def __contains__(self, name: object) -> bool:
        return name in FACTS

    def __iter__(self) -> Iterator[str]:
        return iter(FACTS)

    def __len__(self) -> int:
        return len(FACTS)


_NAMES: Mapping[str, Callable[[Any], Any]] = {
    "ansible_facts": lambda host: AnsibleFacts(host["facts"]),
    "ansible_managed": lambda host: MANAGED,
    "inventory_hostname": lambda host: host["name"],
    "inventory_hostname_short": lambda host: host["name"].partition(".")[0],
    "group_names": lambda host: sorted(host["groups"]),
}


def value(name: str, host: Mapping[str, Any]) -> Any:
    """Return the value of a name that Ansible defines in templates; `missing` for all others.

    :param host: the host as templates see it
    """
    if name in _NAMES:
        return _NAMES[name](host)
    fact = name[8:] if name.startswith("ansible_") else ""
    return AnsibleFacts(host["facts"])[fact] if fact in FACTS else missing


def settings(text: str) -> tuple[tuple[str, Any], ...]:
    """Return the settings of a template, those of the line `#jinja2:` included.

    :raises Refused: the line is wrong
    """
    given = dict(SETTINGS)
    for pair in text[len(HEADER) :].partition("\n")[0].split(",") if text.startswith(HEADER) else ():
        name, _, written = (part.strip() for part in pair.partition(":"))
        try:
            setting = ast.literal_eval(written)
        except (ValueError, SyntaxError):
            setting = None
        if name not in _TYPES or type(setting) is not _TYPES[name]:
            detail = f"the line `{HEADER}` has the wrong setting {pair.strip()!r}"
            raise Refused(detail, "write for example #jinja2: trim_blocks: True, lstrip_blocks: True")
        given[name] = setting
    return tuple(sorted(given.items()))


def without_header(text: str, options: Mapping[str, Any]) -> str:
    """Return a template with a comment in place of the line `#jinja2:`, so that other lines keep their numbers."""
    if not text.startswith(HEADER):
        return text
    start, end = options.get("comment_start_string", "{#"), options.get("comment_end_string", "#}")
    _, _, rest = text.partition("\n")
    return f"{start}{end}\n{rest}" if options.get("trim_blocks", True) else rest


def ended(text: str, template: str) -> str:
    """Return a result with at least as many line breaks at its end as the template has; nothing stays nothing."""
    breaks = [len(item) - len(item.rstrip("\n")) for item in (template, text)]
    return text + "\n" * (breaks[0] - breaks[1]) if text else text


def printable(item: Any) -> Any:
    """Return what `{{ item }}` prints: lists and maps as Python writes them, and nothing for None."""
    if item is None:
        return ""
    if (isinstance(item, Mapping) or _is_list(item)) and not _secret(item):
        plain = _plain(item)
        return carried(str(plain), [plain])
    return item


def _secret(item: Any) -> bool:
    if isinstance(item, Mapping):
        return any(map(_secret, (*item, *item.values())))
    return any(map(_secret, item)) if _is_list(item) else isinstance(item, Value)


def _plain(item: Any) -> Any:
    """Return lists and maps, which may be of other classes in attributes of nodes, as Python's own."""
    if isinstance(item, Mapping):
        return {key: _plain(inner) for key, inner in item.items()}
    return [_plain(inner) for inner in item] if _is_list(item) else item


def _is_list(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str)
