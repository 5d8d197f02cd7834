"""The charms of the example are valid, and their hooks are valid shell scripts."""

from __future__ import annotations

import subprocess

import pytest

from tests import ROOT
from tests.unit.run.test_charms import read

EXAMPLES = ROOT / "playbooks/charms"


@pytest.mark.parametrize("name", ["db", "web"])
def test_the_example_charms_are_valid(name):
    charm = read(EXAMPLES / name)
    assert {"install", "config-changed", "start", "stop"} < set(charm.hooks)
    for hook in charm.hooks:
        subprocess.run(["/bin/sh", "-n", charm.files[f"hooks/{hook}"][1]], check=True)
