"""Run only the hooks of units, for `service resolved --retry`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from statecfg.cli.options import ConnectionOptions, Output, Selection


def retry(playbook: Path, how: ConnectionOptions, output: Output, store: str | None) -> int:
    """Run the hooks that are due for the units of a playbook; return the exit code.

    No resource is touched, and what the playbook says of services by now is left to the next apply.

    Raises InvalidInput, StoreError.
    """
    from statecfg.cli import lifecycle, session
    from statecfg.playbook.compile import Definition

    chosen = Selection()
    with lifecycle.bus(playbook, chosen, "apply", False, store) as events:
        work = session.prepare(playbook, chosen)
        # Without a definition nothing is made, and as a part of one, nothing has left it.
        jobs = [
            replace(job, definition=Definition([], secrets=job.definition.secrets), partial=True, prune=False)
            for job in work.jobs
        ]
        finished = session.converse(
            replace(work, jobs=jobs), "apply", how, output, agreed=True, events=events, deploys=False
        )
    return session.end(finished, output, events.problems)
