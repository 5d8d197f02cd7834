"""The results of actions."""

from __future__ import annotations

from statecfg.remote.graph.names import ActionStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, TypedDict

    class Result(TypedDict, total=False):
        """The result of an action: `status`, with `reason` if it failed, and `log`, the output of its program.

        `said` are texts for outputs and undo, by name. `unchanged` means that the action found nothing to change,
        `intact` that it failed before it changed anything.
        """

        status: str
        reason: str
        log: str
        said: Dict[str, str]
        unchanged: bool
        intact: bool
else:  # hosts don't load `typing`, which takes as long as checking 20 files
    Result = dict


OK: Result = {"status": ActionStatus.OK}


def ok(log: Optional[str] = None) -> Result:
    """Return the result of an action that succeeded, with its output if there is any."""
    return {"status": ActionStatus.OK, "log": log} if log else {"status": ActionStatus.OK}


def error(reason: str, log: Optional[str] = None) -> Result:
    """Return the result of an action that failed, with the reason and, if there is any, its output."""
    result: Result = {"status": ActionStatus.ERROR, "reason": reason}
    if log:
        result["log"] = log
    return result
