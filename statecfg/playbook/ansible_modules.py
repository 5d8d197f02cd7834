"""Ansible modules: find one, check arguments against its documentation, and make the archive that a host runs.

This needs ansible-core on this machine (`pip install 'statecfg[ansible]'`). Hosts get content: nothing of Ansible is
installed there. The function that assembles modules belongs to ansible-core and has no documented interface, so
`supported` refuses versions that no test has seen.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import importlib.util
import io
import os
import re
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.problems.suggestions import suggest
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong

VERSIONS = ("2.19",)  # of ansible-core, with which the tests run
INSTALL = "run: pip install 'statecfg[ansible]'"
# Modules that Ansible runs with code on the controller → the node type for the same purpose.
NATIVE = {
    "command": "command", "copy": "file", "fetch": "", "package": "package", "raw": "command", "reboot": "reboot",
    "script": "command", "service": "service", "shell": "command", "template": "file", "unarchive": "archive",
    "uri": "http_request", "assemble": "file", "assert": "assertion", "wait_for_connection": "wait_for",
}  # fmt: skip
_ARCHIVE = re.compile(rb"UEsDB[A-Za-z0-9+/=]{100,}")  # base64 of a zip file, in the program that Ansible makes
_PYTHON = re.compile(r"python\s*>=\s*(\d+)\.(\d+)", re.IGNORECASE)
_FIRST = (1980, 1, 1, 0, 0, 0)  # the date of all entries of an archive, so that equal content has an equal digest
_LOCK = threading.RLock()


@dataclass(frozen=True)
class AnsibleModule:
    """An Ansible module.

    :param name: its full name, such as `ansible.builtin.lineinfile`
    :param entry: the name under which Python finds it in the archive
    :param code: the archive: the module and everything of Ansible that it imports
    :param check_mode: whether it supports check mode fully
    :param python: the oldest Python that can run it
    :param options: its documented options; None: it has no documentation
    :param hidden: the names of the options whose values are secret
    """

    name: str
    entry: str
    code: Blob
    check_mode: bool
    python: tuple[int, int]
    options: Mapping[str, Any] | None
    hidden: frozenset[str]

    def wrong(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with arguments, and what to do."""
        if self.options is None:
            return
        names = {name: alias for alias, option in self.options.items() for name in (alias, *option.get("aliases", ()))}
        unknown = [name for name in arguments if name not in names]
        for name in unknown:
            yield f"{self.name} has no option `{name}`", suggest(name, sorted(names), "its options")
        from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

        known = {name: value for name, value in arguments.items() if name not in unknown}
        with _LOCK:
            result = ArgumentSpecValidator(_specification(self.options)).validate(known)
        for message in result.error_messages:
            yield f"{self.name}: {message}", f"ansible-doc {self.name} describes its options"

    def secret(self, name: str) -> bool:
        """Tell whether the value of an option, or of a part of one, is secret."""
        return name in self.hidden


