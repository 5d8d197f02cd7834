"""Rules for quadlets. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.containers import quadlets
from statecfg.resources.shared import drop_in_texts, file_sources, paths

PRIVATE = "put it into a secret of podman, or into a `file` of mode 0600 that EnvironmentFile names"
CONTENT = ("sections", "content", "source", "template")
# Suffix → the section of the file, and the setting that it must have. Source: podman-systemd.unit(5).
SECTIONS = {
    "container": ("Container", ("Image", "Rootfs")),
    "volume": ("Volume", ()),
    "network": ("Network", ()),
    "pod": ("Pod", ()),
    "image": ("Image", ("Image",)),
    "build": ("Build", ("ImageTag",)),
    "kube": ("Kube", ("Yaml",)),
}


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `quadlet` together.

    :raises ValueError: if they contradict each other, or podman would make no unit of the file
    """
    paths.refuse_with_absent(attrs, ("name", "user", "allow_override", "absent"))
    stem, _, suffix = attrs["name"].rpartition(".")
    if suffix not in quadlets.UNITS or not re.fullmatch(r"[A-Za-z0-9:_.-]+@?", stem) or len(attrs["name"]) > 240:
        help = f"its suffix is one of {', '.join(quadlets.UNITS)}, such as shop.container"
        raise Wrong(f"{show(attrs['name'])} is not the name of a quadlet", help)
    for name in ("content", "vars"):
        file_sources.refuse_secret(attrs.get(name), name, PRIVATE)
    drop_in_texts.check_content(attrs, CONTENT)
    sections = attrs.get("sections")
    if sections is None:
        return
    drop_in_texts.check_sections(sections)
    section, required = SECTIONS[suffix]
    if section not in sections:
        raise Wrong(f"sections: a {suffix} needs the section {section}", f"write {section}: {{Key: value}}")
    if required and not any(setting in sections[section] for setting in required):
        raise ValueError(f"sections: {section} needs the setting {' or '.join(required)}")
