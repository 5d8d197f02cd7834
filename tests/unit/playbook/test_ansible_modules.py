"""Ansible modules on the controller: how one is found, what is wrong with its arguments, and what is sent."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from statecfg import problems, resources
from statecfg.graph.opaque import Secret
from statecfg.playbook import ansible_modules
from statecfg.playbook.compile import Definition, compile_graph
from statecfg.playbook.context import WireContext
from statecfg.remote.graph.wrong_values import Wrong
from tests.each import each
from tests.unit import ansible_loaded  # noqa: F401  # its import is all that it does

WORD = "a-Word-of-a-module-1"


def compiled(module: str, **arguments: Any) -> Definition:
    """Compile a node that runs a module."""
    node = resources.ansible_module("mine", module=module, arguments=arguments)
    return compile_graph(node, WireContext(base=Path.cwd()))


def wrong(module: str, **arguments: Any) -> list[tuple[str, str]]:
    """Return the details of the problems of a node, and their help."""
    with pytest.raises(problems.InvalidInput) as caught:
        compiled(module, **arguments)
    assert {found.code for found in caught.value.problems} == {"SC0116"}
    return [(found.detail.removeprefix("ansible_module:mine: "), found.help) for found in caught.value.problems]


@pytest.mark.parametrize(
    ("module", "detail", "help"),
    [
        ("lineinfil", "Ansible has no module lineinfil on this machine", "did you mean `lineinfile`?"),
        ("ansible.builtin.usr", "Ansible has no module ansible.builtin.usr on this machine", "did you mean `user`?"),
        ("nothing_like_it", "Ansible has no module nothing_like_it on this machine", "list them: ansible-doc -l"),
        (
            "nobody.nowhere.thing",
            "the module nobody.nowhere.thing is not on this machine: the collection nobody.nowhere is not installed",
            "run: ansible-galaxy collection install nobody.nowhere",
        ),
        (
            "copy",
            "a part of ansible.builtin.copy runs in Ansible itself, so the module alone does not work",
            "use the node type file",
        ),
        (
            "fetch",
            "a part of ansible.builtin.fetch runs in Ansible itself, so the module alone does not work",
            "use a module without an action plugin",
        ),
        (
            "include_vars",
            "ansible.builtin.include_vars is not a module in Python that Ansible can assemble",
            "use another module",
        ),
    ],
)
def test_a_module_that_hosts_cannot_run_is_refused(
    module: str, detail: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wrong(module) == [(detail, help)]
    assert capsys.readouterr().err == ""


def test_a_module_that_moved_to_a_collection_names_the_collection(capsys: pytest.CaptureFixture[str]) -> None:
    ((detail, help),) = wrong("ini_file")
    assert "community.general.ini_file" in detail and help.endswith("install community.general")
    assert capsys.readouterr().err == ""


def test_all_wrong_arguments_are_reported() -> None:
    found = dict(wrong("lineinfile", pth="/f", state="there", create="perhaps"))
    assert found.pop("ansible.builtin.lineinfile has no option `pth`").startswith("did you mean `path`?")
    said = " ".join(found)
    assert "missing required arguments: path" in said
    assert "value of state must be one of: absent, present, got: there" in said
    assert set(found.values()) == {"ansible-doc ansible.builtin.lineinfile describes its options"}


def test_a_wrong_secret_is_not_shown() -> None:
    ((detail, _),) = wrong("lineinfile", path="/f", line="a", state=Secret("word", WORD))
    assert "<secret word>" in detail and WORD not in detail


def test_options_may_have_the_aliases_of_a_module() -> None:
    assert compiled("lineinfile", dest="/f", value="a").layers


def test_the_code_that_is_sent_contains_the_module_and_is_always_the_same() -> None:
    module = ansible_modules.find("lineinfile")
    assert (module.name, module.check_mode, module.python) == ("ansible.builtin.lineinfile", True, (3, 8))
    with zipfile.ZipFile(io.BytesIO(module.code.read())) as archive:
        names = archive.namelist()
    assert {"ansible/modules/lineinfile.py", "ansible/module_utils/basic.py"} <= set(names)
    ansible_modules._found.cache_clear()
    ansible_modules._assembled.cache_clear()
    again = ansible_modules.find("ansible.builtin.lineinfile")
    assert again is not module and again.code == module.code
    assert ansible_modules.find("lineinfile") is again


@each(("module", "supports"), [("tempfile", False), ("get_url", False), ("user", True), ("deb822_repository", True)])
def test_check_mode_is_supported_if_the_module_says_so_for_all_cases(module: str, supports: bool) -> None:
    """deb822_repository does not document it; its code does."""
    assert ansible_modules.find(module).check_mode is supports


def test_values_of_options_with_no_log_are_secrets() -> None:
    definition = compiled("user", name="deploy", password=WORD, update_password="always")
    assert definition.secrets == {"password": WORD}
    (node,) = definition.layers[0]
    assert node["hides"] == ["arguments"]
    assert node["attrs"]["module"] == "ansible.builtin.user"


def test_secrets_in_arguments_are_sent_as_such() -> None:
    definition = compiled("lineinfile", path="/f", line=Secret("word", WORD))
    assert definition.secrets == {"word": WORD} and definition.layers[0][0]["hides"] == ["arguments"]


def test_without_ansible_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ansible"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ansible", None)
    expected = "ansible-core is not installed on this machine", "run: pip install 'statecfg[ansible]'"
    assert wrong("not_found_before") == [expected]


def test_a_version_that_no_test_has_seen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import ansible.release

    monkeypatch.setattr(ansible.release, "__version__", "2.99.1")
    with pytest.raises(Wrong, match=r"ansible-core 2\.99\.1 is installed on this machine; statecfg supports 2\.19"):
        ansible_modules.supported()