def _specification(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return documented options in the form in which Ansible validates arguments."""
    specification = {}
    for name, option in options.items():
        copied = {key: option[key] for key in ("type", "elements", "required", "aliases") if option.get(key)}
        if option.get("choices"):
            copied["choices"] = list(option["choices"])
        if option.get("suboptions"):
            copied["options"] = _specification(option["suboptions"])
        specification[name] = copied
    return specification


def find(name: str) -> AnsibleModule:
    """Return an installed module.

    :param name: its name as in a playbook of Ansible, such as `lineinfile` or `community.general.ini_file`
    :raises Wrong: Ansible is not installed or not supported, there is no such module, or hosts can't run it
    """
    with _LOCK:
        return _found(name)


def supported() -> None:
    """Check that ansible-core can be used.

    :raises Wrong: it is not installed, or its version is not supported
    """
    try:
        from ansible.release import __version__ as version
    except ImportError:
        raise Wrong("ansible-core is not installed on this machine", INSTALL) from None
    if not version.startswith(tuple(f"{known}." for known in VERSIONS)):
        text = f"ansible-core {version} is installed on this machine; statecfg supports {', '.join(VERSIONS)}"
        raise Wrong(text, INSTALL)


@functools.cache
def loaders() -> Any:
    """Import Ansible once and return its module with loaders of plugins.

    Ansible creates a directory for temporary files when it is imported. Without `ANSIBLE_LOCAL_TEMP`, it would be in
    the home directory.
    """
    mine = "ANSIBLE_LOCAL_TEMP" not in os.environ
    if mine:
        os.environ["ANSIBLE_LOCAL_TEMP"] = tempfile.gettempdir()
    try:
        from ansible.executor import module_common
        from ansible.plugins import loader

        loader.init_plugin_loader()
    finally:
        if mine:
            del os.environ["ANSIBLE_LOCAL_TEMP"]
    # All modules share most of their sources. Ansible would parse these again for each module.
    parse = getattr(module_common, "_compile_module_ast", None)
    if parse is not None:
        module_common._compile_module_ast = functools.cache(parse)
    return loader


@functools.cache
def _found(name: str) -> AnsibleModule:
    supported()
    from ansible.errors import AnsibleError

    try:
        loader = loaders()
        _require_collection(name)
        with contextlib.redirect_stderr(io.StringIO()):  # Ansible warns about a missing collection; the error says it
            context = loader.module_loader.find_plugin_with_context(name)
        if not context.resolved:
            raise _missing(name, context.redirect_list)
        found: str = context.resolved_fqcn
        path, collection = context.plugin_resolved_path, context.plugin_resolved_collection
        _refuse_actions(loader, name, found, _documentation(path, collection))
        return _assembled(found, path, collection)
    except (AnsibleError, SyntaxError) as problem:
        message = str(problem).replace("\n", " ")
        raise Wrong(f"Ansible can't load the module {name}: {message}", "check it with ansible-doc") from None
    finally:
        _clean()


def _clean() -> None:
    """Remove Ansible's directory for temporary files, which it creates again when it needs it."""
    from ansible import constants

    shutil.rmtree(constants.DEFAULT_LOCAL_TMP, ignore_errors=True)


def _require_collection(name: str) -> None:
    parts = name.split(".")
    if len(parts) < 3 or parts[:2] == ["ansible", "builtin"] or parts[:2] == ["ansible", "legacy"]:
        return
    collection = ".".join(parts[:2])
    try:
        missing = importlib.util.find_spec(f"ansible_collections.{collection}") is None
    except (ImportError, ValueError):
        missing = True
    if missing:
        text = f"the module {name} is not on this machine: the collection {collection} is not installed"
        raise Wrong(text, f"run: ansible-galaxy collection install {collection}")


def _missing(name: str, redirects: Sequence[str]) -> Wrong:
    """Return the error for a name that no module has, with the most similar names."""
    moved = redirects[-1] if redirects else name
    if moved != name and moved.count(".") >= 2:
        _require_collection(moved)
    collection, _, short = name.rpartition(".")
    names = _names(collection)
    help = did_you_mean(short, names) or "list them: ansible-doc -l"
    return Wrong(f"Ansible has no module {name} on this machine", help)


def _names(collection: str) -> list[str]:
    """Return the short names of the modules of a collection; "" means those of ansible-core."""
    import ansible

    if collection in ("", "ansible.builtin", "ansible.legacy"):
        folders = [os.path.join(path, "modules") for path in ansible.__path__]
    else:
        spec = importlib.util.find_spec(f"ansible_collections.{collection}")
        paths = spec.submodule_search_locations if spec is not None else None
        folders = [os.path.join(path, "plugins", "modules") for path in paths or ()]
    files = (file for folder in folders if os.path.isdir(folder) for file in os.listdir(folder))
    return sorted(file[:-3] for file in files if file.endswith(".py") and not file.startswith("_"))


@functools.cache
def _documentation(path: str, collection: str) -> Mapping[str, Any]:
    """Return the documentation of a module, with the fragments that it includes; empty if it has none."""
    from ansible.utils.plugin_docs import get_docstring

    found, *_ = get_docstring(path, loaders().fragment_loader, plugin_type="module", collection_name=collection)
    return found or {}


def _refuse_actions(loader: Any, name: str, found: str, documentation: Mapping[str, Any]) -> None:
    """Refuse a module of which Ansible runs a part on the controller: without that part, it does not work.

    :raises Wrong: it is such a module
    """
    support = (documentation.get("attributes") or {}).get("action", {}).get("support", "full")
    if support != "partial" and loader.action_loader.find_plugin_with_context(name).resolved:
        native = NATIVE.get(found.rpartition(".")[2]) if found.startswith("ansible.builtin.") else ""
        text = f"a part of {found} runs in Ansible itself, so the module alone does not work"
        raise Wrong(text, f"use the node type {native}" if native else "use a module without an action plugin")


@functools.cache
def _assembled(name: str, path: str, collection: str) -> AnsibleModule:
    """Let Ansible assemble a module, and return it. A playbook may use several names of a module.

    :param name: its full name
    :param path: its file
    """
    from ansible.executor.module_common import modify_module
    from ansible.module_utils import basic
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar

    documentation = _documentation(path, collection)
    with open(path, "rb") as stream:
        source = stream.read()
    built = modify_module(
        module_name=name,
        module_path=path,
        module_args={},
        templar=Templar(loader=DataLoader()),
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
        module_compression="ZIP_STORED",
    )
    packed = _ARCHIVE.search(built.b_module_data)
    if built.module_style != "new" or packed is None:
        raise Wrong(f"{name} is not a module in Python that Ansible can assemble", "use another module")
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed.group()))) as archive:
        entries = {entry: archive.read(entry) for entry in sorted(archive.namelist())}
    stem = os.path.basename(path)
    entry = next(entry for entry in entries if os.path.basename(entry) == stem and entries[entry] == source)
    supports = ((documentation.get("attributes") or {}).get("check_mode") or {}).get("support")
    needs = [(int(found[1]), int(found[2])) for found in map(_PYTHON.search, _texts(documentation)) if found]
    options = documentation.get("options") if documentation else None
    sources = [text for part, text in entries.items() if part.endswith(".py") and b"no_log" in text]
    return AnsibleModule(
        name,
        entry[: -len(".py")].replace("/", "."),
        Blob.of(_packed(entries)),
        supports == "full" if supports is not None else _declares_check_mode(ast.parse(source)),
        max([basic._PY_MIN, *needs]),
        options if options is not None or not documentation else {},
        _hidden(sources, options or {}, basic.PASSWORD_MATCH),
    )


