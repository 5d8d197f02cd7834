"""Hy node types on hosts: plain Python 3.8 or newer without Hy, and errors that name lines of the Hy file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from statecfg.dialects import load, load_module
from statecfg.dialects.host_source import bundle_modules, compile_for_host
from statecfg.dialects.modules import module_name
from statecfg.graph.schema import unmangled
from statecfg.problems import InvalidInput
from statecfg.remote.graph.hy_lines import written_at
from statecfg.resources import process
from statecfg.run import host_modules
from tests import ROOT

PYENV = Path.home() / ".pyenv" / "versions"
PYTHONS = [str(path) for minor in range(8, 20) for path in PYENV.glob(f"3.{minor}.*/bin/python")] or [sys.executable]

# The program that runs on the host, with only the modules that a bundle would contain.
HOST = """
import json, sys
from importlib.machinery import ModuleSpec
modules, name, code = json.load(sys.stdin)
class Finder:
    @staticmethod
    def find_spec(full, path=None, target=None):
        return ModuleSpec(full, Finder, is_package=modules[full][0]) if full in modules else None
    @staticmethod
    def create_module(spec):
        return None
    @staticmethod
    def exec_module(module):
        module.__file__ = modules[module.__name__][1]
        exec(compile(modules[module.__name__][2], module.__file__, "exec"), module.__dict__)
sys.meta_path.insert(0, Finder)
import importlib
importlib.import_module(name)
exec(code)
print(json.dumps(sorted(set(sys.modules) & {"hy", "funcparserlib", "statecfg.graph.declare", "statecfg.graph.graph"})))
"""


def on_host(python: str, name: str, code: str) -> list[str]:
    """Import a module as a host does, run `code` there, and return its lines of output."""
    memory = host_modules.closure(["statecfg.remote.machine.memory"])
    given = json.dumps([{**host_modules.core(), **memory, **host_modules.of_types([name])}, name, code])
    command = [python, "-I", "-S", "-c", HOST]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


CHECK = """
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
attrs = {"pathname": "/bin/x", "user": "root", "group": "root", "env": {"A": "1"}, "args": ["-v"], "block?": True}
machine = MemoryMachine({"/bin/x": ""}, {"processes": {}})
(action,) = REGISTRY["process"].run_check(HostNode("p", "process", (), attrs), {}, [], machine)
print(action.op, action.args["env"], action.args["block?"])
print(action.perform(machine))
print(REGISTRY["process"].run_check(HostNode("p", "process", (), attrs), {}, [], machine))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_the_process_type_runs_on_every_python(python: str) -> None:
    lines = on_host(python, process.module, CHECK)
    assert lines == ["ensure-running {'A': '1'} True", "{'status': 'ok'}", "[]", "[]"]


def test_a_type_without_quoted_forms_needs_no_hy() -> None:
    source, needs = compile_for_host(str(ROOT / "resources/services/process.hy"))
    assert not needs
    assert "import hy\n" not in source


def module(tmp_path: Path, text: str, name: str = "made") -> str:
    path = tmp_path / f"{name}.hy"
    path.write_text("(require statecfg.dialects.hy *)\n(import statecfg.dialects.hy *)\n" + text)
    full = f"statecfg_test_{tmp_path.name}_{name}"
    load_module(full, path)
    return full


def test_a_type_with_quoted_forms_sends_hy(tmp_path: Path) -> None:
    name = module(tmp_path, '(setv form \'(spit "a" b))\n(defop w [p] (spit p (str (get form 0))))')
    newest = PYTHONS[-1]
    assert on_host(newest, name, f"print(sys.modules[{name!r}].form[0])") == ["spit", '["funcparserlib", "hy"]']


