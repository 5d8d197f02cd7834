"""Definitions of nodes as the ledger stores them: without secrets, content as a digest."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping

from statecfg.remote.graph.masks import mask
from statecfg.remote.graph.model import Attrs, HostNode
from statecfg.remote.graph.sha256 import sha256
from statecfg.remote.ledger.claims import OWNED, owned
from statecfg.remote.ledger.records import Resource, StoredDefinition, identities
from statecfg.remote.machine.changes import secretive, with_digests
from statecfg.remote.machine.hidden import SecretDigests, stored
from statecfg.remote.run.order import Order
from statecfg.remote.wire.frames import encode_value

WORD = r"[A-Za-z_.]{1,20}\Z"


def unmasked(value: Any) -> Any:
    """Return the value unchanged; the masking of a run without secrets."""
    return value


class StoredDefinitions:
    """Converts the nodes of one run.

    :param order: the controller's instructions
    :param lineage: the ledger's lineage
    :param state_dir: the state directory, which has the key of digests; "" if only identities are needed
    :ivar mask: masks secrets in a report
    :ivar mask_values: masks secrets in attributes that contain secrets
    """

    def __init__(self, order: Order, lineage: str, state_dir: str = "") -> None:
        self.types, self.lineage, self.has_secrets = order.types, lineage, bool(order.secrets)
        self.mask: Callable[[Any], Any] = unmasked
        self.mask_values = self._mask_others = self.mask
        self._digests: Dict[str, str] = {}
        self.secret_digests = SecretDigests(state_dir, order.acting)
        self._parts: Callable[[str], List[Any]] = lambda text: [text]
        self._parts_of_others = self._parts
        if order.secrets:
            import re

            from statecfg.remote.machine.redact import Redactor

            redactor = Redactor(order.secrets)
            self.mask, self.mask_values = redactor.report, redactor.value
            # Attributes without secrets can contain a secret's value by accident: mask it unless it is a plain word.
            secrets = {name: value for name, value in order.secrets.items() if not re.match(WORD, value)}
            others = redactor if secrets == order.secrets else Redactor(secrets)
            self._mask_others = others.value
            self._parts, self._parts_of_others = redactor.parts, others.parts

    def of(self, node: HostNode) -> StoredDefinition:
        """Return the definition of a node."""
        return StoredDefinition(
            node.type,
            self.types.get(node.type, ""),
            self.attrs(node),
            self.claims(node),
            node.requires,
            node.options.get("tags") or (),
            int(bool(node.options.get("protect"))),
            node.position,
            node.triggers,
        )

    def identities(self, node: HostNode) -> List[str]:
        """Return a node's identities without secrets."""
        if not self.has_secrets:
            return identities(node)
        return identities(HostNode(node.provides, node.type, (), dict(node.attrs, **self._without_secrets(node))))

    def claims(self, node: HostNode) -> List[str]:
        """Return all that a node owns in the form of the ledger, without secrets."""
        if self.has_secrets:
            node = HostNode(node.provides, node.type, (), dict(node.attrs, **self._without_secrets(node)))
        found = identities(node)
        return [*found, *(OWNED + claim for claim in owned(node, found))]

    def digest(self, node: HostNode) -> str:
        """Return a digest of a node's definition; it includes the lineage so that a secret can't be guessed from it."""
        digest = self._digests.get(node.provides)
        if digest is None:
            digest = self._digests[node.provides] = self._digest(node, node.options.get("written", node.attrs))
        return digest

    def _digest(self, node: HostNode, written: Attrs) -> str:
        """Return the digest of attributes as the playbook defines them: a run replaces references by values."""
        value = [node.type, encode_value(written, -1)]
        if "holds" in node.options:
            value.append(node.options["holds"])
        return digest_of(self.lineage, value)

    def recorded(self, node: HostNode, resource: Resource) -> bool:
        """Tell whether a node is defined as a record says, also if an earlier version had fewer attributes."""
        if resource.digest == self.digest(node):
            return True
        known = resource.definition.attrs
        written = node.options.get("written", node.attrs)
        older = {name: value for name, value in written.items() if name in known or value not in (None, False)}
        return resource.digest == self._digest(node, older)

    def update_identities(self, resources: Mapping[str, Resource], nodes: Mapping[str, HostNode]) -> None:
        """Update the identities that 0.3.0 stored: it also masked words and paths that contain a secret by accident."""
        for name, resource in resources.items():
            node, definition = nodes.get(name), resource.definition
            if definition.triggers is not None or node is None:
                continue
            if definition.identities == self.mask_values(identities(node)):
                definition.identities = self.identities(node)

    def attrs(self, node: HostNode) -> Attrs:
        """Return a node's attributes as the ledger stores them, see `machine.hidden`."""
        given = {key: value for key, value in node.attrs.items() if value is not None}
        attrs: Dict[str, Any] = {}
        for name, value in given.items():
            if not self.has_secrets and not node.hides:
                attrs[name] = with_digests(value)
                continue
            parts = self._parts if name in node.hides else self._parts_of_others
            attrs[name] = stored(value, self.secret_digests, parts)
            # If a node type transformed the secret, it can't be found: the whole attribute is secret.
            if name in node.hides and not secretive(attrs[name]):
                attrs[name] = stored(value, self.secret_digests, parts, name)
        return attrs

    def _without_secrets(self, node: HostNode) -> Attrs:
        """Return a node's attributes with content as a digest, and a mask for each secret."""
        attrs: Dict[str, Any] = with_digests({key: value for key, value in node.attrs.items() if value is not None})
        for name in attrs:
            if name in node.hides:
                masked = self.mask_values(attrs[name])
                # If a node type transformed the secret, it can't be found: mask the whole attribute.
                attrs[name] = masked if masked != attrs[name] else mask(name)
            else:
                attrs[name] = self._mask_others(attrs[name])
        return attrs


def digest_of(lineage: str, value: Any) -> str:
    """Return a digest of a JSON value for one ledger."""
    return sha256((lineage + json.dumps(value, sort_keys=True)).encode()).hexdigest()[:32]
