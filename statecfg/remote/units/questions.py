"""Questions of hooks to the controller: the values of settings that the host does not have."""

from __future__ import annotations

import threading
import time

from statecfg.remote.units.settings import UnitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

    from statecfg.remote.units.settings import Values
    from statecfg.remote.wire.channel import Channel

PATIENCE = 60.0  # seconds for the controller to answer a hook's request


class Questions:
    """Asks the controller for all hooks of a run. Thread-safe.

    :param channel: the channel to the controller
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._count = 0
        self._answers: Dict[int, Mapping[str, Any]] = {}
        self._arrived = threading.Condition()

    def answer(self, frame: Mapping[str, Any]) -> None:
        """Take the controller's answer to a question."""
        with self._arrived:
            self._answers[frame["ask"]] = frame
            self._arrived.notify_all()

    def ask(self, hook: int, node: List[str], over: threading.Event) -> Values:
        """Return a node of settings.

        :param hook: the number of the hook's frame
        :param over: set when the hook has ended
        :raises UnitError: the controller refused the node or did not answer, or the hook has ended
        """
        with self._arrived:
            self._count += 1
            number = self._count
        self.channel.send({"type": "unit-ask", "id": hook, "ask": number, "node": node}, exact=True)
        deadline = time.monotonic() + PATIENCE
        with self._arrived:
            while number not in self._answers:
                if over.is_set() or self.channel.lost or time.monotonic() > deadline:
                    raise UnitError("NotReached", "the controller gave no answer")
                self._arrived.wait(0.1)
            answer = self._answers.pop(number)
        if "error" in answer:
            raise UnitError(*answer["error"])
        values: Values = answer["values"]
        return values
