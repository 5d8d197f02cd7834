"""Rules for lines of PAM. Only the controller uses this module."""

from __future__ import annotations

import re

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.accounts import pam_stacks
from statecfg.resources.shared import paths, records


def check(attrs: records.Attrs) -> None:
    """Check the attributes of a `pam` together.

    :raises ValueError: if they contradict each other, or PAM could not read the line
    """
    paths.refuse_with_absent(attrs, ("name", "service", "module_type", "module", "control", "edit_generated", "absent"))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", attrs["service"]):
        raise Wrong(
            f"service: {show(attrs['service'])} is not the name of a file in /etc/pam.d", "write one such as sshd"
        )
    for name in ("module", "after", "before"):
        if attrs.get(name) is not None and not re.fullmatch(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", attrs[name]):
            raise Wrong(f"{name}: {show(attrs[name])} is not the name of a module", "write one such as pam_unix.so")
    if attrs.get("after") is not None and attrs.get("before") is not None:
        raise ValueError("after can't be combined with before")
    for word in attrs.get("arguments") or ():
        if not word or "\\" in word or "#" in word:
            raise Wrong(f"arguments: {show(word)} can't be an argument", "write text without `\\` and `#`")
    control = attrs.get("control")
    if control is None:
        if not attrs.get("absent"):
            raise ValueError("control is required unless absent is true")
    elif pam_stacks.problem(f"auth {control} m") or pam_stacks.parsed(f"auth {control} m") != (
        "auth",
        control,
        "m",
        "",
    ):
        help = did_you_mean(control, pam_stacks.KEYWORDS) or "see pam.d(5)"
        raise Wrong(f"control: {show(control)} is not a control of PAM", help)
