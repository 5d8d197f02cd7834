"""Filters of IP addresses and networks, as in Ansible's `ipaddr`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from statecfg.templates.filters.limits import Refused

_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def ipaddr(value: Any, query: str | int = "") -> Any:
    """Return an address or network if it is valid, otherwise false; with a query, a part of it.

    Queries: address, network, prefix, netmask, broadcast, subnet, size, host, host/prefix, net, version, revdns, int,
    public, private, loopback, link-local, multicast, first_usable, last_usable, range_usable, a number (the address at
    this position), or a network that must contain it. From a list, the matching items are returned.
    """
    if isinstance(value, (list, tuple)):
        return [found for found in (ipaddr(item, query) for item in value) if found not in (False, None)]
    one = _parsed(value)
    if one is None:
        return False
    if isinstance(query, int) or (query.lstrip("-").isdigit() and query != ""):
        return _at(one, int(query))
    if query in _QUERIES:
        return _QUERIES[query](one, str(value))
    within = _parsed(query)
    if within is None:
        raise Refused(f"ipaddr has no query {query!r}", f"write one of: {', '.join(filter(None, _QUERIES))}")
    same = one.version == within.version
    return str(value) if same and one.network.subnet_of(within.network) else False  # type: ignore[arg-type]  # same version


def ipv4(value: Any, query: str | int = "") -> Any:
    """Return an IPv4 address or network, otherwise false; see `ipaddr`."""
    return _of_version(value, query, 4)


def ipv6(value: Any, query: str | int = "") -> Any:
    """Return an IPv6 address or network, otherwise false; see `ipaddr`."""
    return _of_version(value, query, 6)


def ipwrap(value: Any) -> Any:
    """Return an IPv6 address in brackets, and any other value unchanged."""
    if isinstance(value, (list, tuple)):
        return [ipwrap(item) for item in value]
    one = _parsed(value)
    if one is None or one.version == 4:
        return value
    address, slash, prefix = str(value).partition("/")
    return f"[{address}]{slash}{prefix}"


def _of_version(value: Any, query: str | int, version: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [found for found in (_of_version(item, query, version) for item in value) if found is not False]
    one = _parsed(value)
    return ipaddr(value, query) if one is not None and one.version == version else False


def _parsed(value: Any) -> _Interface | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    try:
        return ipaddress.ip_interface(value)
    except ValueError:
        return None


def _at(one: _Interface, index: int) -> Any:
    """Return the address at a position of a network, with its prefix."""
    try:
        return f"{one.network[index]}/{one.network.prefixlen}"
    except IndexError:
        return False


def _is_host(one: _Interface, text: str) -> bool:
    return "/" not in text or one.network.prefixlen == one.max_prefixlen or one.ip != one.network.network_address


def _usable(one: _Interface) -> tuple[Any, Any]:
    network = one.network
    if network.num_addresses <= 2 or network.version == 6:
        return network[0], network[-1]
    return network[1], network[-2]


def _flag(name: str) -> Callable[[_Interface, str], Any]:
    return lambda one, text: text if getattr(one.ip, name) else False


_QUERIES: dict[str, Callable[[_Interface, str], Any]] = {
    "": lambda one, text: text,
    "address": lambda one, text: str(one.ip) if _is_host(one, text) else False,
    "network": lambda one, text: str(one.network.network_address),
    "prefix": lambda one, text: one.network.prefixlen,
    "netmask": lambda one, text: str(one.network.netmask),
    "hostmask": lambda one, text: str(one.network.hostmask),
    "broadcast": lambda one, text: str(one.network.broadcast_address),
    "subnet": lambda one, text: str(one.network),
    "net": lambda one, text: str(one.network) if "/" in text and one.ip == one.network.network_address else False,
    "host": lambda one, text: str(one) if _is_host(one, text) else False,
    "host/prefix": lambda one, text: str(one) if _is_host(one, text) else False,
    "size": lambda one, text: one.network.num_addresses,
    "version": lambda one, text: one.version,
    "int": lambda one, text: int(one.ip) if "/" not in text else f"{int(one.ip)}/{one.network.prefixlen}",
    "revdns": lambda one, text: f"{one.ip.reverse_pointer}.",
    "public": lambda one, text: text if one.ip.is_global else False,
    "private": _flag("is_private"),
    "loopback": _flag("is_loopback"),
    "link-local": _flag("is_link_local"),
    "multicast": _flag("is_multicast"),
    "first_usable": lambda one, text: str(_usable(one)[0]),
    "last_usable": lambda one, text: str(_usable(one)[1]),
    "range_usable": lambda one, text: "-".join(map(str, _usable(one))),
}
