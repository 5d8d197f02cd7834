"""Run only the hooks of units, for `service resolved --retry`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from statecfg.cli.options import ConnectionOptions, Selection
from statecfg.cli.output_options import OutputOptions
from statecfg.remote.graph.names import Mode


def retry(playbook: Path, how: ConnectionOptions, output: OutputOptions, store: str | None) -> int:
    """Run the pending hooks of a playbook's units and return the exit code.

    It changes no resources. The next apply takes in changed declarations of services.

    :raises InvalidInput: the playbook is wrong
    :raises StoreError: the store can't be used
    """
    from statecfg.cli import lifecycle, session
    from statecfg.playbook.compile import Definition
    from statecfg.run.prepare import FactsOfWork

    chosen = Selection()
    with lifecycle.bus(playbook, chosen, Mode.APPLY, False, store) as events:
        work = session.prepare(playbook, chosen)
        # An empty definition creates nothing. As a part of the definition, it makes no resource an orphan.
        jobs = [
            replace(job, definition=Definition([], secrets=job.definition.secrets), partial=True, prune=False, needs=())
            for job in work.jobs
        ]
        finished = session.run(
            replace(work, jobs=jobs, facts=FactsOfWork()),
            Mode.APPLY,
            how,
            output,
            agreed=True,
            events=events,
            deploys=False,
        )
    return session.end(finished, output, events.problems)
