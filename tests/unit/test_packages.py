"""The list of packages in `pyproject.toml`, which decides what an installation contains."""

from __future__ import annotations

import tomllib

from tests import ROOT
from tests.unit.sources import FILES, module_name


def test_an_installation_contains_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    assert listed == sorted(module_name(path) for path in FILES if path.name == "__init__.py")
