"""The facts that definitions can read as `host.facts`. The names, the types and the docs come from these classes.

`statecfg.remote.facts` collects them on hosts, in the same shape.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Mapping
from typing import Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

OWN = "own"
_SHAPES: set[type] = set()
_C = TypeVar("_C", bound=type)


@dataclass_transform(frozen_default=True)
def shape(cls: _C) -> _C:
    """Declare the shape of a fact. Type checkers read the class as a frozen dataclass.

    Nothing creates instances, so the class needs none of a dataclass's methods, and every command loads it faster.
    """
    _SHAPES.add(cls)
    return cls


@shape
class OperatingSystem:
    """The operating system, from os-release.

    :param family: debian, redhat, suse, arch, alpine or gentoo; the same as `id` for all others
    :param id: such as ubuntu
    :param version: such as 24.04; "" for rolling releases
    :param codename: such as noble; "" if it has none
    :param name: the full name, such as Ubuntu 24.04.1 LTS
    """

    family: str
    id: str
    version: str
    codename: str
    name: str


@shape
class Virtualization:
    """Whether the host is a virtual machine or a container.

    :param kind: none, vm or container
    :param name: such as kvm, vmware, docker, podman or lxc; "" for none
    """

    kind: str
    name: str


@shape
class Address:
    """An address of a network interface. Temporary IPv6 addresses are left out.

    :param interface: such as eth0
    :param family: ipv4 or ipv6
    :param address: such as 192.0.2.7
    :param prefix: the length of the network's prefix in bits
    :param scope: global, site, link or host
    """

    interface: str
    family: str
    address: str
    prefix: int
    scope: str


@shape
class Route:
    """A route of the main table.

    :param family: ipv4 or ipv6
    :param destination: `default`, or a network such as 192.0.2.0/24
    :param gateway: the address of the next hop; "" if the network is directly connected
    :param interface: such as eth0
    :param source: the preferred source address; "" if the route sets none
    :param metric: the priority; routes with lower values come first
    """

    family: str
    destination: str
    gateway: str
    interface: str
    source: str
    metric: int


@shape
class Disk:
    """A disk. Loop devices, RAM disks, and devices that consist of others are left out.

    :param name: such as sda
    :param size: in MiB
    :param model: as the disk reports it; "" if it reports none
    :param rotational: whether it has rotating parts
    """

    name: str
    size: int
    model: str
    rotational: bool


@shape
class Mount:
    """A mounted file system.

    :param path: where it is mounted
    :param device: such as /dev/sda1, tmpfs, or server:/path
    :param type: such as ext4
    :param options: such as rw and noatime
    :param size: in MiB; 0 if its device is not below /dev
    """

    path: str
    device: str
    type: str
    options: tuple[str, ...]
    size: int


@shape
class User:
    """A user of the host.

    :param uid: the number of the user
    :param gid: the number of the primary group
    :param comment: the full name or a comment
    :param home: the home directory
    :param shell: the login shell
    """

    uid: int
    gid: int
    comment: str
    home: str
    shell: str


class FactDocument:
    """The base of classes that have the keys of a JSON document."""


@shape
class Facts(FactDocument):
    """The facts of a host.

    :param hostname: the name that the host has set for itself
    :param os: the operating system
    :param kernel: the release of the running kernel
    :param architecture: such as x86_64 or aarch64
    :param cpus: the number of processors that are online
    :param memory: in MiB
    :param swap: in MiB
    :param disks: the disks, sorted by name
    :param mounts: the mounted file systems, in the order in which they were mounted
    :param addresses: the addresses, sorted by interface
    :param routes: the routes of the main table
    :param ipv4: the IPv4 address that the host uses on its default route; "" without one
    :param ipv6: the IPv6 address that the host uses on its default route; "" without one
    :param timezone: such as Europe/Berlin
    :param init: systemd, openrc, sysv or other
    :param virtualization: whether the host is a virtual machine or a container
    :param machine_id: the content of /etc/machine-id; "" if there is none
    :param python: the version of the Python that runs statecfg on the host, such as 3.11.2
    :param user: the user that statecfg acts as on the host
    :param users: name of a user → the user
    :param packages: name of an installed package → its version
    :param own: name of a fact of the project → its value; see `facts/NAME.py`
    """

    hostname: str
    os: OperatingSystem
    kernel: str
    architecture: str
    cpus: int
    memory: int
    swap: int
    disks: tuple[Disk, ...]
    mounts: tuple[Mount, ...]
    addresses: tuple[Address, ...]
    routes: tuple[Route, ...]
    ipv4: str
    ipv6: str
    timezone: str
    init: str
    virtualization: Virtualization
    machine_id: str
    python: str
    user: str
    users: Mapping[str, User]
    packages: Mapping[str, str]
    own: Mapping[str, Any]


NAMES = tuple(name for name in Facts.__annotations__ if name != OWN)
_SCALARS: Mapping[Any, str] = {str: "text", int: "a number", bool: "true or false"}


@functools.cache
def fields_of(cls: Any) -> Mapping[str, Any]:
    """Return name → type of the fields of a class of this module."""
    return get_type_hints(cls)


def described(cls: type[Any]) -> Mapping[str, str]:
    """Return name → description of the fields of a class, from its docstring."""
    return dict(re.findall(r"^\s*:param (\w+): (.+)$", cls.__doc__ or "", re.MULTILINE))


def is_record(hint: Any) -> bool:
    """Return whether a type is one of the classes of this module."""
    return isinstance(hint, type) and hint in _SHAPES


def wrong(hint: Any, value: object, path: str) -> str:
    """Return how a JSON value differs from a type; "" if it has the type. Unknown keys of maps are ignored.

    :param hint: the type of a field of this module's classes
    :param path: the name of the value in the message
    """
    if hint is Any:
        return ""
    if hint in _SCALARS:
        return "" if type(value) is hint else f"{path} must be {_SCALARS[hint]}"
    if is_record(hint):
        if not isinstance(value, Mapping):
            return f"{path} must be a map"
        missing = [name for name in fields_of(hint) if name not in value]
        if missing:
            return f"{path} has no {missing[0]}"
        parts = ((inner, value[name], f"{path}.{name}") for name, inner in fields_of(hint).items())
    elif get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            return f"{path} must be a list"
        parts = ((get_args(hint)[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    else:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return f"{path} must be a map"
        parts = ((get_args(hint)[1], item, f"{path}[{key}]") for key, item in value.items())
    return next(filter(None, (wrong(*part) for part in parts)), "")


def wrong_fact(name: str, value: object) -> str:
    """Return what is wrong with the value of a fact; "" if it has the fact's type.

    :param name: a name in `NAMES`, or `own.` and the name of an own fact
    """
    return "" if name.startswith(f"{OWN}.") else wrong(fields_of(Facts)[name], value, name)


def type_name(hint: Any) -> str:
    """Return a type in the words of the docs."""
    if is_record(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if get_origin(hint) is tuple:
        return f"list of {type_name(get_args(hint)[0])}"
    if isinstance(hint, types.GenericAlias) or get_origin(hint) is not None:
        return f"map of {type_name(get_args(hint)[1])}"
    return {str: "text", int: "number", bool: "true or false"}.get(hint, "any JSON value")
