"""Reboot the host in the middle of a run."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Name, NodeOptions, Seconds, node_type
from statecfg.resources.programs import conditions
from statecfg.resources.system import reboots


@node_type
def reboot(
    name: Name,
    *,
    when_exists: AbsolutePath | None = None,
    always: bool = False,
    boot_timeout: Seconds = 600.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Reboot the host if that is due, wait until it is up again, and continue the run.

    The reboot is due if a node in `restart_on` changes, if the path in `when_exists` exists, or if `always` is true. No
    other node runs meanwhile: the node runs alone, after the other nodes of its layer. statecfg connects again as soon
    as the host answers, and checks that the kernel has a new boot id or, in a container, that process 1 is new. It then
    continues the same run with the plan that it has shown. No other run can start on the host before that.

    Services, mounts and everything below /run, /tmp, /proc and /sys may differ after a reboot. So what a node reads
    there is `known after` a reboot that it requires. Let such nodes require the reboot.

    The node fails if the host does not shut down, or if the path in `when_exists` still exists afterwards. If the host
    does not come back, its status is `unknown`, and the next run performs the remaining steps. Hosts need SSH: statecfg
    can't reboot the machine that it runs on. A reboot can't be undone.

    :param name: why the host reboots; reports and requirements use this name
    :param when_exists: the reboot is due if this path exists, such as ``/run/reboot-required`` on Debian and Ubuntu
    :param always: reboot in every run
    :param boot_timeout: seconds in which the host must be up again

    In YAML::

        - reboot: kernel
          when_exists: /run/reboot-required
          boot_timeout: 300
          restart_on: ["file:/etc/default/grub"]

    In Python::

        reboot("kernel", when_exists="/run/reboot-required")
    """


reboot.identity([])  # it manages nothing
reboot.check(reboots.check)
reboot.undo(conditions.nothing)
