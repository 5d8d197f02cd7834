"""Playbooks in Python, and the shipped playbooks: the same in every dialect, and without type errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from statecfg.dialects import load
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.playbook.plays import HostContext, Vars, evaluate
from statecfg.problems import InvalidInput, Problem
from tests import ROOT
from tests.host.command import statecfg

HEADER = "from statecfg import play\nfrom statecfg.resources import directory, file\n"
WHOLE = '@play(hosts="all")\ndef site(host):\n    '


def told(tmp_path: Path, text: str) -> Problem:
    """Return the only problem of a playbook in which `text` begins on the third line."""
    path = tmp_path / "site.py"
    path.write_text(HEADER + text)
    with pytest.raises(InvalidInput) as caught:
        (play,) = load(path, tmp_path)
        evaluate(play, HostContext("web1", Vars(play.vars)))
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("print(1\nx = 2", "SC0501", (3, 6), "'(' was never closed"),
        ("def f(:\n  pass", "SC0501", (3, 7), "invalid syntax"),
        ("print(sitee)", "SC0503", (3, 7), "the name sitee is not defined"),
        ("import nosuch", "SC0506", (3, 1), "No module named 'nosuch'"),
        ("from statecfg.playbook.plays import plai", "SC0506", (3, 1), "cannot import name 'plai'"),
        ("from statecfg.resources import fiel", "SC0106", (3, 1), "`fiel` is not a node type"),
        ("raise SystemExit('no')", "SC0505", (3, 1), "exits the program"),
        (WHOLE + "return directory(1)", "SC0201", (5, 12), "expected an absolute path"),
        (WHOLE + "return file('/x', mod='1')", "SC0101", (5, 12), "no attribute `mod`"),
        (WHOLE + "return [directory('/x')][1]", "SC0504", (5, 12), "IndexError"),
        (WHOLE + "return host.vars.prot", "SC0514", (5, 12), "the variable prot is not defined"),
        (WHOLE + "return 5", "SC0109", (3, None), "returned int"),
        (WHOLE + "directory('/x')", "SC0511", (5, 5), "directory:/x is declared"),
        (WHOLE + "pass\n" + WHOLE + "pass", "SC0513", (6, None), "two plays are called site"),
        ("x = 1", "SC0510", (1, None), "defines no play"),
        ("@play(host='all')\ndef f(host): pass", "SC0508", (3, 2), "unexpected keyword argument 'host'"),
    ],
)
def test_mistakes_are_reported_with_their_location(
    tmp_path: Path, text: str, code: str, place: tuple[int, int | None], words: str
) -> None:
    found = told(tmp_path, text)
    main = found.locations[0]
    assert (found.code, Path(main.file).name, main.line, main.column) == (code, "site.py", *place), found
    assert words in found.detail
    assert "Traceback" not in str(found)


def test_plays_that_do_not_take_one_host_are_refused(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(
        HEADER
        + "from statecfg import deploy\n"
        + "@play(hosts='all')\ndef one(host, port): pass\n"
        + "@deploy(hosts='all')\ndef two(*, host): pass\n"
        + "@play(hosts='all')\nclass Three: pass\n"
        + "@deploy(host='all')\ndef four(host): pass\n"
    )
    (tmp_path / "inventory.yml").write_text("hosts: {web1: }\n")
    said = statecfg("validate", "site.py", cwd=tmp_path, code=5).err
    assert "one takes 2 arguments; statecfg passes only the host to a play" in said
    assert "two requires the keyword argument host; statecfg passes only the host to a play" in said
    assert "Three is a type, not a function" in said
    assert "help: did you mean `hosts`? (also valid: charm, " in said
    assert "4 problems found" in said


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.py"
    path.write_bytes(b"x = '\xff'\n")
    with pytest.raises(InvalidInput) as caught:
        load(path, tmp_path)
    assert caught.value.problems[0].code == "SC0501"


def test_modules_beside_the_playbook_and_in_the_project_are_found(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "resources").mkdir()
    (tmp_path / "playbooks" / "beside.py").write_text("where = '/beside'\n")
    (tmp_path / "top.py").write_text("where = '/top'\n")
    (tmp_path / "resources" / "app.py").write_text(
        "from statecfg.remote.graph.nodetype import node_type\n@node_type\ndef app(name: str) -> None:\n    'An app.'\n"
    )
    path = tmp_path / "playbooks" / "site.py"
    path.write_text(
        HEADER
        + "import beside\nfrom statecfg.resources import app\n"
        + WHOLE
        + "import top\n    return [directory(beside.where), directory(top.where), app('x')]\n"
    )
    (play,) = load(path)
    names = set(evaluate(play, HostContext("h")).nodemap)
    assert names == {"directory:/beside", "directory:/top", "app:x"}


def test_projects_do_not_see_each_others_modules(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "where.py").write_text(f"where = '/{name}'\n")
        path = tmp_path / name / "site.py"
        path.write_text(HEADER + "from where import where\n" + WHOLE + "return directory(where)\n")
        (play,) = load(path)
        assert evaluate(play, HostContext("h")).node.provides == f"directory:/{name}"


def test_plays_of_imported_playbooks_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(HEADER + WHOLE + "return directory('/other')\n")
    path = tmp_path / "site.py"
    path.write_text(HEADER + "import other\n" + WHOLE + "return directory('/x')\n")
    (play,) = load(path)
    assert evaluate(play, HostContext("h")).node.provides == "directory:/x"


def test_variables_can_be_read_as_attributes_or_keys() -> None:
    variables = Vars({"port": 80, "a_b": 1})
    assert (variables.port, variables["port"], variables.get("nope", 7)) == (80, 80, 7)
    assert "nope" not in variables
    assert getattr(variables, "nope", None) is None
    assert dict(variables) == {"port": 80, "a_b": 1}
    assert "80" not in repr(variables)
    with pytest.raises(InvalidInput, match="did you mean `port`"):
        _ = variables.prot


def layers(path: Path) -> list[list[dict]]:
    """Return the layers that a playbook's only play sends to a host, without source positions."""
    (play,) = load(path)
    values = play.variables({}, {}, HostContext("web1", Vars({})))
    graph = evaluate(play, HostContext("web1", Vars(values)))
    made = compile_graph(graph, WireContext(HostContext("web1", Vars(values)), path.parent)).layers
    return [[{key: value for key, value in node.items() if key != "position"} for node in layer] for layer in made]


@pytest.mark.parametrize(("name", "dialects"), [("hello", ("hy", "py", "yml")), ("web", ("hy", "py"))])
def test_a_playbook_sends_the_same_nodes_in_every_dialect(name: str, dialects: tuple[str, ...]) -> None:
    first, *others = [layers(ROOT / "playbooks" / f"{name}.{suffix}") for suffix in dialects]
    assert sum(map(len, first)) >= 5
    for other in others:
        assert other == first


def test_shipped_playbooks_pass_mypy_strict(tmp_path: Path) -> None:
    files = sorted(map(str, (ROOT / "playbooks").glob("*.py")))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path),
        "--follow-imports",
        "silent",
        *files,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