def _texts(documentation: Mapping[str, Any]) -> list[str]:
    requirements = documentation.get("requirements") or ()
    return [requirements] if isinstance(requirements, str) else [str(text) for text in requirements]


def _packed(entries: Mapping[str, bytes]) -> bytes:
    """Return a zip file whose bytes depend only on its entries. The wire compresses it, so the file itself does not."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST), data)
    return packed.getvalue()


def _declares_check_mode(tree: ast.Module) -> bool:
    """Tell whether a module without documented attributes passes `supports_check_mode=True` to AnsibleModule."""
    keywords = (item for node in ast.walk(tree) if isinstance(node, ast.Call) for item in node.keywords)
    return any(item.arg == "supports_check_mode" and _constant(item.value) is True for item in keywords)


def _constant(value: ast.expr | None) -> Any:
    return value.value if isinstance(value, ast.Constant) else None


def _fields(value: ast.expr) -> dict[str, ast.expr]:
    """Return the keys and values of `dict(…)` or `{…}`; empty for other expressions."""
    if isinstance(value, ast.Call):
        return {item.arg: item.value for item in value.keywords if item.arg}
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return {str(_constant(key)): item for key, item in pairs if isinstance(_constant(key), str)}
    return {}


@functools.cache
def _no_log(source: bytes) -> Sequence[tuple[str, bool]]:
    """Return the options of a source, each with its `no_log`. All modules share most of their sources."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call | ast.Dict))
    declared = [
        (name, _constant(_fields(value).get("no_log"))) for node in calls for name, value in _fields(node).items()
    ]
    return [(name, value) for name, value in declared if isinstance(value, bool)]


def _hidden(sources: Sequence[bytes], options: Mapping[str, Any], secretive: re.Pattern[str]) -> frozenset[str]:
    """Return the names of options with secret values: those with `no_log`, and those that are called like a secret.

    :param sources: the code of the module, and of what it imports of Ansible
    :param options: the documented options
    :param secretive: the names that Ansible regards as secret by default
    """
    no_log: dict[str, bool] = {}
    for source in sources:
        for name, declared in _no_log(source):
            no_log[name] = no_log.get(name, False) or declared
    called = {name for name in options if secretive.search(name) and name not in no_log}
    aliases = {name: options[name].get("aliases") or () for name in options}
    names = called | {name for name, hidden in no_log.items() if hidden}
    return frozenset(names.union(*(aliases.get(name, ()) for name in names)))
