"""Digests of the inputs of a plan. None of them allows guessing a secret quickly."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets as randomness
from collections.abc import Iterable, Mapping
from typing import Any

from statecfg.graph.types import hidden
from statecfg.playbook.compile import Definition, digest
from statecfg.playbook.inventory import Host
from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.redact import Redactor
from statecfg.run.job import Job
from statecfg.run.saved.model import DefinitionDigests, InventoryData, SecretDigest

# About 50 ms and 16 MiB for each guess. Source: RFC 7914; OWASP's minimum values for scrypt.
COST: Mapping[str, int] = {"n": 1 << 14, "r": 8, "p": 1}
_SHOWN = 100  # characters of the value of a fact; of a longer value, a plan has the digest
_SEARCHED = 1 << 20  # bytes; larger content is searched only for the secret itself, not for other spellings of it


def executor(jobs: Iterable[Job]) -> str:
    """Return the digest of the executor and all node types that it may need for these jobs."""
    from statecfg.run import bundle

    return bundle.digest({name for job in jobs for name in job.definition.types})


def definitions(jobs: Iterable[Job], secrets: Mapping[str, str]) -> dict[str, DefinitionDigests]:
    """Return host → the digest of its definition, and the digest of each node by node name.

    :param secrets: name → value; a name replaces its value before the digests are computed
    """
    masked = _MaskedDefinitions(secrets)
    return {job.host.name: masked.of(job.definition) for job in jobs}


class _MaskedDefinitions:
    """Masks secrets in definitions and computes their digests."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.redactor = Redactor(secrets) if secrets else None
        self.values = [value.encode("utf-8", "surrogateescape") for value in secrets.values()]

    def of(self, definition: Definition) -> DefinitionDigests:
        layers = definition.layers
        if self.redactor is not None:
            layers = [[self.value(node, definition.blobs) for node in layer] for layer in layers]
            layers = self.redactor.value(layers)
        nodes = {node["provides"]: digest([[node]])[:16] for layer in layers for node in layer}
        return {"definition": digest(layers), "nodes": nodes}

    def value(self, value: Any, blobs: Mapping[str, Blob]) -> Any:
        """Return a value without the digests of content that contains a secret."""
        if isinstance(value, dict):
            if "$blob" in value:
                return self.content(value, blobs)
            return {key: self.value(item, blobs) for key, item in value.items()}
        return [self.value(item, blobs) for item in value] if isinstance(value, list) else value

    def content(self, value: Mapping[str, Any], blobs: Mapping[str, Blob]) -> Mapping[str, Any]:
        assert self.redactor is not None
        sha256, size = value["$blob"]
        if size > _SEARCHED:
            blob = blobs.get(sha256)
            return {"$blob": ["secret", size]} if blob is not None and blob.holds(self.values) else value
        if "base64" in value:
            data = base64.b64decode(value["base64"])
        else:
            data = value["text"].encode() if "text" in value else blobs[sha256].read()
        text = data.decode("utf-8", "surrogateescape")
        clean = self.redactor.text(text)
        return value if clean == text else {"$blob": [hashlib.sha256(clean.encode(errors="replace")).hexdigest(), 0]}


def of_secrets(secrets: Mapping[str, str]) -> dict[str, SecretDigest]:
    """Return name → a random salt and the slow digest of the secret with this salt."""
    digests: dict[str, SecretDigest] = {}
    for name, value in sorted(secrets.items()):
        salt = randomness.token_bytes(16)
        digests[name] = {"salt": salt.hex(), "scrypt": _slow(value, salt).hex()}
    return digests


def is_secret(value: str, recorded: SecretDigest) -> bool:
    """Return whether a value is the secret with the digest `recorded`."""
    try:
        salt, wanted = bytes.fromhex(recorded["salt"]), bytes.fromhex(recorded["scrypt"])
    except ValueError:
        return False
    return hmac.compare_digest(_slow(value, salt), wanted)


def _slow(value: str, salt: bytes) -> bytes:
    return hashlib.scrypt(value.encode("utf-8", "surrogateescape"), salt=salt, maxmem=64 << 20, dklen=32, **COST)


def of_host(host: Host, salt: str) -> InventoryData:
    """Return a host's data from the inventory: connection options and groups as they are, variables as digests.

    :param salt: the plan's salt; it hides whether two plans have equal variables
    """
    return {
        "address": host.address,
        "port": host.port,
        "user": host.login.user,
        "proxy_jump": host.proxy_jump,
        "become": host.login.become,
        "become_user": host.login.become_user,
        "python": host.python,
        "transport": host.transport,
        "groups": list(host.groups),
        "vars": {name: _of_variable(value, salt) for name, value in sorted(host.vars.items())},
    }


def of_facts(used: Mapping[str, Any]) -> dict[str, str]:
    """Return path → value of facts as JSON, or a digest of a long value.

    :param used: path of a fact → its value
    """
    texts = {path: json.dumps(value, sort_keys=True, ensure_ascii=False) for path, value in sorted(used.items())}
    return {path: text if len(text) <= _SHOWN else _long_value(text) for path, text in texts.items()}


def _long_value(text: str) -> str:
    return f"sha256 {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _of_variable(value: Any, salt: str) -> str:
    text = json.dumps(_plain(value), sort_keys=True, default=repr)
    return hashlib.sha256(f"{salt}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return a value with secrets replaced by their names. `of_secrets` covers their values."""
    if hidden(value):
        return ["secret", value.name]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
