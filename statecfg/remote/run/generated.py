"""The values that this host generates: make them, and put them in place of their references.

The controller sends a reference in place of each value. Before the plan, every reference is replaced: by the value, or
by a new one that the run will write. So a plan is complete before the value exists. A new value exists only in memory
until its node writes it.
"""

from __future__ import annotations

import base64
import os
import re
import string
import uuid
from secrets import choice, token_bytes
from typing import Any, Dict, List, Optional

from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger import state
from statecfg.remote.run.management import Management
from statecfg.remote.run.order import Order
from statecfg.remote.run.values import filled

LETTERS = string.ascii_letters + string.digits
LENGTH = 32
LARGEST = 1024  # bytes of a file with a value
NEW: Dict[str, str] = {}  # path → the value that this run writes to it


class Generated:
    """The generated values of one run.

    :param state_dir: the state directory
    :param order: the controller's instructions
    :param layers: the nodes, of which those of type `generate` get the names of their files
    :ivar order: the instructions, with the values among the secrets
    """

    def __init__(self, state_dir: str, order: Order, layers: List[List[HostNode]]) -> None:
        names = {text: name for name, text in order.secrets.items()}
        secrets = dict(order.secrets)
        self.values: Dict[str, str] = {}  # reference → value
        self.nodes: List[HostNode] = []
        for node in (node for layer in layers for node in layer if node.type == "generate"):
            attrs = node.attrs
            reference = attrs.get("reference")
            if reference is None:
                continue  # a node type of the project with the same name
            path = state.generated(state_dir, order.playbook, attrs["name"])
            attrs["id"] = os.path.basename(path)
            name = names.get(reference) or str(attrs["name"])
            old = value = read(path)
            rotates = node.options.get("rotate") and not order.resume  # before a reboot, this run has done it
            if order.mode not in Mode.REMOVING and (old is None or rotates):
                value = NEW[path] = new(attrs["kind"], attrs.get("length"), attrs.get("encoding"))
                if old is not None:
                    secrets[name + "-old"] = old
            self.nodes.append(node)
            secrets[name] = reference
            if value is not None:
                # What follows a NUL is not shown: reference and value have the same mask.
                secrets[name + "\0reference"], secrets[name] = reference, value
                self.values[reference] = value
        self.order = order.with_json({"secrets": secrets})
        made = {node.provides: self.values.get(node.attrs["reference"], "") for node in self.nodes}
        for node in (node for layer in layers for node in layer if node.hides):
            held = sorted(name for name in node.requires if name in made)
            if held:  # a new value makes a new definition: until the node has it, the host may have an older one
                node.options = dict(node.options, holds=[made[name] for name in held])

    def insert(self, layers: List[List[HostNode]], managed: Management) -> None:
        """Put the values in place of the references, and tell the nodes whether the ledger knows their values."""
        for node in self.nodes:
            resource = managed.recorded.resources.get(node.provides)
            node.options = dict(node.options, made=resource is not None and bool(resource.digest))
        for node in (node for layer in layers for node in layer if node.hides):
            if managed.definitions is not None:
                managed.definitions.digest(node)  # of the definition, which contains the references
            for name in node.hides:
                if name in node.attrs:
                    node.attrs[name] = self.filled(node.attrs[name])
        for orphan in managed.all_orphans():
            filled = {name: self.filled(value) for name, value in orphan.secret_attrs.items()}
            # Without a reference whose value is lost, the undo reports that it lacks the secret.
            orphan.secret_attrs = {name: value for name, value in filled.items() if state.REFERENCE not in repr(value)}

    def filled(self, value: Any) -> Any:
        """Return an attribute with values in place of references."""
        return filled(value, self.values)


def read(path: str) -> Optional[str]:
    """Return the value in a file, None if it can't be read; the check of its node reports why."""
    try:
        with open(path, "rb") as stream:
            return stream.read(LARGEST).decode("ascii")
    except (OSError, ValueError):
        return None


def new(kind: str, length: Optional[int], encoding: Optional[str]) -> str:
    """Return a new random value; see the node type `generate`."""
    if kind == "uuid":
        return str(uuid.uuid4())
    if kind == "password":
        return "".join(choice(LETTERS) for _ in range(length or LENGTH))
    data = token_bytes(length or LENGTH)
    return base64.b64encode(data).decode("ascii") if encoding == "base64" else data.hex()


def fits(data: bytes, kind: str, length: Optional[int], encoding: Optional[str]) -> bool:
    """Tell whether the content of a file can be such a value."""
    count = length or LENGTH
    pattern = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    if kind == "password":
        pattern = "[A-Za-z0-9]{%d}" % count
    elif kind == "key":
        pattern = "[0-9a-f]{%d}" % (2 * count)
    if kind == "key" and encoding == "base64":
        letters = (count + 2) // 3 * 4
        pattern = "(?=.{%d}$)[A-Za-z0-9+/]+={%d}" % (letters, -count % 3)
    return re.match(pattern.encode() + rb"\Z", data) is not None


def content(path: str, kind: str, length: Optional[int], encoding: Optional[str]) -> Blob:
    """Return the content of a file with a new value."""
    blob = Blob.of(NEW.get(path) or new(kind, length, encoding))
    blob.secret = True
    return blob
