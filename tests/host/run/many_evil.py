"""A separate process that plans on many hostile hosts at the same time and prints how much memory it needed.

`python -m tests.host.run.many_evil COUNT ADDRESS PORT USER IDENTITY KNOWN_HOSTS` prints JSON:
`before` and `most` are the resident memory of the process in KiB, and `errors` has the error of each host.
"""

from __future__ import annotations

import json
import resource
import sys

from statecfg.playbook.inventory import Host, Login
from statecfg.resources import file
from statecfg.run import fleet
from statecfg.transport import SshSettings
from tests.host.run import rig


def main() -> None:
    """Plan on the given number of hosts, which are all the same hostile machine."""
    count, address, port, user, identity, known_hosts = sys.argv[1:]
    definition = rig.define(file("/etc/asked", content="asked\n"))
    hosts = [Host(f"evil{i}", address, int(port), login=Login(user, (identity,))) for i in range(int(count))]
    settings = SshSettings(ssh_config="none", known_hosts=(known_hosts,), use_agent=False, default_keys=False)
    options = fleet.Options(mode="apply", access=fleet.Access(settings), limits=fleet.Limits(len(hosts)))
    # The first measurement must include the memory for imports and for a connection.
    nobody = Host("nobody", address, 1, login=Login(user, (identity,)))
    fleet.run([fleet.Job(nobody, definition, "tests")], options, lambda _: None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = fleet.run([fleet.Job(host, definition, "tests") for host in hosts], options, lambda _: None)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    errors = {name: said["error"]["summary"] for name, said in report["hosts"].items()}
    sys.stdout.write(json.dumps({"before": before, "most": most, "errors": errors}))


if __name__ == "__main__":
    main()
