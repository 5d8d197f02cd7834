"""The URL of an HTTP hook: from its URI, from a reference to an object with an address, or from both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from statecfg.hooks.registration.model import HttpHook, Reference
from statecfg.remote.graph.errors import StatecfgError

CLUSTER_DOMAIN = "cluster.local"


class AddressError(StatecfgError):
    """The address of a hook cannot be determined."""


def resolve(hook: HttpHook, hosts: Mapping[str, str]) -> str:
    """Return the URL of a hook.

    The URL of a `v1` `Service` is `http://NAME.NAMESPACE.svc.DOMAIN`, with the domain from `CLUSTER_DOMAIN` in the
    environment. The URL of a `Host` is `http://ADDRESS`, with the address in the inventory. If there are both a `uri`
    and a `ref`, scheme, port, path and query of the `uri` override those of the reference. Paths are not joined.

    :param hosts: name of a host of the inventory → its address
    :raises AddressError: the URL cannot be determined; the message is Scoby's
    """
    if hook.ref is None:
        if hook.uri is None:
            raise AddressError("ref or uri should be informed")
        return hook.uri
    base = _of_reference(hook.ref, hosts)
    if hook.uri is None:
        return base
    own, referred = urlsplit(hook.uri), urlsplit(base)
    if own.hostname:
        raise AddressError(f'URI should not contain a host while also informing a Reference: "{hook.uri}"')
    netloc = referred.netloc
    if own.port is not None:
        netloc = f"{netloc.rpartition(':')[0] if referred.port is not None else netloc}:{own.port}"
    path, query = own.path or referred.path, own.query or referred.query
    return urlunsplit((own.scheme or referred.scheme, netloc, path, query, ""))


def _of_reference(ref: Reference, hosts: Mapping[str, str]) -> str:
    if (ref.api_version, ref.kind) == ("v1", "Service"):
        domain = os.environ.get("CLUSTER_DOMAIN") or CLUSTER_DOMAIN
        return f"http://{ref.name}.{ref.namespace}.svc.{domain}"
    if ref.kind == "Host":
        if ref.name not in hosts:
            raise AddressError(f'hosts "{ref.name}" not found')
        address = hosts[ref.name]
        return f"http://[{address}]" if ":" in address and address[:1] != "[" else f"http://{address}"
    # Without a cluster, the address of other kinds of objects is unknown.
    raise AddressError('object does not inform "status.address.url"')
