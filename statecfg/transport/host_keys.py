"""Accept or refuse the key that a host has shown, and say why so that the user can act."""

from __future__ import annotations

from . import known_hosts
from .errors import HostKeyRejected, Unreachable
from .known_hosts import HostKey, KnownHosts, Verdict
from .route import Hop


def trusted(hop: Hop) -> KnownHosts:
    """Return the known hosts that count for a hop. Raises Unreachable for a file that can't be read."""
    try:
        return known_hosts.load(hop.known_hosts)
    except OSError as error:
        raise Unreachable(hop.name, f"cannot read {error.filename}: {error.strerror}") from error


def require_trust(hop: Hop, key: HostKey) -> None:
    """Return if `key` is the host's; remember it if it is new and new ones are accepted. Raises HostKeyRejected."""
    known = trusted(hop)
    answer = known.check(hop.alias, hop.alias_port, key)
    name = known_hosts.lookup_name(hop.alias, hop.alias_port)
    if answer.verdict is Verdict.TRUSTED:
        return
    if answer.verdict is Verdict.UNKNOWN and hop.accept_new and hop.known_hosts:
        _remember(hop, key)
        return
    places = "; ".join(f"{e.place} has {e.key}" for e in answer.entries[:4])
    first = answer.entries[0].place if answer.entries else ""
    files = ", ".join(hop.known_hosts) or "no known_hosts file"
    if answer.verdict is Verdict.UNKNOWN:
        skipped = f" (unreadable lines: {', '.join(known.bad[:4])})" if known.bad else ""
        scan = f"ssh-keyscan -p {hop.port} {hop.host} >> {hop.known_hosts[0] if hop.known_hosts else 'known_hosts'}"
        raise HostKeyRejected(
            hop.name,
            f"its host key is not known: {key}",
            f"{name} is not in {files}{skipped}. If this is the host's fingerprint, add it: {scan}",
        )
    if answer.verdict is Verdict.CHANGED:
        remove = f"ssh-keygen -f {answer.entries[0].path} -R '{name}'"
        raise HostKeyRejected(
            hop.name,
            f"its host key has CHANGED: it shows {key}, but {places}",
            "Someone may be listening in, or the host was set up anew. If you know that it was, "
            f"remove line {first} ({remove}) and add the new key.",
        )
    if answer.verdict is Verdict.REVOKED:
        raise HostKeyRejected(hop.name, f"its host key is revoked: {key}", f"Revoked by {first}.")
    raise HostKeyRejected(
        hop.name,
        f"it is known by a certificate authority only ({first}), which is not supported here; it shows {key}",
        "Add the host's own key to known_hosts.",
    )


def _remember(hop: Hop, key: HostKey) -> None:
    try:
        known_hosts.append(hop.known_hosts[0], hop.alias, hop.alias_port, key)
    except OSError as error:
        raise HostKeyRejected(
            hop.name, f"cannot write its key to {hop.known_hosts[0]}: {error.strerror}", f"It shows {key}."
        ) from error
