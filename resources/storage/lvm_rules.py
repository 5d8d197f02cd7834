"""Rules for attributes of LVM. Only the controller uses this module."""

from __future__ import annotations

import re

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import paths, records
from statecfg.resources.storage import lvm

# Names and parts of names that LVM reserves. Source: lvm(8).
_RESERVED = re.compile(
    r"(snapshot|pvmove)|.*_(cdata|cmeta|corig|cpool|cvol|iorig|mimage|mlog|rimage|rmeta|tdata|tmeta|vdata|vorigin|wcorig)"
)


def _check_name(text: str, attribute: str) -> None:
    """Check the name of a group or volume.

    :raises Wrong: if LVM does not allow it
    """
    if not re.fullmatch(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}", text) or text in (".", ".."):
        help = "use letters, digits, `_`, `+`, `.` and `-`; it can't begin with `-`"
        raise Wrong(f"{attribute}: {show(text)} can't be a name in LVM", help)


def check_group(attrs: records.Attrs) -> None:
    """Check the attributes of a `lvm_volume_group` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    _check_name(attrs["name"], "name")
    paths.refuse_with_absent(attrs, ("name", "remove_content", "absent"))
    if attrs.get("remove_content") and not attrs.get("absent"):
        raise ValueError("remove_content requires absent: true")
    if not attrs.get("devices") and not attrs.get("absent"):
        raise ValueError("devices is required unless absent is true")
    extent = attrs.get("extent_size")
    if extent is not None:
        found = re.fullmatch("[1-9][0-9]*[KMG]", extent)
        if found is None or lvm.bytes_of(extent) & (lvm.bytes_of(extent) - 1) or lvm.bytes_of(extent) < 1024:
            raise Wrong(f"extent_size: {show(extent)} is not a power of two", "write a size such as 4M or 32M")


def check_volume(attrs: records.Attrs) -> None:
    """Check the attributes of a `lvm_logical_volume` together.

    :raises ValueError: if they contradict each other, or one is not valid
    """
    _check_name(attrs["name"], "name")
    _check_name(attrs["volume_group"], "volume_group")
    if _RESERVED.match(attrs["name"]):
        raise Wrong(f"name: LVM reserves the name {show(attrs['name'])}", "choose another name")
    allowed = ("name", "volume_group", "remove_content", "resize_filesystem", "absent")
    paths.refuse_with_absent(attrs, allowed)
    size = attrs.get("size")
    if size is None:
        if not attrs.get("absent"):
            raise ValueError("size is required unless absent is true")
    elif not re.fullmatch(r"[1-9][0-9]*[MGT]|([1-9][0-9]?|100)%(VG|FREE)", size):
        raise Wrong(f"size: {show(size)} is not a size", "write one such as 512M, 10G, 50%VG or 100%FREE")
