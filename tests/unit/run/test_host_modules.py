"""The module `statecfg` of hosts: the public names that exist there."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

import statecfg
from statecfg.remote.graph.above import Above
from statecfg.remote.graph.nodetype import NodeType, facet
from statecfg.run import bundle, host_modules
from tests.unit.resources.conformance import types


@pytest.fixture
def host() -> ModuleType:
    """The module `statecfg` as hosts have it."""
    module = ModuleType("statecfg")
    exec(host_modules.core()["statecfg"][2], vars(module))
    return module


def test_a_host_has_every_public_name_of_its_half(host: ModuleType) -> None:
    here = [name for name, home in statecfg._HOMES.items() if home.startswith("statecfg.remote.")]
    assert len(here) > 40
    assert [name for name in here if getattr(host, name) is not getattr(statecfg, name)] == []


def test_a_host_lacks_the_names_of_the_controller(host: ModuleType) -> None:
    theirs = [name for name, home in statecfg._HOMES.items() if not home.startswith("statecfg.remote.")]
    assert [name for name in theirs if hasattr(host, name)] == []
    with pytest.raises(AttributeError, match="statecfg has no play on hosts"):
        host.play  # noqa: B018  # the lookup itself is the test


def test_a_host_without_the_types_of_attributes_lacks_only_these(
    host: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statecfg.remote.graph.values", None)  # an import of it fails
    assert host.NodeType is NodeType
    assert not hasattr(host, "AbsolutePath")


def test_former_names_work_on_hosts_without_a_warning(host: ModuleType) -> None:
    assert host.table is facet
    Above().renamed("NodeType.claims", "NodeType.identity")  # pytest would raise a warning as an error


@pytest.mark.parametrize("name", types.TYPES)
def test_the_facets_that_a_type_asks_for_are_sent_with_it(name: str) -> None:
    sent = {**host_modules.core(), **bundle.modules_of([name])[0]}
    texts = [text for _, _, text in sent.values()]
    there = {"users", "groups"}.union(*(re.findall(r'@facet\("(\w+)"', text) for text in texts))
    # A module that reads FACETS asks whether a facet is there.
    asked = [re.findall(r'\.(?:entry|facet)\("(\w+)"', text) for text in texts if "FACETS" not in text]
    assert set().union(*asked) <= there
