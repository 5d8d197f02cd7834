"""The documentation of node types: it describes every attribute, and its examples are correct."""

from __future__ import annotations

import base64
import re
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest

from statecfg import dialects, resources
from statecfg.graph import schema
from statecfg.graph.graph import Graph
from statecfg.graph.nodes import EMPTY_VECTOR
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.playbook.plays import HostContext
from statecfg.playbook.secrets import secret
from tests.each import each
from tests.unit import ansible_loaded  # noqa: F401  # its import is all that it does

PYTHON = {path.stem for path in Path(resources.__path__[0]).rglob("*.py")}
TYPES = sorted(PYTHON.intersection(resources.available()))


def page(name: str) -> str:
    """Return the docstring of a node type."""
    return textwrap.dedent("    " + (getattr(resources, name).__doc__ or ""))


def example(name: str, dialect: str) -> str:
    """Return the example of a page in a dialect: the indented block after `In DIALECT::`."""
    found = re.search(rf"^In {dialect}::\n\n((?:    .*\n|\n)+)", page(name) + "\n", re.M)
    assert found, f"{name} has no example in {dialect}"
    return textwrap.dedent(found[1])


def sent(graph: Graph, directory: Path) -> None:
    """Compile a graph in a project that contains the files of the examples."""
    for name in ("conf.d/a.conf", "shop.conf.j2"):
        path = directory / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("port {{ port }}\n")
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (directory / "files" / "example-ca.pem").write_text(certificate)
    packet = base64.b64encode(b"\xc6\x06\x04\0\0\0\0\x16").decode()  # the beginning of a key of version 4
    key = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{packet}\n-----END PGP PUBLIC KEY BLOCK-----\n"
    (directory / "files" / "docker.asc").write_text(key)
    with zipfile.ZipFile(directory / "files" / "site.zip", "w") as archive:
        archive.writestr("index.html", "hello\n")
    compile_graph(graph, WireContext(base=directory))


@each("name", TYPES)
def test_page_describes_each_attribute_and_nothing_else(name: str) -> None:
    """The page has one `:param` for each attribute, and no other `:param`."""
    described = re.findall(r"^:param (\w+): \S", page(name), re.M)
    known = schema.of(getattr(resources, name))
    assert sorted(described) == sorted({*known.arguments, *known.required, *known.optional})


@each("name", TYPES)
def test_yaml_example_declares_nodes_of_the_type(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The YAML example declares nodes of the type if a playbook contains it."""
    monkeypatch.setenv("SHOP_DB_PASSWORD", "a-Password-1")
    playbook = tmp_path / "playbook.yml"
    text = textwrap.indent(example(name, "YAML"), "  ")
    playbook.write_text(f'hosts: "@local"\nresources:\n{text}')
    (play,) = dialects.load(playbook)
    declared = list(play(HostContext("localhost")))
    assert name in {graph.node.type for graph in declared}  # an example may also declare what the node requires
    for graph in declared:
        sent(Graph(graph.node.replace(requires=EMPTY_VECTOR, triggers=EMPTY_VECTOR)), tmp_path)


@each("name", TYPES)
def test_python_example_declares_a_node_of_the_type(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example in Python declares a node of the type."""
    monkeypatch.setenv("DEPLOY_PASSWORD", "$6$salt$hash")
    names: dict[str, Any] = {kind: getattr(resources, kind) for kind in TYPES}
    lines = example(name, "Python").strip().splitlines()
    last = next(at for at in range(len(lines) - 1, -1, -1) if not lines[at].startswith((" ", ")")))
    code = "\n".join([*lines[:last], "example = " + lines[last], *lines[last + 1 :]])
    exec(compile(code, f"<{name}>", "exec"), {**names, "secret": secret}, names)
    assert names["example"].node.type == name
    sent(names["example"], tmp_path)
