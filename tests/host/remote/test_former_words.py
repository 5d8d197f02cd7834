"""User files with the names until 0.3 (`claims`, `table`, `turn`, `settled`) do the same as with the new names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.host.command import Ran, statecfg

FORMER = {"facet": "table", "identity": "claims", "mutex": "turn", "is_known": "settled"}
# The names in <> are renamed.
NOTE = """\
from statecfg import <facet>, node_type, ok, op

@<facet>("moons of {name}")
def moons(host):
    return {{"earth": {{"count": 1}}}}

@node_type
def {name}(path: str, *, text: str) -> None:
    \"\"\"A note.\"\"\"

@op(<mutex>="notes")
def put(machine, path, text):
    machine.write(path, text)
    return ok(text)

@op(<mutex>="notes")
def take(machine, path):
    return machine.remove(path)

@{name}.<identity>
def objects(attrs):
    return ["path:" + attrs["path"]]

@{name}.check
def check(node, world):
    moons = world.<facet>("moons of {name}")
    path, text = node.attrs["path"], "%s %d" % (node.attrs["text"], moons["earth"]["count"])
    if world.<is_known>(path) and world.stat(path) is not None and world.read(path) == text.encode():
        return []
    return [put(path, text)]

@{name}.undo
def undo(node, memory, world):
    path = node.attrs["path"]
    return [] if world.stat(path) is None else [take(path)]
"""
MEMO = """\
(require statecfg.dialects.hy [node-type defop defmethod])

(node-type memo :arguments [path] :required-attrs [text])

(defop jot {:<mutex> "notes"} [path text]
  (spit path text))

(defop never {:<mutex> "notes"} [path]
  (spit path ""))

(defmethod <identity> memo [attrs]
  [(+ "path:" (:path attrs))])

(defmethod check-node memo [node world]
  (if (and (.stat world (:path (:attrs node))) (.<facet> world "users"))
      []
      [(jot (:path (:attrs node)) (:text (:attrs node)))]))
"""
SITE = """\
hosts: '@local'
resources:
  - note: PLACE/note
    text: hi
  - memo: PLACE/memo
    text: ho
"""
OWN = """
from statecfg import play

@play(hosts="@local")
def site(host):
    return letter("PLACE/letter", text="hey")
"""
SAME = "  - file: PLACE/note\n    content: x\n  - file: PLACE/memo\n    content: x\n"
# Lines of the first uses, and the warnings.
PYTHON = (
    (1, "statecfg.table is now statecfg.facet"),
    (11, "op(turn=…) is now op(mutex=…). The former name will be removed in 1.0."),
    (20, "NodeType.claims is now NodeType.identity. The former name will be removed in 1.0."),
)
HY = (
    (5, "the option :turn of defop is now :mutex. The former name will be removed in 1.0."),
    (11, "(defmethod claims …) is now (defmethod identity …). The former name will be removed in 1.0."),
)


def written(text: str, former: bool) -> str:
    return re.sub(r"<(\w+)>", lambda match: FORMER[match[1]] if former else match[1], text)


class Project:
    """A project with node types in Python and Hy, and a playbook with its own type, with former or new names."""

    def __init__(self, top: Path, former: bool) -> None:
        self.top = top
        (top / "resources").mkdir(parents=True)
        (top / "made").mkdir()
        (top / "statecfg.toml").touch()
        self.write("resources/note.py", written(NOTE.format(name="note"), former))
        self.write("resources/memo.hy", written(MEMO, former))
        self.write("site.yml", SITE)
        self.write("twice.yml", SITE + SAME)
        self.write("own.py", written(NOTE.format(name="letter"), former) + OWN)

    def write(self, name: str, text: str) -> None:
        (self.top / name).write_text(text.replace("PLACE", f"{self.top}/made"))

    def run(self, *arguments: str, code: int = 0) -> Ran:
        return statecfg(*arguments, cwd=self.top, code=code, STATECFG_STATE_DIR=str(self.top / "state"))

    def layers(self, *arguments: str) -> str:
        """Run a command and return its report of each node, without times and the directory of the project."""
        (host,) = self.run(*arguments, "--json").json()["hosts"].values()
        return re.sub(rf"{re.escape(str(self.top))}|\d+\.\d+", "", str(host["layers"]))

    def made(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.top / "made").iterdir()}


def test_files_with_former_names_do_the_same_and_warn_once(tmp_path: Path) -> None:
    former, new = Project(tmp_path / "former", True), Project(tmp_path / "new", False)
    for playbook in ("site.yml", "own.py"):
        for arguments in (("plan", playbook), ("apply", "--yes", playbook), ("plan", playbook)):
            assert former.layers(*arguments) == new.layers(*arguments)
        assert former.made() == new.made()
    assert former.made() == {"note": "hi 1", "memo": "ho", "letter": "hey 1"}
    for playbook, found in (("site.yml", (("note.py", PYTHON), ("memo.hy", HY))), ("own.py", (("own.py", PYTHON),))):
        err = former.run("plan", playbook).err
        for file, warnings in found:
            for line, warning in warnings:
                assert f"{file}:{line}: FutureWarning: {warning}" in err
        assert err.count("FutureWarning") == sum(len(warnings) for _, warnings in found)
        assert "FutureWarning" not in new.run("plan", playbook).err
        for project in (former, new):
            project.run("destroy", "--yes", playbook)
    assert former.made() == new.made() == {"memo": "ho"}  # the type in Hy has no undo


def test_former_names_declare_the_same_identities(tmp_path: Path) -> None:
    for former in (True, False):
        ran = Project(tmp_path / str(former), former).run("validate", "twice.yml", code=5)
        assert ran.err.count("SC0114") == 2


MEMORY = """
from statecfg import MemoryMachine
machine = MemoryMachine(tables={"packages": {"nginx": {"version": "1"}}})
for _ in range(2):
    assert machine.table("packages") == machine.facet("packages") == {"nginx": {"version": "1"}}
    assert machine.settled("/etc")
from statecfg.remote.nodetype import TABLES, Table, table
from statecfg.remote.graph import nodetype
assert (TABLES, Table, table) == (nodetype.FACETS, nodetype.Facet, nodetype.facet)
"""


def test_machines_in_memory_warn_of_former_names() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=60)
    warnings = [line.partition("FutureWarning: ")[2] for line in done.stderr.splitlines() if "FutureWarning" in line]
    assert warnings == [
        "MemoryMachine(tables=…) is now MemoryMachine(facets=…). The former name will be removed in 1.0.",
        "World.table is now World.facet. The former name will be removed in 1.0.",
        "World.settled is now World.is_known. The former name will be removed in 1.0.",
        "statecfg.remote.nodetype is now statecfg.remote.graph.nodetype. Its TABLES, Table and table are FACETS, Facet "
        "and facet. The former name will be removed in 1.0.",
    ]
