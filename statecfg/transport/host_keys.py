"""Accept or refuse the key that a host presented. A refusal tells the user what to do."""

from __future__ import annotations

from . import known_hosts
from .errors import HostKeyRejected, Unreachable
from .known_hosts import HostKey, KnownHosts, Verdict
from .route import Hop


def trusted(hop: Hop) -> KnownHosts:
    """Return the known hosts for a hop.

    :raises Unreachable: a known_hosts file can't be read
    """
    try:
        return known_hosts.load(hop.trust.files)
    except OSError as error:
        raise Unreachable(hop.name, f"cannot read {error.filename}: {error.strerror}") from error


def require_trust(hop: Hop, key: HostKey) -> None:
    """Accept `key` if it is the known key of the host, or if the host is new and new keys are accepted.

    :raises HostKeyRejected: the key is unknown, changed, revoked, or only signed by a certificate authority
    """
    known_hosts_entries = trusted(hop)
    result = known_hosts_entries.check(hop.trust.alias, hop.trust.port, key)
    name = known_hosts.lookup_name(hop.trust.alias, hop.trust.port)
    if result.verdict is Verdict.TRUSTED:
        return
    if result.verdict is Verdict.UNKNOWN and hop.trust.accept_new and hop.trust.files:
        _remember(hop, key)
        return
    listed = "; ".join(f"{e.location} has {e.key}" for e in result.entries[:4])
    first = result.entries[0].location if result.entries else ""
    files = ", ".join(hop.trust.files) or "no known_hosts file"
    if result.verdict is Verdict.UNKNOWN:
        skipped = f" (unreadable lines: {', '.join(known_hosts_entries.bad[:4])})" if known_hosts_entries.bad else ""
        scan = f"ssh-keyscan -p {hop.port} {hop.host} >> {hop.trust.files[0] if hop.trust.files else 'known_hosts'}"
        raise HostKeyRejected(
            hop.name,
            f"its host key is not known: {key}",
            f"{name} is not in {files}{skipped}. If this is the host's fingerprint, add the key: {scan}",
        )
    if result.verdict is Verdict.CHANGED:
        remove = f"ssh-keygen -f {result.entries[0].path} -R '{name}'"
        raise HostKeyRejected(
            hop.name,
            f"its host key has CHANGED: it presents {key}, but {listed}",
            "Someone may be intercepting the connection, or the host was reinstalled. If you know that it was "
            f"reinstalled, remove line {first} ({remove}) and add the new key.",
        )
    if result.verdict is Verdict.REVOKED:
        raise HostKeyRejected(hop.name, f"its host key is revoked: {key}", f"It is revoked in {first}.")
    raise HostKeyRejected(
        hop.name,
        f"known_hosts has only a certificate authority for it ({first}), which statecfg does not support; "
        f"it presents {key}",
        "Add the host's own key to known_hosts.",
    )


def _remember(hop: Hop, key: HostKey) -> None:
    try:
        known_hosts.append(hop.trust.files[0], hop.trust.alias, hop.trust.port, key)
    except OSError as error:
        raise HostKeyRejected(
            hop.name, f"cannot write its key to {hop.trust.files[0]}: {error.strerror}", f"It presents {key}."
        ) from error
