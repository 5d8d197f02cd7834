"""Lines of PAM."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Name, NodeOptions, PublicLine, node_type
from statecfg.resources.accounts import pam_rules, pam_stacks


@node_type
def pam(
    name: Name,
    *,
    service: PublicLine,
    module_type: Literal["auth", "account", "password", "session"],
    module: PublicLine,
    control: PublicLine | None = None,
    arguments: list[PublicLine] | None = None,
    after: PublicLine | None = None,
    before: PublicLine | None = None,
    optional_module: bool = False,
    edit_generated: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a line of PAM in /etc/pam.d: the line of a module in the stack of one type.

    If the stack has a line of the module, the node's line replaces it. statecfg refuses a change after which PAM could
    not read the file, a stack would be empty, or a control such as ``[success=1 default=ignore]`` would skip other
    lines than before. PAM reads the file at each login. After a change, statecfg tries a new login, and restores the
    former file if it fails.

    On Debian, pam-auth-update generates the files ``common-*``. To change them, write a profile into
    /usr/share/pam-configs with a `file`, and run ``pam-auth-update --package`` with a `command` that it triggers.

    Undo: statecfg restores the former line, or removes the line. A line that others have changed since then stays.

    :param name: what the line is for; reports and requirements use this name
    :param service: the service: the name of a file in /etc/pam.d
    :param module_type: the stack
    :param module: the name of the module, such as ``pam_faillock.so``
    :param control: what PAM does with the result of the module: ``required``, ``[success=ok default=bad]``
    :param arguments: the arguments of the module
    :param after: the module of the stack after which the line is
    :param before: the module of the stack before which the line is; default: at the end of a stack
    :param optional_module: PAM ignores the line if the host has no such module
    :param edit_generated: edit a file that pam-auth-update generates, which then asks before it replaces the file
    :param absent: the stack must have no line of the module; with `control`, none with this control

    In YAML::

        - pam: lock-after-failures
          service: sshd
          module_type: auth
          control: required
          module: pam_faildelay.so
          arguments: [delay=2000000]

    In Python::

        pam("no-motd", service="sshd", module_type="session", module="pam_motd.so", absent=True)
    """


pam.identity(["pam:{service} {module_type} {module}"])
pam.owns(["part:path:" + pam_stacks.DIRECTORY + "/{service}"])
pam.validate(pam_rules.check)
pam.reads_as_code("arguments")
pam.implemented_by(pam_stacks)
