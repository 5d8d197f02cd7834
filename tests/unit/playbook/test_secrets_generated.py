"""Secrets that hosts generate: how they are declared, where they can be used, and what the host receives."""

from __future__ import annotations

import html
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources, secret, templates
from statecfg.graph.generated import GeneratedSecret, reference
from statecfg.graph.graph import merge_graphs
from statecfg.graph.opaque import composed, mask_secrets
from statecfg.playbook import secrets
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.playbook.definition import for_undoing
from statecfg.playbook.plays import HostContext, Vars
from statecfg.problems import InvalidInput, collecting
from statecfg.problems.positions import SourceLocation
from statecfg.problems.tokens import SecretError, shown
from tests.each import each

HERE = SourceLocation("x.yml", 3, 5)
DB = reference("db", {"kind": "password"})


def password(name: str = "db", **attrs: Any) -> Any:
    return secrets.tagged("!secret", {"generate": "password", "name": name, **attrs}, HERE)


def compiled(*graphs: Any, base: Path | None = None, variables: dict[str, Any] | None = None) -> Definition:
    return compile_graph(
        merge_graphs(*graphs),
        WireContext(HostContext("localhost", Vars(variables or {})), base or Path(__file__).parent),
    )


def test_first_layer_generates_what_the_others_require() -> None:
    db, key = password(), secret("key", generate="key", length=16)
    users = [
        resources.file("/a", content=f"it is {db}"),
        resources.command("b", argv=["b"], env={"KEY": key, "DB": composed(["x", db])}, requires=["file:/a"]),
        resources.file("/c", content="nothing"),
    ]
    definition = compiled(*users)
    first, second, third = definition.layers
    assert [node["provides"] for node in first] == ["generate:db", "generate:key"]
    assert first[0]["attrs"] == {"kind": "password", "name": "db", "reference": DB}
    assert first[0]["position"] == "x.yml:3:5"
    by_name = {node["provides"]: node for node in (*second, *third)}
    assert by_name["file:/a"]["requires"] == ["generate:db"] and by_name["file:/a"]["hides"] == ["content"]
    assert set(by_name["command:b"]["requires"]) == {"file:/a", "generate:db", "generate:key"}
    assert "requires" not in by_name["file:/c"]
    assert by_name["command:b"]["attrs"]["env"]["DB"] == f"x{DB}"
    assert (
        definition.secrets == {"db": DB, "key": reference("key", {"kind": "key", "length": 16})}
        and "generate" in definition.types
    )
    undoing = for_undoing(definition)
    assert [node["provides"] for node in undoing.layers[0]] == ["generate:db", "generate:key"]
    assert compiled(*users).digest == definition.digest


def test_template_gets_the_value(tmp_path: Path) -> None:
    (tmp_path / "t.j2").write_text("{% for n in [1, 2] %}{{ n }} {{ db }}\n{% endfor %}{{ 'x' ~ db }}")
    graph = resources.file("/a", template=str(tmp_path / "t.j2"), vars={"db": password()})
    (_, (node,)) = compiled(graph, base=tmp_path).layers
    assert node["requires"] == ["generate:db"] and node["hides"] == ["content"]


def test_explicit_node_is_the_same_node() -> None:
    explicit = resources.generate("db", length=20)
    user = resources.file("/a", content=f"{password(length=20)}", restart_on=["generate:db"])
    first, second = compiled(explicit, user).layers
    assert [node["provides"] for node in first] == ["generate:db"]
    assert second[0]["requires"] == ["generate:db"] and second[0]["triggers"] == ["generate:db"]
    assert [len(layer) for layer in compiled(explicit).layers] == [1]


@each(
    ("graphs", "words"),
    [
        (lambda: [resources.generate("db", length=21), resources.file("/a", content=f"{password()}")], "differ"),
        (
            lambda: [
                resources.file("/a", content=f"{password()}"),
                resources.file("/b", content=f"{password(length=40)}"),
            ],
            "the declarations of the generated secret `db` differ",
        ),
        (
            lambda: [resources.directory("/d"), resources.generate("db", requires=["directory:/d"])],
            "generate:db requires another node",
        ),
        (lambda: [resources.generate("db", when_host={"path": "/d"})], "generate:db has a condition"),
    ],
)
def test_contradicting_declarations_are_refused(graphs: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compiled(*graphs())
    assert [item.code for item in caught.value.problems] == ["SC0422"]
    assert words in caught.value.problems[0].detail


@each(
    "text",
    [
        "{{ db | upper }}", "{{ db | length }}", "{{ db | b64encode }}", "{{ db == 'x' }}", "{{ 'x' in db }}",
        "{% if db == 'x' %}{% endif %}", "{% for letter in db | list %}{% endfor %}", "{{ db[0] }}", "{{ db.upper() }}",
        "{{ db ~ 'x' == 'yx' }}", "{{ 'x' + db }}", "{{ db is match('x') }}", "{{ ('x' ~ db) | trim }}",
        "{{ {'a': db} | tojson }}",
    ],
)  # fmt: skip
def test_computing_with_a_value_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        templates.render_text(text, {"db": password()}, HERE)
    (found,) = caught.value.problems
    assert (found.code == "SC0426" and "exists only on the host" in found.detail) or "is not iterable" in found.detail
    assert DB not in str(found)


def test_python_cannot_compute_with_a_value() -> None:
    db = password()
    for function in (
        lambda: db.upper(), lambda: db == "x", lambda: "x" in db, lambda: len(db), lambda: db[1:], lambda: db < "x",
        lambda: ("x" + db).apply(str.upper), lambda: db.apply(len), lambda: hash("x" + db), lambda: ("x" + db) == "y",
    ):  # fmt: skip
        with pytest.raises(SecretError, match="exists only on the host that generates it"):
            function()
    assert db == db and db == password() and db != password("other") and repr(db) == shown("db")
    assert db != secrets.Secret("db", "another") and len({db, password()}) == 1


def test_quoting_keeps_the_value() -> None:
    db = password()
    for text in (json.dumps({"a": f"{db}"}), html.escape(f"<{db}>"), shlex.quote(f"a b {db}")):
        assert DB in composed([text]).reveal()
    assert mask_secrets(f"it is {db}") == "it is <secret db>"


@each(
    ("given", "words"),
    [
        ({"generate": "pin"}, "expected one of 'password', 'uuid', 'key'"),
        ({"generate": ["password"]}, "one source"),
        ({"generate": "password", "length": 8}, "length is 8; a password has 12 to 128"),
        ({"generate": "uuid", "length": 32}, "length requires"),
        ({"generate": "password", "encoding": "hex"}, "encoding requires"),
        ({"generate": "key", "length": "long"}, "expected an integer"),
        ({"generate": "key", "key": "a.b"}, "`key` is not valid here"),
        ({"env": "HOME", "length": 20}, "`length` is not valid here"),
        ({"generate": "password", "env": "HOME"}, "one source"),
    ],
)
def test_wrong_declarations_are_refused(given: dict[str, Any], words: str) -> None:
    with collecting() as problems:
        assert not secrets.tagged("!secret", given, HERE, "hinted").available
    assert [item.code for item in problems] == ["SC0422"] and words in problems[0].detail


def test_declaration_names_the_value() -> None:
    assert secrets.tagged("!secret", {"generate": "uuid"}, HERE, "app_id").name == "app_id"
    made = secret("other", generate="key", encoding="base64")
    assert isinstance(made, GeneratedSecret) and made.attrs == {"kind": "key", "encoding": "base64"}
    with secrets.placeholders() as missing:
        assert password().available and not missing
