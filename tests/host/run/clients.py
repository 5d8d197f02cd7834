"""Runs in processes that tests kill: `python -m tests.host.run.clients NAME ADDRESS PORT USER KEY KNOWN …`."""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from dataclasses import replace

from statecfg.engines.engine import opened
from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host, Login
from statecfg.run import fleet
from statecfg.transport import SshSettings
from tests.host.run import lives, rig, truths


def definition(name: str, arguments: list[str]) -> Definition:
    """Return the definition of a script."""
    if name == "chain":
        root, count, seconds, text = arguments[:4]
        return rig.chain(root, int(count), float(seconds), text)
    if name == "held":
        return rig.held(*arguments)
    root, count, text = arguments
    return rig.small_files(root, int(count), text)


def main() -> None:
    """Apply a definition; print one line for each event and the report in the last line."""
    name, address, port, user, key, known, *arguments = sys.argv[1:]
    host = Host("target", address=address, port=int(port), login=Login(user, (key,)))
    settings = SshSettings(ssh_config="none", known_hosts=(known,), use_agent=False, default_keys=False)
    engine = opened(arguments[4] if name == "chain" and len(arguments) > 4 else "threads")
    if name == "lives":
        place, number = arguments
        job, options = lives.job(host, place, int(number)), lives.options(settings, "target", place)
    elif name == "truths":
        place, number, seed = arguments
        job = truths.job(host, place, int(number), int(seed))
        options = replace(truths.options(settings, int(seed), int(number)), run=uuid.uuid4().hex[:12])
        print("run", options.run, flush=True)
    else:
        job = fleet.Job(host, definition(name, arguments), rig.PLAYBOOK)
        options = fleet.Options(mode="apply", access=fleet.Access(settings, connect=engine.connect))

    def show(event: fleet.Event) -> None:
        data = event.data.get("node") or event.data.get("name") or ""
        print(event.name, data, event.data.get("op", ""), flush=True)

    with contextlib.closing(engine):
        report = fleet.run([job], options, show)
    print(json.dumps({**report["hosts"]["target"], "run": report["run"]}), flush=True)


if __name__ == "__main__":
    main()
