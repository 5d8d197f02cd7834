"""The tree of exceptions: it contains all exceptions of statecfg, and `statecfg/problems/__init__.py` shows it."""

from __future__ import annotations

import functools
import re
from importlib import import_module
from pkgutil import walk_packages

import statecfg
from statecfg import problems
from statecfg.playbook.user_code import AskedForInput, TookTooLong
from statecfg.remote import former
from statecfg.remote.graph.errors import StatecfgError
from tests.unit.sources import part

# An import would run these, or warn of a former name.
SKIPPED = {
    "statecfg.__main__",
    "statecfg.hooks.http_hooks",
    "statecfg.remote.bootstrap",
    *(f"statecfg.remote.{name}" for name in former.MOVED),
}
LINE = re.compile(r"^ {4}(?P<indent>[│├└─ ]*)(?P<name>\w+)(?: +(?P<room>[\w.]+) +\S.*)?$")


@functools.cache
def exceptions() -> set[type[BaseException]]:
    """Return all exception classes that modules of statecfg define."""
    modules = [found.name for found in walk_packages(statecfg.__path__, "statecfg.") if found.name not in SKIPPED]
    values = [(name, value) for name in modules for value in vars(import_module(name)).values()]
    classes = [(name, value) for name, value in values if isinstance(value, type)]
    return {found for name, found in classes if issubclass(found, BaseException) and found.__module__ == name}


def label(exception: type[BaseException]) -> str:
    return "StatecfgError" if exception is StatecfgError else f"{part(exception.__module__)}.{exception.__name__}"


def drawn() -> list[tuple[str, str]]:
    """Return each exception of the drawn tree, together with its parent."""
    path: list[str] = []
    pairs = []
    for found in filter(None, map(LINE.match, (problems.__doc__ or "").splitlines())):
        depth = len(found["indent"]) // 4
        path[depth:] = [f"{found['room']}.{found['name']}" if depth else found["name"]]
        if depth:
            pairs.append((path[depth], path[depth - 1]))
    return pairs


def test_exceptions_derive_from_statecfg_error() -> None:
    outside = {exception for exception in exceptions() if not issubclass(exception, StatecfgError)}
    # `except Exception` in user code must not catch these two.
    assert outside == {AskedForInput, TookTooLong}


def test_drawn_tree_shows_each_exception_class_once() -> None:
    below = [exception for exception in exceptions() if issubclass(exception, StatecfgError)]
    real = {(label(one), label(base)) for one in below for base in one.__bases__ if issubclass(base, StatecfgError)}
    assert sorted(drawn()) == sorted(real)


def test_drawing_names_the_exceptions_outside_the_tree() -> None:
    assert all(outside.__name__ in (problems.__doc__ or "") for outside in (AskedForInput, TookTooLong))
