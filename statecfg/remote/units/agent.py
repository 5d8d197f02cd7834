"""The agent's socket. While a hook runs, programs on this host read and change settings of units through it.

Each command is an AMP box (see `amp`). The first commands are compatible with the original, so that its command-line
tools work here. `c` means `client_id`; arguments with `?` are optional. JSON answers are one document in `data`.
In requests and answers, a long value continues in `data.1`, `data.2` and so on.

=========================  ============================================  =========================================
command                    arguments                                     answer
=========================  ============================================  =========================================
relation_get               c, relation_id?, unit_name, setting_name      data: JSON; all settings for a name of ""
relation_set               c, relation_id?, json_blob                    nothing; "" or blanks delete
ListRelationsCommand       c, relation_id?                               members: unit names, a space between
relation_ids               c, relation_name                              ids: relation ids, a space between
config_get                 c, option_name                                data: JSON; all for "", null for none
get_unit_info              c, setting_name                               data: the text itself
open_port, close_port      c, port ("80", "1-9"; "" for icmp), proto     nothing
LogCommand                 c?, level (a number), message                 nothing
is_leader                  c                                             leader: "1" or "0"; data: true or false
leader_get                 c, setting_name                               data: JSON; all for "", null for none
leader_set                 c, json_blob                                  nothing
status_set                 c, status, message                            nothing
status_get                 c                                             data: JSON {status, message, status-data}
goal_state                 c                                             data: JSON {relations, units}
opened_ports               c                                             data: JSON list of "80/tcp", "icmp" …
network_get                c, binding, relation_id?                      data: JSON as Juju's network-get gives
application_version_set    c, version                                    nothing (it is logged)
relation_service           c, relation_id?                               data: JSON name of the other side, or null
resource_get               c, name                                       always the error NoSuchResource
storage_list               c                                             data: JSON, an empty list
storage_get                c, storage_id, attribute                      always the error NoSuchStorage
=========================  ============================================  =========================================

Errors: NoSuchClient, NoSuchUnit, NoSuchKey, NotRelationContext, MustSpecifyRelationName, NoSuchRelation,
UnitRelationStateNotFound, BrokenRelation, NotLeader, NoSuchResource, NoSuchStorage, InvalidSetting, InvalidStatus,
InvalidPort, TooLong (the answer does not fit into a box, or the hook changes too much), NotReached (the controller did
not answer), UNHANDLED (unknown command), UNKNOWN (invalid request).
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
import time
from typing import Callable, Dict, Mapping, Union

from statecfg.remote.ledger import state
from statecfg.remote.units import amp
from statecfg.remote.units.context import COMMANDS, Context, integer
from statecfg.remote.units.settings import UnitError

NAME = "agent.sock"
LONGEST_PATH = 100  # maximum bytes of a socket's path; the kernel's limit is 107
MOST = 256  # maximum number of connections at a time; further ones wait
IDLE = 600.0  # seconds after which an idle connection is closed


class Agent:
    """The socket of one run, in a directory that only its user may enter. Thread-safe.

    :param state_dir: the state directory
    :param log: receives messages of programs that don't belong to a hook: level, text
    """

    def __init__(self, state_dir: str, log: Callable[[int, str], None]) -> None:
        self.log = log
        # If this run is killed, the next one deletes directories with this prefix.
        self.folder = tempfile.mkdtemp(prefix=f"{state.SPOOL}{os.getpid()}-", dir=state_dir)
        if len(os.fsencode(os.path.join(self.folder, NAME))) > LONGEST_PATH:
            os.rmdir(self.folder)
            self.folder = tempfile.mkdtemp(prefix="statecfg-agent-")
        self.path = os.path.join(self.folder, NAME)
        self._contexts: Dict[str, Context] = {}
        self._lock = threading.Condition()
        self._open: Dict[socket.socket, bool] = {}  # connection → whether it is idle; oldest first
        self._closing = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o600)
        self._socket.listen(1024)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def begin(self, context: Context) -> str:
        """Register a hook; return its client id."""
        token = os.urandom(16).hex()
        with self._lock:
            self._contexts[token] = context
        return token

    def end(self, token: str) -> None:
        """Forget a client id. Further commands with it fail."""
        with self._lock:
            self._contexts.pop(token, None)

    def close(self) -> None:
        """Delete the socket and close all connections."""
        self._closing = True
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        with self._lock:
            for connection in self._open:
                _shut(connection)
        os.unlink(self.path)
        os.rmdir(self.folder)

    def _listen(self) -> None:
        while not self._closing:
            try:
                connection = self._socket.accept()[0]
            except OSError:  # it was closed, or this process has no free descriptor: wait for one
                time.sleep(0 if self._closing else 0.05)
                continue
            with self._lock:
                while len(self._open) >= MOST and not self._closing:
                    for idle in [client for client, idle in self._open.items() if idle][:1]:
                        _shut(idle)
                    self._lock.wait(0.1)
                self._open[connection] = False
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the commands on a connection until it ends or violates the protocol."""
        try:
            pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if uid in (0, os.geteuid()):
                self._converse(connection, pid)
        except (OSError, amp.AmpError):  # it ended, was idle for too long, or violated the protocol
            return
        finally:
            with self._lock:
                del self._open[connection]
                connection.close()
                self._lock.notify_all()

    def _converse(self, connection: socket.socket, pid: int) -> None:
        connection.settimeout(IDLE)
        decoder = amp.BoxDecoder()
        while True:
            data = connection.recv(65536)
            if not data:
                return
            with self._lock:
                self._open[connection] = False
            for box in decoder.feed(data):
                answer = self.answer(box, pid)
                if amp.ASK in box:
                    connection.sendall(amp.encode(answer))
            with self._lock:
                del self._open[connection]
                self._open[connection] = not decoder.partial

    def answer(self, box: Mapping[str, bytes], pid: int) -> Dict[str, Union[str, bytes]]:
        """Return the answer to a command, or an error of the protocol.

        :param pid: the process that sent it
        """
        tag = amp.decode_text(box.get(amp.ASK, b""))
        try:
            return {amp.ANSWER: tag, **_fitting(self._call(box, pid))}
        except UnitError as problem:
            return {amp.ERROR: tag, amp.CODE: problem.code, amp.TEXT: problem.text}

    def _call(self, box: Mapping[str, bytes], pid: int) -> Dict[str, str]:
        # The tag is returned unchanged, even if it is not UTF-8. Settings must be valid UTF-8. Messages and names may
        # come from programs that do not use UTF-8.
        try:
            arguments = {
                key: amp.gather(key, box).decode("utf-8", "strict" if key == "json_blob" else "replace")
                for key in box
                if key != amp.ASK
            }
        except UnicodeDecodeError:
            raise UnitError("UNKNOWN", "Unknown Error") from None
        command = arguments.get(amp.COMMAND, "")
        if command == "LogCommand":
            return self._log_line(arguments, pid)
        if command not in COMMANDS:
            raise UnitError("UNHANDLED", f"Unhandled Command: {command!r:.80}")
        if "client_id" not in arguments or any(required not in arguments for required in COMMANDS[command][1]):
            raise UnitError("UNKNOWN", "Unknown Error")
        with self._lock:
            context = self._contexts.get(arguments["client_id"])
        if context is None:
            raise UnitError("NoSuchClient", "unknown client id")
        return context.call(command, arguments)

    def _log_line(self, arguments: Mapping[str, str], pid: int) -> Dict[str, str]:
        """Log a line, for the hook of the process that sent it."""
        level, text = integer(arguments.get("level", "")), arguments.get("message")
        if level is None or text is None:
            raise UnitError("UNKNOWN", "Unknown Error")
        try:
            session = os.getsid(pid)
        except OSError:  # the process has ended
            session = 0
        with self._lock:
            contexts = list(self._contexts.values())
            named = self._contexts.get(arguments.get("client_id", ""))
        matching = [candidate for candidate in contexts if candidate.session == session != 0]
        if not matching and len(contexts) == 1:
            matching = contexts
        context = named or (matching[0] if matching else None)
        (context.log if context else self.log)(level, text)
        return {}


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side closed it first
        pass


def _fitting(answer: Mapping[str, str]) -> Dict[str, Union[str, bytes]]:
    """Split the values of an answer so that each fits.

    :raises UnitError: the answer is too long for a box
    """
    pieces: Dict[str, Union[str, bytes]] = {}
    for key, text in answer.items():
        pieces.update(amp.spread(key, text))
    size = sum(map(len, pieces.values()))
    if size > amp.BOX_LIMIT - amp.VALUE_LIMIT:
        raise UnitError("TooLong", f"the answer has {size} bytes, more than a box holds")
    return pieces
