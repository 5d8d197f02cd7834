"""Labels of files in SELinux."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.system import selinux, selinux_rules


@node_type
def selinux_fcontext(
    path: PublicLine,
    *,
    setype: PublicLine | None = None,
    file_type: Literal[
        "all files",
        "regular file",
        "directory",
        "character device",
        "block device",
        "socket",
        "symbolic link",
        "named pipe",
    ] = "all files",
    restore: AbsolutePath | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a local rule of SELinux for the labels of files, and the labels of existing files.

    The rule gives new labels only to files that are relabelled. With `restore`, statecfg relabels the files below a
    path if they have other labels than the policy says. The host needs ``semanage`` (the package
    policycoreutils-python-utils).

    Undo: statecfg restores the former rule, or deletes the rule, and relabels the files again. A rule that others have
    changed since then stays.

    :param path: the regular expression for whole paths, as semanage-fcontext(8) describes it
    :param setype: the type in the label, such as ``httpd_sys_content_t``, or ``<<none>>``
    :param file_type: the file type to which the rule applies
    :param restore: the directory or file whose labels statecfg restores
    :param absent: there must be no local rule for these paths; the policy can have one

    In YAML::

        - selinux_fcontext: /srv/www(/.*)?
          setype: httpd_sys_content_t
          restore: /srv/www

    In Python::

        selinux_fcontext("/srv/old(/.*)?", absent=True)
    """


@selinux_fcontext.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the rule for these paths."""
    return [f"selinux_fcontext:{attrs['path']} ({attrs.get('file_type', 'all files')})"]


@selinux_fcontext.needs
def needs(attrs: Attrs) -> list[str]:
    """Need semanage, and the files to relabel."""
    restore = attrs.get("restore")
    files = [f"path:{restore}"] if restore is not None else []
    return ["program:semanage", "package:policycoreutils-python-utils", *files]


selinux_fcontext.validate(selinux_rules.check_context)
selinux_fcontext.managed_by(selinux.SelinuxContext)
