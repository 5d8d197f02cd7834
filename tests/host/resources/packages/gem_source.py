"""A source of gems on a test host: a directory with an index, and gems that the test builds."""

from __future__ import annotations

import shutil

import pytest

from tests.lab import Host

SPECIFICATION = """\
Gem::Specification.new do |s|
  s.name, s.version, s.summary, s.authors = "{name}", "{version}", "A gem of a test", ["tests"]
  s.files, s.bindir, s.executables = ["exe/{name}"], "exe", ["{name}"]
  {needs}
end
"""


def url(directory: str) -> str:
    """Return the address of a source."""
    return f"file://{directory}"


def on_host(host: Host, directory: str, *gems: tuple[str, str], needs: str = "") -> None:
    """Create a source with these gems: names and versions. Skip the test if this machine has no Ruby.

    :param needs: a gem that all gems with other names need
    """
    if not shutil.which("gem"):
        pytest.skip("not run on this machine: there is no gem (Debian: ruby)")
    for name, version in gems:
        work = f"{directory}-work/{name}-{version}"
        dependency = f's.add_dependency "{needs}"' if needs not in ("", name) else ""
        host.write(f"{work}/a.gemspec", SPECIFICATION.format(name=name, version=version, needs=dependency))
        host.write(f"{work}/exe/{name}", f"#!/usr/bin/env ruby\nputs '{version}'\n", 0o755)
        built = f"{directory}/gems/{name}-{version}.gem"
        host.run(["mkdir", "-p", f"{directory}/gems"])
        host.run(["sh", "-c", 'cd "$1" && gem build --silent a.gemspec --output "$2"', "sh", work, built])
    host.run(["gem", "generate_index", "--silent", "--directory", directory])
