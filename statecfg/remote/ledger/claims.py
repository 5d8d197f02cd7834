"""What a node manages besides its identities: second files, copies, parts of files, items of lists."""

from __future__ import annotations

from statecfg.remote.graph.model import Unknown
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.paths import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, List, Sequence

OWNED = "+"  # begins a claim in the ledger that is not an identity


def owned(node: Any, identities: Sequence[str]) -> List[str]:
    """Return the claims of a node besides its identities, in the form of `NodeType.owns`.

    :param node: a node of the controller or of the host
    :param identities: its identities
    """
    attrs = node.attrs
    if attrs.get("absent"):
        return []
    node_type = REGISTRY.get(node.type)
    found = list(node_type.owned(node)) if node_type is not None else []
    path = attrs.get("path")
    if isinstance(path, str) and path[:1] == "/":
        if isinstance(attrs.get("backup"), str):
            found.append(f"path:{path}{attrs['backup']}")
        found += [f"path:{path}/{name}" for name in attrs.get("tree") or ()]
        if normal(path) not in set(paths(identities)).union(paths(found)):
            found.append(f"part:path:{path}")
    files = [attrs.get("creates"), *_files(attrs.get("effects"))]
    found += [f"part:path:{name}" for name in files if isinstance(name, str) and name[:1] == "/"]
    return [plain(claim) for claim in dict.fromkeys(found)]


def _files(effects: Any) -> Iterable[Any]:
    return (effects.get("files") or ()) if hasattr(effects, "get") else ()


def plain(claim: str) -> str:
    """Return a claim with a normalised path."""
    head, mark, path = claim.partition("path:")
    return f"{head}{mark}{normal(path)}" if head in ("", "part:", "whole:") and path[:1] == "/" else claim


def paths(claims: Iterable[str]) -> Iterator[str]:
    """Yield the paths that claims are about; that of `line:/etc/motd: a line` is `/etc/motd`. See `located`."""
    for claim in claims:
        kind, _, name = claim.partition(":")
        if kind in ("part", "whole") and name[:5] == "path:":
            name = name[5:]
        if name[:1] == "/":
            yield normal(name if kind in ("path", "part", "whole") else name.partition(": ")[0])
        elif name[:1] == "~" and kind in ("path", "part", "whole"):
            yield name


def located(machine: Any, path: str) -> str:
    """Return the canonical path of a claim: `~USER/` is the home directory of a user on this host.

    :raises OSError: if links form a loop
    """
    if path[:1] == "~":
        user, _, rest = path[1:].partition("/")
        try:
            home = (machine.entry("users", user) or {}).get("home")
        except Unknown:
            home = None
        path = (home or ("/root" if user == "root" else "/home/" + user)) + "/" + rest
    found: str = machine.canonical(path)
    return found
