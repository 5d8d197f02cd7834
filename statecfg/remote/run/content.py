"""Receive the content that a host lacks, into a directory of the run."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from typing import Any, Dict, List, Sequence

from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.records import contents
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import ProtocolError


def missing_content(layers: Sequence[Sequence[HostNode]], more: List[Blob], world: RealMachine) -> Dict[str, Blob]:
    """Return the content that this host lacks, by its digest.

    :param layers: the nodes; their types decide which content they need
    :param more: further content that the host needs in any case
    :param world: this host
    """
    missing = {blob.sha256: blob for blob in more if blob.data is None}
    for layer in layers:
        for node in layer:
            node_type = REGISTRY.get(node.type)
            function = node_type.methods.get("blobs") if node_type is not None else None
            try:
                blobs = function(node, world) if function is not None else list(contents(node.attrs))
            except OSError:  # it can't be read: the content may be needed, and the check will report the reason
                blobs = list(contents(node.attrs))
            missing.update({blob.sha256: blob for blob in blobs if blob.data is None})
    return missing


class Spool:
    """A directory with the content that one run received.

    :param state_dir: the state directory
    """

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self.path = os.path.join(state_dir, f"{state.SPOOL}{os.getpid()}-{time.time_ns()}")

    def receive(self, wanted: Dict[str, Blob], channel: Channel) -> None:
        """Request content in one message, and receive it.

        :param wanted: the content by its digest
        :raises StateError: if it can't be stored
        """
        try:
            state.prepare(self.state_dir)
            os.mkdir(self.path, 0o700)
            channel.send({"type": "need", "blobs": sorted(wanted)})
            for sha256 in sorted(wanted):
                self._receive_one(wanted[sha256], channel)
        except OSError as problem:
            text = f"can't store content in {self.state_dir}: {problem.strerror}"
            raise state.StateError(text) from None

    def _receive_one(self, blob: Blob, channel: Channel) -> None:
        """Receive one content in pieces, into a file.

        :raises ProtocolError: if the controller sends other content or the digest is wrong
        """
        digest = hashlib.sha256()
        path = os.path.join(self.path, blob.sha256)
        with open(path, "xb") as stream:
            while True:
                frame, body = channel.receive("blob")
                if frame["sha256"] != blob.sha256:
                    raise ProtocolError(f"received content {frame['sha256'][:12]} instead of {blob.sha256[:12]}")
                stream.write(body)
                digest.update(body)
                if frame["last"]:
                    break
        if digest.hexdigest() != blob.sha256:
            raise ProtocolError(f"content {blob.sha256[:12]} arrived damaged")
        blob.path = path

    def delete(self) -> None:
        """Delete the directory. The next run deletes what remains, so an error here must not end the run."""
        shutil.rmtree(self.path, ignore_errors=True)


def request_types(names: Sequence[str], channel: Channel, modules: Dict[str, Any]) -> List[str]:
    """Request node types from the controller; return the names of the modules that define them.

    :param modules: receives the modules: name → whether it is a package, and its code
    """
    channel.send({"type": "need", "types": names})
    answer, _ = channel.receive("modules")
    for name, (package, filename, text) in answer["modules"].items():
        if name not in modules:
            modules[name] = (package, compile(text, filename, "exec", dont_inherit=True, optimize=0))
    return list(answer["types"].values())
