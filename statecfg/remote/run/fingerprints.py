"""Digests of planned changes: equal digests mean equal plans."""

from __future__ import annotations

import hashlib
import json

from statecfg.remote.graph.names import Outcome
from statecfg.remote.run.report import step_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

    from statecfg.remote.run.plan import Plan


def fingerprints(plan: Plan, mask: Optional[Callable[[Any], Any]] = None) -> Dict[str, str]:
    """Return a digest of each node's planned changes.

    :param mask: replaces secrets in JSON data. Saved plans contain the digests, and a secret could be guessed from its
        digest. The controller itself checks that a secret still has the same value.
    """
    digests = {}
    for step in (*plan.steps.values(), *plan.removal_steps()):
        if step.outcome != Outcome.UNCHANGED or step.removal:
            # A node's source location does not affect its changes.
            report = dict(step_report(step), position="")
            text = json.dumps(mask(report) if mask is not None else report, sort_keys=True)
            digests[step.node.provides] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return digests


def differing(expect: Mapping[str, str], digests: Mapping[str, str]) -> List[str]:
    """Return the names of the nodes whose planned changes differ between two plans.

    :param expect: the fingerprints of the earlier plan
    :param digests: the fingerprints of the present plan
    """
    return sorted(name for name in set(expect) | set(digests) if expect.get(name) != digests.get(name))
