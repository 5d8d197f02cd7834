"""Real hosts for tests: a loopback sshd, light hosts with an address each, and a booted Debian.

The kinds of hosts, from fast to slow, and their packages:

- `plain_sshd(directory)`: one sshd on 127.0.0.1 with its own keys. It does not need root.
- `light_hosts(n)`: n hosts. Each has its own file system (an overlay of this machine's), network address, process tree
  and sshd, but no init system. They need root and start in about 50 ms each.
- `booted_host()`: the same with systemd as process 1. It needs root and starts in about a second.
- `apt_repository(directory)`: small Debian packages for light and booted hosts, without a network.

All hosts stop on `.stop()`, at the end of the test process, and when it is killed (the kernel then kills its
children). A killed test process leaves a bridge, a tmpfs and empty cgroups. Their names contain its process id, and the
next run removes them. Start hosts only from the main thread: the kernel kills them when the starting thread ends.

`Unavailable` gives the reason if this machine can't run such hosts. Fixtures then skip the test, and the end of the
output lists it.
"""

from __future__ import annotations

from tests.lab.apt import AptRepository, apt_repository
from tests.lab.booted import await_boot, booted_host
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
    "await_boot",
    "booted_host",
    "close_all",
    "light_hosts",
    "plain_sshd",
    "write_known_hosts",
    "write_ssh_config",
]
