"""Rotation of log files."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.services import rotation
from statecfg.resources.shared import drop_in_texts, files
from statecfg.resources.shared.paths import refuse_with_absent

DIRECTORY = "/etc/logrotate.d/"


@node_type
def logrotate(
    name: Name,
    *,
    paths: list[PublicLine] | None = None,
    directives: list[PublicLine] | None = None,
    scripts: dict[str, NoNul] | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Rotate log files with logrotate. The rules are in a separate file in /etc/logrotate.d.

    statecfg checks the names of directives and scripts before it contacts a host. logrotate checks its whole
    configuration, in plans and after each change. If it finds a new error, such as a second rule for a log file, the
    node fails, and statecfg restores the former file at once. The host needs the package logrotate, which brings the
    directory.

    Undo: statecfg restores the file that had this name before, or removes the rules.

    :param name: the name of the file: letters, digits, `_` and `-`
    :param paths: the log files, as absolute paths or patterns
    :param directives: what to do, one directive each, such as ``rotate 7``; logrotate(8) lists them
    :param scripts: scripts for ``/bin/sh``: `postrotate`, `prerotate`, `firstaction`, `lastaction` or `preremove` →
        text
    :param absent: there must be no file of this name

    In YAML::

        - logrotate: shop
          paths: [/var/log/shop/*.log]
          directives: [weekly, rotate 8, compress, missingok]
          scripts: {postrotate: systemctl reload shop}

    In Python::

        logrotate("audit", paths=["/var/log/audit.log"], directives=["size 10M", "rotate 4"])
    """


@logrotate.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing paths, and unknown directives and scripts."""
    refuse_with_absent(attrs, ("name", "absent"))
    drop_in_texts.check_name(attrs["name"])
    drop_in_texts.check_present(attrs, ("paths",))
    if not attrs.get("absent"):
        drop_in_texts.check_logrotate(attrs)


@logrotate.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    content = None if node.attrs.get("absent") else drop_in_texts.logrotate(node.attrs)
    path = DIRECTORY + node.attrs["name"]
    return drop_in_texts.sent(node, path, content, paths=None, directives=None, scripts=None)


logrotate.identity(["path:" + DIRECTORY + "{name}"])
logrotate.needs(["package:logrotate"])
logrotate.check(rotation.check)
logrotate.implemented_by(files)
