"""The tools' side of the agent's socket: send one question and receive one answer."""

from __future__ import annotations

import _socket  # importing `socket` takes longer than the rest of a tool's start, and is not needed
import time

from statecfg.remote.units import amp
from statecfg.remote.units.tools.options import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Union

WAIT = 60.0  # seconds to wait for an answer: the agent may have to ask the controller
# Errors for which the original prints a message and exits with status 0. Hooks rely on that.
PASSED_OVER = (
    *("NoSuchUnit", "NoSuchKey", "NotRelationContext", "UnitRelationStateNotFound"),
    *("MustSpecifyRelationName", "BrokenRelation"),
)


class AgentError(ToolError):
    """The agent refused the command. The tool prints the error and exits with the original's status."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}", 0 if code in PASSED_OVER else 1)
        self.code = code


def ask(path: str, command: str, values: Mapping[str, Union[str, bytes]]) -> Dict[str, bytes]:
    """Send a command to the agent at a socket; return the values of its answer.

    :raises ToolError: the agent refused, can't be reached or did not answer
    """
    box: Dict[str, Union[str, bytes]] = dict(values)
    box.update({amp.ASK: "1", amp.COMMAND: command})
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        question = amp.encode(box)
        deadline = time.monotonic() + WAIT
        line.settimeout(WAIT)
        _connect(line, path, deadline)
        line.sendall(question)
        answer = _answer(line, deadline)
    except amp.AmpError as problem:
        raise ToolError(str(problem)) from None
    except TimeoutError:
        raise ToolError(f"the agent at {path} gave no answer within {WAIT:g} s") from None
    except OSError as problem:
        raise ToolError(f"the agent at {path} can't be reached: {problem.strerror or problem}") from None
    finally:
        line.close()
    if amp.ERROR in answer:
        code, text = (amp.decode_text(answer.get(name, b"")) for name in (amp.CODE, amp.TEXT))
        raise AgentError(code, text)
    return answer


def _connect(line: _socket.socket, path: str, deadline: float) -> None:
    while True:
        try:
            return line.connect(path)
        except BlockingIOError:  # the kernel's queue of waiting connections is full
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(0.02)


def _answer(line: _socket.socket, deadline: float) -> Dict[str, bytes]:
    """Return the box with the answer.

    :raises TimeoutError: no answer arrived before the deadline
    """
    decoder = amp.BoxDecoder()
    while True:
        line.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = line.recv(65536)
        except _socket.timeout:  # is not a TimeoutError in Python 3.8
            raise TimeoutError from None
        if not data:
            raise ToolError("the agent closed the connection without an answer")
        for box in decoder.feed(data):
            if amp.ANSWER in box or amp.ERROR in box:
                return box
