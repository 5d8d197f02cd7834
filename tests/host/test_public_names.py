"""The names of `import statecfg`: available on hosts too, and imported only when they are used."""

from __future__ import annotations

import subprocess
import sys
from typing import get_origin

import pytest

import statecfg
from tests.host.command import statecfg as command

TYPE = '''\
"""A note."""
from __future__ import annotations
from statecfg import CheckError, Unknown, error, facet, make_validators, node_type, ok, op

make_validators(__name__, {"text": [(lambda text: len(text) < 30, str.strip)]})

@facet("moons")
def moons(host):
    return {"earth": {"count": 1}}

@node_type
def note(path: AbsolutePath, *, text: str) -> None:
    """A note."""

@op
def put(machine, path, text):
    return machine.write(path, text)

@note.check
def check(node, world):
    if world.facet("moons")["earth"]["count"] != 1:
        raise CheckError("no moon")
    path, text = node.attrs["path"], node.attrs["text"]
    if world.stat(path) is not None and world.read(path) == text.encode():
        return []
    return [put(path, text)]
'''


@pytest.mark.parametrize("name", sorted({*statecfg.__all__} - {*statecfg._RENAMED}))
def test_each_public_name_exists_and_has_documentation(name: str) -> None:
    value = getattr(statecfg, name)
    assert value.__doc__ or get_origin(value) is not None, name
    assert name in dir(statecfg)


def test_importing_statecfg_imports_only_the_place_where_it_registers_functions() -> None:
    code = "import statecfg, sys; print([name for name in sys.modules if name.startswith('statecfg.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['statecfg.remote', 'statecfg.remote.graph', 'statecfg.remote.graph.above']\n"


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        statecfg.nosuch  # noqa: B018  # the lookup itself is the test


def test_a_node_type_made_of_public_names_runs_on_hosts(tmp_path) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "note.py").write_text(TYPE)
    playbook = tmp_path / "play.yml"
    playbook.write_text(f'hosts: "@local"\nresources: [{{note: {tmp_path}/note.txt, text: "  hello "}}]\n')
    command("apply", "--yes", playbook, cwd=tmp_path)
    assert (tmp_path / "note.txt").read_text() == "hello"
    assert "Nothing to do" in command("plan", playbook, cwd=tmp_path).out
