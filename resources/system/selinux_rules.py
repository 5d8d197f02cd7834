"""Rules for attributes of SELinux. Only the controller uses this module."""

from __future__ import annotations

import re

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import paths, records


def check_name(text: str, attribute: str) -> None:
    """Check the name of a boolean or type.

    :raises Wrong: if SELinux does not allow it
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", text):
        raise Wrong(f"{attribute}: {show(text)} can't be a name in SELinux", "use letters, digits and `_`")


def _check_setype(attrs: records.Attrs, key: str) -> None:
    paths.refuse_with_absent(attrs, (key, "file_type", "restore", "absent"))
    if attrs.get("setype") is None and not attrs.get("absent"):
        raise ValueError("setype is required unless absent is true")


def check_context(attrs: records.Attrs) -> None:
    """Check the attributes of a `selinux_fcontext` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    _check_setype(attrs, "path")
    if not re.fullmatch(r"/\S*", attrs["path"]):
        raise Wrong(f"path: {show(attrs['path'])} can't match a path", r"begin with `/`, and write `\s` for a blank")
    if attrs.get("setype") not in (None, "<<none>>"):
        check_name(attrs["setype"], "setype")


def check_port(attrs: records.Attrs) -> None:
    """Check the attributes of a `selinux_port` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    _check_setype(attrs, "port")
    found = re.fullmatch(r"([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?/(tcp|udp|sctp|dccp)", attrs["port"])
    if found is None or int(found[1]) > 65535 or not int(found[1]) < int(found[2] or 65536) <= 65536:
        help = "write a port with its protocol, such as 8080/tcp or 6000-6010/udp"
        raise Wrong(f"port: {show(attrs['port'])} is not a port", help)
    if attrs.get("setype") is not None:
        check_name(attrs["setype"], "setype")
