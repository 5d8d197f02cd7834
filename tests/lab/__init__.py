"""Real hosts for tests: a loopback sshd, light hosts with an address each, and a booted Debian.

What there is, from cheap to dear:

- `plain_sshd(directory)`: one sshd on 127.0.0.1, with its own keys; anybody may run it.
- `light_hosts(n)`: n hosts, each with its own file system (an overlay of this machine's), network address, process
  tree and sshd, but no init system; root only; some 50 ms each.
- `booted_host()`: the same with systemd as process 1; root only; about a second.
- `apt_repository(directory)`: small Debian packages for both, without a network.

All of them stop by process id: on `.stop()`, when the test process ends, and when it is killed (the kernel signals them
as its children). What a kill leaves (a bridge, a tmpfs, empty cgroups) carries the process id of its owner in its name,
and the next run removes it. Start hosts from the main thread only: the kernel's signal follows the starting thread.

`Unavailable` says why this machine can't give such hosts; fixtures turn it into a skip that the end of the run names.
"""

from __future__ import annotations

from tests.lab.apt import AptRepository, apt_repository
from tests.lab.booted import booted_host
from tests.lab.host import Host, add_user, write_known_hosts, write_ssh_config
from tests.lab.light import light_hosts
from tests.lab.owner import Unavailable, close_all
from tests.lab.plain import PlainSshd, plain_sshd

__all__ = [
    "AptRepository",
    "Host",
    "PlainSshd",
    "Unavailable",
    "add_user",
    "apt_repository",
    "booted_host",
    "close_all",
    "light_hosts",
    "plain_sshd",
    "write_known_hosts",
    "write_ssh_config",
]
