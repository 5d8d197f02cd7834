"""Writes the modules that statecfg sends to a host into files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from statecfg.run import host_modules


def everything() -> dict[str, host_modules.Module]:
    """Return all modules that a host can receive, except node types in Hy."""
    types = host_modules.of_types(host_modules.python_types().values())
    parts = [module for part in host_modules.PARTS for module in host_modules.of_part(part).items()]
    return {**host_modules.core(), **types, **dict(parts)}


def unpacked(data: bytes) -> dict[str, host_modules.Module]:
    """Return the modules of a part that is packed for sending."""
    head, *sources = zlib.decompress(data).decode().split("\0")
    modules = {}
    for (name, about), text in zip(json.loads(head).items(), sources, strict=True):
        package, file = about if isinstance(about, list) else (bool(about), "")
        modules[name] = (package, file, text)
    return modules


def write(modules: Mapping[str, host_modules.Module], folder: Path) -> None:
    """Write modules below a folder, so that they can be imported from there."""
    for name, (package, _, text) in modules.items():
        path = folder.joinpath(*name.split("."))
        path = path / "__init__.py" if package else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
