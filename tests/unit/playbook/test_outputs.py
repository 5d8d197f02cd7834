"""Values of nodes in other nodes: where they can be used, what is refused, and what the host receives."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from statecfg import output, resources, templates
from statecfg.graph.graph import merge_graphs
from statecfg.graph.outputs import Output
from statecfg.graph.recording import recording
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.playbook.secrets import secret
from statecfg.problems import InvalidInput, collecting
from statecfg.problems.positions import SourceLocation
from statecfg.problems.tokens import SecretError
from statecfg.run import bundle
from statecfg.run.evaluation import tagged
from tests.each import each

HERE = SourceLocation("x.yml", 3, 5)
VERSION = ["command:version", "stdout"]


def version(**attrs: Any) -> Any:
    return resources.command("version", argv=["tool", "--version"], always=True, **attrs)


def compiled(*graphs: Any, base: Path | None = None) -> Definition:
    return compile_graph(merge_graphs(*graphs), WireContext(base=base or Path(__file__).parent))


def reference() -> str:
    found: Output = output(*VERSION)
    return found.reference


def test_users_require_the_source_and_name_the_value(tmp_path: Path) -> None:
    (tmp_path / "t.j2").write_text(
        "{% for n in [1, 2] %}{{ n }} {{ output('command:version', 'stdout') }}\n{% endfor %}"
    )
    definition = compiled(
        resources.file("/a", content=f"it is {output(version(), 'stdout')}"),
        resources.file("/b", template=str(tmp_path / "t.j2"), requires=["file:/a"]),
        resources.line_in_file("/c", line=f"x = {output(*VERSION)}"),
        resources.command("d", argv=["d"], env={"V": output(*VERSION)}, always=True),
        resources.file("/e", content="nothing"),
        version(),
        base=tmp_path,
    )
    nodes = {node["provides"]: node for layer in definition.layers for node in layer}
    assert [node["provides"] for node in definition.layers[0]] == ["command:version", "file:/e"]
    assert nodes["file:/b"]["requires"] == ["file:/a", "command:version"]
    assert nodes["command:version"]["options"] == {"produces": ["stdout"]}
    inserts = {name: node["options"]["inserts"] for name, node in nodes.items() if "inserts" in node.get("options", {})}
    assert inserts == {
        "file:/a": {reference(): [*VERSION, ""]},
        "file:/b": {reference(): [*VERSION, ""]},
        "line_in_file:/c": {reference(): [*VERSION, "\n\r"]},
        "command:d": {reference(): [*VERSION, ""]},
    }
    assert not any("hides" in node for node in nodes.values()) and definition.secrets == {}
    assert definition.automatic["file:/a"] == {"command:version": "its value `stdout`"}
    sizes = [len(bundle.parts({}, layers)) for layers in (definition.layers, [[nodes["file:/e"]]])]
    assert sizes == [2, 0]


def test_hosts_refuse_values_that_would_be_code_in_scripts() -> None:
    definition = compiled(
        version(),
        resources.file("/a", content=f"#!/bin/sh\necho {output(*VERSION)}\n"),
        resources.file("/b", content=f"echo {output(*VERSION)}\n"),
    )
    nodes = {node["provides"]: node for layer in definition.layers for node in layer}
    assert nodes["file:/a"]["options"]["inserts"] == {reference(): [*VERSION, "$"]}
    assert nodes["file:/b"]["options"]["inserts"] == {reference(): [*VERSION, ""]}


def test_hosts_refuse_values_that_would_end_a_line_of_a_file() -> None:
    """This also holds for attributes from which the controller makes the text of a file."""
    definition = compiled(
        version(),
        resources.cron("a", schedule="@daily", command="true", environment={"V": output(*VERSION)}),
        resources.ini_key("/b", section="s", key="k", value=output(*VERSION)),
        resources.file("/c", content=output(*VERSION)),
    )
    nodes = {node["provides"]: node for layer in definition.layers for node in layer}
    refused = {
        name: next(iter(node["options"]["inserts"].values()))[2]
        for name, node in nodes.items()
        if name != "command:version"
    }
    assert refused == {"cron:a": "\n\r", "ini_key:/b": "\n\r\\", "file:/c": ""}


def test_only_harmless_values_become_a_part_of_a_unit(tmp_path: Path) -> None:
    (tmp_path / "t.j2").write_text("{{ output('command:version', 'stdout') }}")
    template = str(tmp_path / "t.j2")
    for node in (resources.systemd_unit("a", template=template), resources.quadlet("a.container", template=template)):
        layers = compiled(version(), node, base=tmp_path).layers
        (inserts,) = (one["options"]["inserts"] for layer in layers for one in layer if one["type"] != "command")
        assert next(iter(inserts.values()))[2].endswith("$")


def test_value_is_secret_if_its_source_uses_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "topsecret")
    definition = compiled(
        version(env={"TOKEN": secret("token", env="TOKEN")}),
        resources.file("/a", content=f"{output(*VERSION)}"),
        resources.file("/b", content=f"{output('file:/a', 'sha256')}"),
    )
    hides = {node["provides"]: node.get("hides") for layer in definition.layers for node in layer}
    assert hides == {"command:version": ["env"], "file:/a": ["content"], "file:/b": ["content"]}
    assert definition.secrets == {"token": "topsecret"}


@each(
    ("node", "value", "detail", "help_text"),
    [
        ("command:version", "stdot", "which does not produce it", "did you mean `stdout`?"),
        ("command:versoin", "stdout", "which does not exist", "did you mean `command:version`?"),
        ("file:/user", "sha256", "itself", "other nodes"),
        ("directory:/d", "sha256", "does not produce it", "nodes of the type directory produce no values"),
        ("generate:db", "value", "does not declare", "!secret {generate: KIND, name: NAME}"),
    ],
)
def test_unknown_values_are_refused(node: str, value: str, detail: str, help_text: str) -> None:
    user = resources.file("/user", content=f"{output(node, value)}")
    with pytest.raises(InvalidInput) as caught:
        compiled(version(), resources.directory("/d"), user)
    (found,) = caught.value.problems
    assert found.code == "SC0427" and detail in found.detail and help_text in found.help


def test_value_that_closes_a_cycle_is_refused() -> None:
    user = resources.file("/a", content=f"{output(*VERSION)}")
    with pytest.raises(InvalidInput) as caught:
        compiled(user, version(requires=["file:/a"]))
    assert "SC0113" in {found.code for found in caught.value.problems}


@each(
    "text",
    [
        "{{ x | upper }}", "{{ x | length }}", "{{ x == 'x' }}", "{{ 'x' in x }}", "{% if x %}{% endif %}",
        "{% for letter in x %}{% endfor %}", "{{ x[0] }}", "{{ x.upper() }}", "{{ x | int }}", "{{ 'x' + x }}",
        "{{ not x }}", "{{ 'a' if x else 'b' }}",
    ],
)  # fmt: skip
def test_computing_with_a_value_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        templates.render_text(text, {"x": output(*VERSION)}, HERE)
    (found,) = caught.value.problems
    assert (found.code == "SC0426" and "exists only on the host" in found.detail) or "is not iterable" in found.detail


@each(
    ("declare", "code"),
    [
        (lambda value: resources.file(f"/srv/{value}", content="x"), "SC0426"),
        (lambda value: resources.file("/a", content="x", tags=[value]), "SC0426"),
        (lambda value: resources.command("c", argv=["c", value], always=True), "SC0426"),
        (lambda value: resources.command("c", shell=f"c {value}", always=True), "SC0426"),
    ],
)
def test_what_must_be_known_before_is_refused(declare: Any, code: str) -> None:
    with recording(), collecting() as problems:
        declare(output(*VERSION))
    assert [found.code for found in problems] == [code]
    assert "exists only on the host: " in problems[0].detail and "secret" not in problems[0].detail


@pytest.mark.parametrize("arguments", [(5, "stdout"), ("command:x", None), ("", "stdout")])
def test_wrong_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(SecretError, match=r"output\(\) got"):
        output(*arguments)


def test_tags_select_the_source() -> None:
    user = resources.file("/a", content=f"{output(*VERSION)}", tags=["web"])
    graph = tagged(merge_graphs(user, version(), resources.file("/b", content="")), ["web"])
    assert {node.provides for node in graph.nodes()} == {"file:/a", "command:version"}


def test_value_is_the_same_in_every_process() -> None:
    definition = compiled(version(), resources.file("/a", content=f"{output(*VERSION)}"))
    assert reference() in json.dumps(definition.layers)
    assert reference() == "statecfgOutput" + hashlib.sha256(b"command:version\0stdout").hexdigest()[:40]
