"""The values that a host generates: their form, and how they replace their references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger import state
from statecfg.remote.machine.redact import Redactor
from statecfg.remote.run import generated
from statecfg.remote.run.order import Order
from tests.each import each


def reference(name: str) -> str:
    return f"{state.REFERENCE}{name.encode().hex()}"


@each(
    ("how", "letters"),
    [
        (("password", None, None), 32),
        (("password", 12, None), 12),
        (("uuid", None, None), 36),
        (("key", None, None), 64),
        (("key", 16, "hex"), 32),
        (("key", 32, "base64"), 44),
        (("key", 30, "base64"), 40),
        (("key", 31, "base64"), 44),
    ],
)
def test_new_value_has_the_form_of_its_kind(how: tuple[str, int | None, str | None], letters: int) -> None:
    values = {generated.new(*how) for _ in range(20)}
    assert len(values) == 20 and {len(value) for value in values} == {letters}
    assert all(generated.fits(value.encode(), *how) for value in values)
    one = next(iter(values)).encode()
    for wrong in (one + b"\n", one[1:], one + b"a", b"", one[:-1] + b"\xff", b"%" + one[1:]):
        assert not generated.fits(wrong, *how)


def order(mode: str = Mode.APPLY, **secrets: str) -> Order:
    return Order.from_json(
        {"run": "r", "mode": mode, "who": "me", "playbook": "shop/x.yml", "types": {}, "secrets": secrets}
    )


def node(name: str, **options: Any) -> HostNode:
    attrs = {"name": name, "kind": "password", "reference": reference(name)}
    return HostNode(f"generate:{name}", "generate", attrs=attrs, options=options)


def made(tmp_path: Path, *nodes: HostNode, mode: str = Mode.APPLY) -> generated.Generated:
    secrets = {one.attrs["name"]: one.attrs["reference"] for one in nodes}
    return generated.Generated(str(tmp_path), order(mode, **secrets), [list(nodes)])


def kept(tmp_path: Path, name: str) -> Path:
    path = Path(state.generated(str(tmp_path), "shop/x.yml", name))
    path.parent.mkdir(exist_ok=True)
    path.write_text("A" * 32)
    return path


def test_values_replace_references_everywhere(tmp_path: Path) -> None:
    path = kept(tmp_path, "db")
    found = made(tmp_path, node("db"), node("new"))
    fresh = generated.NEW[state.generated(str(tmp_path), "shop/x.yml", "new")]
    one, two = reference("db"), reference("new")
    assert found.filled(f"x{one}y{two}") == f"x{'A' * 32}y{fresh}"
    assert found.filled({"a": [one, 5, None], "b": {"c": two}}) == {"a": ["A" * 32, 5, None], "b": {"c": fresh}}
    blob = found.filled(Blob.of(f"content {one}"))
    assert blob.read() == b"content " + b"A" * 32 and blob.hides()
    missing = Blob("0" * 64, 10_000)
    assert found.filled(missing) is missing
    assert found.nodes[0].attrs["id"] == path.name and str(path) not in generated.NEW


def test_value_and_reference_have_the_same_mask(tmp_path: Path) -> None:
    kept(tmp_path, "db")
    found = made(tmp_path, node("db", rotate=True))
    fresh = generated.NEW[state.generated(str(tmp_path), "shop/x.yml", "db")]
    mask = Redactor(found.order.secrets).text
    assert mask(f"{fresh} {reference('db')} {'A' * 32}") == "<secret db> <secret db> <secret db-old>"


def test_removing_run_makes_no_value(tmp_path: Path) -> None:
    found = made(tmp_path, node("gone"), mode=Mode.DESTROY)
    assert state.generated(str(tmp_path), "shop/x.yml", "gone") not in generated.NEW
    assert found.filled(reference("gone")) == reference("gone")
    assert found.order.secrets == {"gone": reference("gone")}


def test_type_of_the_project_with_the_same_name_is_left_alone(tmp_path: Path) -> None:
    own = HostNode("generate:x", "generate", attrs={"name": "x"})
    assert generated.Generated(str(tmp_path), order(), [[own]]).nodes == [] and own.attrs == {"name": "x"}


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_unreadable_file_has_no_value(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        (tmp_path / "it").mkdir()
    else:
        (tmp_path / "it").write_bytes(content)
    assert generated.read(str(tmp_path / "it")) is None
