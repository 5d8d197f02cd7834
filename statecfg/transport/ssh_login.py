"""Log in with the user's keys from files and the agent. Each key is offered at most once."""

from __future__ import annotations

import os
import threading
import time

from . import SshSettings
from .dial import within
from .errors import AuthenticationFailed, TransportError
from .identities import MAX_OFFERS, Identities, KeyLocked, KeyUnusable
from .route import Hop
from .ssh import FAILURES, Transport, paramiko

AGENT_TIME = 5.0


def login(hop: Hop, settings: SshSettings, transport: Transport) -> None:
    agents: list[paramiko.Agent] = []
    identities = Identities[paramiko.PKey](hop, _load_key, lambda: _agent_keys(hop, agents))
    deadline = time.monotonic() + settings.auth_timeout
    try:
        for key in identities.offers():
            done = threading.Event()
            try:
                transport.auth_publickey(hop.user, key, event=done)
            except FAILURES as error:
                raise _login_failure(hop, identities, transport, str(error)) from error
            if not done.wait(max(0.0, deadline - time.monotonic())):
                raise AuthenticationFailed(hop.name, f"no answer to the login within {settings.auth_timeout:g} s")
            if transport.is_authenticated():
                transport.packetizer.logged_in()
                transport.used = (hop.user, f"{key.get_name()} {key.get_base64()}")
                return
            reason = transport.get_exception()
            stop = isinstance(reason, (paramiko.BadAuthenticationType, paramiko.ssh_exception.PartialAuthentication))
            if stop or not transport.is_active() or len(identities.offered) >= MAX_OFFERS:
                raise _login_failure(hop, identities, transport, reason)
        raise _login_failure(hop, identities, transport, None)
    finally:
        for agent in agents:
            agent.close()


def _login_failure(
    hop: Hop, identities: Identities[paramiko.PKey], transport: Transport, error: Exception | str | None
) -> TransportError:
    hint = "; ".join(identities.problems)
    if isinstance(error, paramiko.ssh_exception.PartialAuthentication):
        more = ", ".join(error.allowed_types)
        return AuthenticationFailed(hop.name, f"it accepted the key, but also requires: {more}", hint)
    if isinstance(error, paramiko.BadAuthenticationType):
        allowed = ", ".join(error.allowed_types) or "nothing"
        return AuthenticationFailed(hop.name, f"it does not accept keys for {hop.user}, only: {allowed}", hint)
    if isinstance(error, str) or (isinstance(error, Exception) and not isinstance(error, EOFError)):
        return AuthenticationFailed(hop.name, f"login as {hop.user} failed: {error}", hint)
    if not identities.offered:
        looked = ", ".join(hop.keys) or "no key files"
        return AuthenticationFailed(hop.name, f"no usable key to log in as {hop.user} (checked: {looked})", hint)
    offered = ", ".join(identities.offered)
    end = "" if transport.is_active() else " and closed the connection"
    return AuthenticationFailed(hop.name, f"it rejected all keys for {hop.user}{end} (offered: {offered})", hint)


_keys: dict[tuple[str, int], tuple[bytes, paramiko.PKey]] = {}


def _load_key(path: str) -> tuple[bytes, paramiko.PKey]:
    """Return a private key file's public blob and key. It is read again only if it changed."""
    mark = (path, os.stat(path).st_mtime_ns)
    if mark not in _keys:
        try:
            key = paramiko.PKey.from_path(path)
        except TypeError as error:
            # The cryptography library raises this for an encrypted key without a passphrase.
            raise KeyLocked from error
        except paramiko.PasswordRequiredException as error:
            raise KeyLocked from error
        except (ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            raise KeyUnusable(f"it is not a usable private key ({error})") from error
        _keys[mark] = (key.asbytes(), key)
    return _keys[mark]


def _agent_keys(hop: Hop, agents: list[paramiko.Agent]) -> list[tuple[bytes, paramiko.PKey]]:
    def ask() -> list[tuple[bytes, paramiko.PKey]]:
        agent = paramiko.Agent()
        agents.append(agent)
        return [(key.asbytes(), key) for key in agent.get_keys()]

    try:
        return within(AGENT_TIME, ask)
    except TimeoutError as error:
        raise AuthenticationFailed(hop.name, f"the SSH agent did not answer within {AGENT_TIME:g} s") from error
    except (OSError, paramiko.SSHException) as error:
        raise AuthenticationFailed(hop.name, f"the SSH agent failed: {error}") from error
