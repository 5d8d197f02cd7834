"""Facts about the network, which the kernel reports over netlink. Source: rtnetlink(7)."""

from __future__ import annotations

import socket
import struct
from typing import Any, Dict, Iterator, List, Mapping, Tuple

_GET_ADDRESSES, _GET_ROUTES = 22, 26
_ERROR, _DONE = 2, 3
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_HEADER, _ADDRESS, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=8BI"), "=HH"
_FAMILIES = {socket.AF_INET: "ipv4", int(socket.AF_INET6): "ipv6"}
_SCOPES = {0: "global", 200: "site", 253: "link", 254: "host"}
_TEMPORARY = 0x01  # IFA_F_TEMPORARY: a private IPv6 address that changes every day
_MAIN, _UNICAST = 254, 1  # table and type of the routes that `ip route` shows
_PIECE = 1 << 18


def addresses_fact() -> List[Mapping[str, Any]]:
    """Return the addresses of all interfaces, without temporary IPv6 addresses, sorted by interface."""
    found = []
    for body in _dump(_GET_ADDRESSES):
        family, prefix, flags, scope, index = _ADDRESS.unpack_from(body)
        attributes = _attributes(body[_ADDRESS.size :])
        # On a point-to-point link, attribute 1 is the other end and 2 the own address.
        data = attributes.get(2) or attributes.get(1)
        if family not in _FAMILIES or data is None or (family == socket.AF_INET6 and flags & _TEMPORARY):
            continue
        found.append(
            {
                "interface": _interface(index),
                "family": _FAMILIES[family],
                "address": socket.inet_ntop(family, data),
                "prefix": prefix,
                "scope": _SCOPES.get(scope, str(scope)),
            }
        )
    return sorted(found, key=lambda one: (one["interface"], one["family"]))


def routes_fact() -> List[Mapping[str, Any]]:
    """Return the routes of the main table: IPv4 before IPv6, otherwise sorted by metric."""
    found = []
    for body in _dump(_GET_ROUTES):
        family, length, _, _, table, _, _, route_type, _ = _ROUTE.unpack_from(body)
        attributes = _attributes(body[_ROUTE.size :])
        if family not in _FAMILIES or route_type != _UNICAST or _number(attributes.get(15), table) != _MAIN:
            continue
        target = attributes.get(1)
        gateway, index = attributes.get(5), _number(attributes.get(4))
        if 9 in attributes:  # several next hops; the first one is reported
            index = struct.unpack_from("=HBBI", attributes[9])[3]
            gateway = _attributes(attributes[9][8 : struct.unpack_from("=H", attributes[9])[0]]).get(5)
        found.append(
            {
                "family": _FAMILIES[family],
                "destination": "default" if target is None else f"{socket.inet_ntop(family, target)}/{length}",
                "gateway": "" if gateway is None else socket.inet_ntop(family, gateway),
                "interface": _interface(index),
                "source": socket.inet_ntop(family, attributes[7]) if 7 in attributes else "",
                "metric": _number(attributes.get(6)),
            }
        )
    return sorted(found, key=lambda one: (one["family"], one["metric"], one["destination"]))


def ipv4_fact() -> str:
    """Return the IPv4 address that the host uses on its default route; see `_main`."""
    return _main("ipv4")


def ipv6_fact() -> str:
    """Return the IPv6 address that the host uses on its default route; see `_main`."""
    return _main("ipv6")


def _main(family: str) -> str:
    """Return the source address of the default route with the lowest metric; "" without such a route.

    If the route has none, it is the first global address of the route's interface.
    """
    for route in routes_fact():
        if route["family"] == family and route["destination"] == "default":
            if route["source"]:
                return str(route["source"])
            for one in addresses_fact():
                if (one["interface"], one["family"], one["scope"]) == (route["interface"], family, "global"):
                    return str(one["address"])
    return ""


def _dump(request: int) -> Iterator[bytes]:
    """Yield the kernel's answers to a request for a table, without their headers."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as connection:
        connection.settimeout(10)
        connection.bind((0, 0))
        body = b"\0" * 16
        connection.send(_HEADER.pack(_HEADER.size + len(body), request, _DUMP, 1, 0) + body)
        while True:
            data = connection.recv(_PIECE)
            while len(data) >= _HEADER.size:
                length, message_type = _HEADER.unpack_from(data)[:2]
                if message_type == _DONE:
                    return
                if message_type == _ERROR or length < _HEADER.size:
                    raise OSError("the kernel refused to list the network")
                yield data[_HEADER.size : length]
                data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Dict[int, bytes]:
    """Return number → content of the attributes of a message."""
    return dict(_each(data))


def _each(data: bytes) -> Iterator[Tuple[int, bytes]]:
    while len(data) >= 4:
        length, attribute_type = struct.unpack_from(_ATTRIBUTE, data)
        if length < 4:
            return
        yield attribute_type & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def _number(data: Any, otherwise: int = 0) -> int:
    return otherwise if data is None else int(struct.unpack("=I", data[:4])[0])


def _interface(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return ""