def test_error_lines_map_back_to_the_hy_file(tmp_path: Path) -> None:
    name = module(
        tmp_path, "\n\n(defn broken []\n  (setv x 1)\n  (for [y [1 2]]\n    (when (= y 2)\n      (setv z (/ y 0)))))\n"
    )
    code = f"""
import traceback
from statecfg.remote.graph.hy_lines import written_at
module = sys.modules[{name!r}]
try:
    module.broken()
except ZeroDivisionError as error:
    step = error.__traceback__.tb_next
    print(json.dumps(written_at(vars(module), "", step.tb_lineno)))
"""
    place, _ = on_host(PYTHONS[0], name, code)
    assert json.loads(place) == [f"{tmp_path.name}/made.hy", 9]


def test_lines_of_the_process_type_map_back_to_its_source(tmp_path: Path) -> None:
    path = ROOT / "resources/services/process.hy"
    source, _ = compile_for_host(str(path))
    names: dict[str, object] = {}
    exec(next(line for line in source.splitlines() if line.startswith("__statecfg_lines__")), names)
    written = path.read_text().splitlines()
    for number, line in enumerate(source.splitlines(), 1):
        if "require_program(" in line:
            file, there = written_at(names, "", number)
            assert file == "services/process.hy"
            assert "require-program" in written[there - 1]
            return
    raise AssertionError("the check requires no program any more: look for another line")


def test_a_hy_playbook_that_defines_a_type_sends_only_the_type(tmp_path: Path) -> None:
    path = tmp_path / "play.hy"
    path.write_text(
        """
(require statecfg.dialects.hy *)
(import statecfg.resources [directory])
(node-type motd :arguments [path] :required-attrs [text])
(defop put [path text] (spit path text))
(defmethod check-node motd [node] [(node-put node)])
(def d (directory "/d"))
(setv several [d d] names (lfor each several (:provides (:node each))))
(print names)
(defplay site [host] {:hosts "all"} [d (motd "/m" {:text "x"})])
"""
    )
    load(path, tmp_path)
    name = module_name(str(path))
    ((_, file, source),) = bundle_modules(name).values()
    assert file == f"{tmp_path.name}/play.hy"
    for gone in ("directory", "several", "names", "site", "print"):
        assert gone not in source
    code = (
        "from statecfg.remote.graph.nodetype import REGISTRY; print(sorted(REGISTRY), sorted(REGISTRY['motd'].methods))"
    )
    assert on_host(PYTHONS[0], name, code)[0] == "['motd'] ['check']"


def test_a_python_playbook_that_defines_a_type_sends_only_the_type(tmp_path: Path) -> None:
    path = tmp_path / "play.py"
    path.write_text(
        """
from statecfg import node_type, op, play, Graph
from statecfg.resources import directory

@node_type
def motd(path: str, *, text: str) -> None: ...

@op
def put(machine, path: str, text: str):
    return machine.spit(path, text)

@motd.check
def check(node):
    return [put.node(node)]

home = directory("/d")

@play(hosts="all")
def site(host):
    return [home, motd("/m", text="x")]
"""
    )
    load(path, tmp_path)
    code = (
        "from statecfg.remote.graph.nodetype import REGISTRY; print(sorted(REGISTRY), sorted(REGISTRY['motd'].methods))"
    )
    assert on_host(PYTHONS[0], module_name(str(path)), code)[0] == "['motd'] ['check']"


def test_syntax_newer_than_the_hosts_python_is_refused(tmp_path: Path) -> None:
    text = "(defn f [x]\n  (match x 1 2))\n"
    name = module(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        bundle_modules(name)
    (found,) = caught.value.problems
    assert (found.code, found.locations[0].line) == ("SC0516", 4)


@pytest.mark.parametrize("text", ["block?", "a-b", "+", "→x", "is-it?!", "ünï"])
def test_names_are_unmangled_as_hy_does(text: str) -> None:
    from statecfg.dialects import hy_source

    mangled = hy_source.hy.mangle(text)
    assert unmangled(mangled).replace("_", "-") == hy_source.unmangle(mangled)
