"""Find nodes that contradict each other although each manages its own object."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from statecfg.graph import identity, shared_facts
from statecfg.graph.identity import normal
from statecfg.graph.nodes import Node
from statecfg.problems import Problem, problem
from statecfg.remote.graph.wrong_values import show
from statecfg.remote.ledger import claims

# Several nodes of these types may have the same `path`. Each can set its mode, owner and group.
SHARING = ("file", "line_in_file", "block_in_file", "replace", "ini_key", "json_key", "toml_key", "yaml_key")
PERMISSIONS = ("mode", "owner", "group")
PRESENT = ("file", "download", "directory", "symlink", "hard_link", "archive", "remove")


def check(nodes: Sequence[Node]) -> list[Problem]:
    """Return a problem for each pair of nodes that contradict each other."""
    paths: dict[str, list[Node]] = {}
    for node in nodes:
        if node.broken or not (node.type in PRESENT or node.type in SHARING):
            continue
        path = node.attrs.get("path")
        if isinstance(path, str):
            paths.setdefault(normal(path), []).append(node)
    shared = {path: group for path, group in paths.items() if len(group) > 1}
    return [*_different(shared), *_inside_absent(paths, nodes), *shared_facts.check(nodes)]


def _different(paths: Mapping[str, list[Node]]) -> Iterable[Problem]:
    """Yield a problem if nodes give one file different modes, owners or groups."""
    for path, group in paths.items():
        sharing = [node for node in group if node.type in SHARING]
        for field in PERMISSIONS:
            setting = [node for node in sharing if node.attrs.get(field) is not None]
            # Different declarations of one node are reported separately.
            different = (node for node in setting if node.provides != setting[0].provides)
            other = next((node for node in different if _text(node, field) != _text(setting[0], field)), None)
            if other is not None:
                one = setting[0]
                detail = f"{one.provides} sets the {field} of {path} to {_text(one, field)}"
                detail += f", {other.provides} sets it to {_text(other, field)}"
                yield problem("SC0121", detail, f"set the {field} in one of them", *one.positions, *other.positions)


def _text(node: Node, field: str) -> str:
    """Return an attribute as messages show it. Equal values give equal text."""
    value = node.attrs[field]
    return f"{value:04o}" if isinstance(value, int) else show(value)


def _inside_absent(paths: Mapping[str, list[Node]], nodes: Sequence[Node]) -> Iterable[Problem]:
    """Yield a problem if one node creates something in a directory that another node removes."""
    absent = {
        path: node
        for path, group in paths.items()
        for node in group
        if node.type in ("directory", "remove") and _removes(node)
    }
    for node in nodes if absent else ():
        if node.broken or _removes(node):
            continue
        found = (claim.lstrip(claims.OWNED) for claim in identity.claims(node))
        for path in sorted({*claims.paths(claim for claim in found if not claim.startswith("part:"))}):
            above = next((parent for parent in _parents(path) if parent in absent), None)
            if above is not None:
                remover = absent[above]
                detail = f"{node.provides} creates something in {above}, which {remover.provides} removes"
                help = "remove `absent: true` from the directory, or also remove what the directory contains"
                if remover.type == "remove":
                    help = f"delete the node {remover.provides}, or also remove what the directory contains"
                yield problem("SC0121", detail, help, *node.positions, *remover.positions)
                break


def _parents(path: str) -> Iterable[str]:
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        yield path


def _removes(node: Node) -> bool:
    return node.type == "remove" or bool(node.attrs.get("absent"))
