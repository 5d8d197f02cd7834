"""Automatic requirements of large graphs are found, and freed of cycles, in linear time."""

from __future__ import annotations

from statecfg.graph import automatic, identity
from statecfg.graph.automatic_cycles import without_cycles
from statecfg.graph.nodes import Node
from statecfg.resources import directory, file, package, service, user
from tests.long.graph.test_references_scale import seconds


def trees(size: int) -> list[Node]:
    """Return files in directories of a hundred, all of one owner, whose home directory closes a cycle."""
    file_, folder = file("/x", content="").node, directory("/x").node
    nodes = [user("app", home="/srv/app").node, directory("/srv", owner="app").node]
    for index in range(size):
        top = f"/srv/{index // 100}"
        if index % 100 == 0:
            nodes.append(folder.with_attrs(path=top, owner="app").replace(provides=f"directory:{top}"))
        path = f"{top}/deep/{index}"
        nodes.append(file_.with_attrs(path=path, owner="app").replace(provides=f"file:{path}"))
    return nodes


def pairs(size: int) -> list[Node]:
    """Return users whose home directory is in a directory that belongs to them: many small cycles."""
    account, folder = user("app", home="/x").node, directory("/x").node
    nodes = []
    for index in range(size // 2):
        name, top = f"u{index}", f"/srv/{index}"
        nodes.append(account.with_attrs(name=name, home=f"{top}/home").replace(provides=f"user:{name}"))
        nodes.append(folder.with_attrs(path=top, owner=name).replace(provides=f"directory:{top}"))
    return nodes


def everything(nodes: list[Node]) -> tuple[int, int]:
    required, problems = automatic.find(nodes, identity.owners(nodes))
    assert not problems
    kept, left_out = without_cycles(nodes, required)
    return sum(map(len, kept.values())), len(left_out)


def test_automatic_requirements_take_linear_time() -> None:
    small, large = trees(1_250), trees(10_000)
    assert everything(large) == (10_000 * 2 + 100 * 2 + 1, 1)
    fast = seconds(lambda: everything(small))
    # Linear time gives a factor of 8, quadratic time 64. The limit allows for noise.
    assert seconds(lambda: everything(large)) < 20 * fast + 0.5


def test_many_cycles_take_linear_time() -> None:
    small, large = pairs(1_250), pairs(10_000)
    assert everything(large) == (5_000, 5_000)
    fast = seconds(lambda: everything(small))
    assert seconds(lambda: everything(large)) < 20 * fast + 0.5


def test_one_large_cycle_takes_little_time() -> None:
    """A package requires all files; each file has the same owner, whose shell is in the package."""
    file_ = file("/x", content="", owner="app").node
    names = [f"file:/srv/{index}" for index in range(5_000)]
    nodes = [file_.with_attrs(path=name[5:]).replace(provides=name) for name in names]
    nodes += [user("app", shell="/bin/zsh").node, package("zsh", requires=names).node, service("zsh").node]
    kept, left_out = everything(nodes)
    assert (kept, left_out) == (5_001, 1)
    assert seconds(lambda: everything(nodes)) < 5
