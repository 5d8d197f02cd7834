"""What a session knows about a reboot of its host."""

from __future__ import annotations

from statecfg.problems.frozen import dataclass
from statecfg.run.host.broken import Broken

ABSENT = (
    "Look at the host's console. When the host is up again, run the command again. It performs the remaining steps."
    " Use `boot_timeout` if the host needs more time."
)


class StillUp(Broken):
    """The host answers, but has not rebooted yet."""


@dataclass(frozen=True)
class Absence:
    """A reboot of the host.

    :param node: the node that reboots it
    :param boot: the id of the boot that ends
    :param seconds: the time in which the host must be up again
    :param since: when it began, in seconds of the session's clock
    """

    node: str
    boot: str
    seconds: float
    since: float
