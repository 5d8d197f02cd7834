"""Files: content, mode, owner."""

from __future__ import annotations

from statecfg.remote.graph.model import Blob, CheckError, Unknown, error
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op
from statecfg.resources import _before, _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, ActionSpec, Node, Result
    from statecfg.remote.graph.values import (
        AbsolutePath,
        Argv,
        Content,
        LocalPath,
        Mode,
        NodeOptions,
        Owner,
        OwnerGroup,
        Suffix,
    )
    from statecfg.remote.machine.world import Machine, World

CONTENT = ("content", "source", "template")


@node_type
def file(
    path: AbsolutePath,
    *,
    content: Optional[Content] = None,
    source: Optional[LocalPath] = None,
    template: Optional[LocalPath] = None,
    vars: Optional[Dict[str, Any]] = None,
    mode: Optional[Mode] = None,
    owner: Optional[Owner] = None,
    group: Optional[OwnerGroup] = None,
    validate: Optional[Argv] = None,
    backup: Optional[Suffix] = None,
    follow: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a file with its complete content, or only the mode and owner of a file that something else creates.

    statecfg replaces the content in one step: at every moment, the file is either the old one or the new one. If you
    omit mode, owner or group, an existing file keeps its own; a new file gets mode 0644 and belongs to the user who
    applies. If the path is a directory or a link, statecfg does not touch it and the node fails: in the plan or, if a
    package or command of the same run creates the link, when the executor reaches the node.

    If the file belonged to another user, statecfg replaces it with a new file, even if its content is right. Otherwise
    the former owner could still write to it through an open file or a hard link. If an access list (ACL) grants more
    than `mode`, the plan shows it and the apply removes it. The same holds for an access list that a former owner other
    than root may have made. Other access lists stay.

    Undo: if the file existed before, statecfg restores its content (up to 64 MiB), mode, owner and group, but not its
    access lists and hard links. Otherwise it removes the file. If the node has no content, statecfg restores only mode,
    owner and group, and of these only what the node sets.

    :param path: the path of the file
    :param content: the exact content; no line end is added
    :param source: a local file that provides the content, next to the playbook or in the project's ``files/``
    :param template: a local Jinja2 template that renders the content, next to the playbook or in ``templates/``
    :param vars: additional variables for the template; they override the variables of the host
    :param mode: permission bits as an octal string, such as ``"0644"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs new content; ``{}`` stands for the
        path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one when the content changes
    :param follow: if the path is a link, manage the file that it points to
    :param absent: the file must not exist

    In YAML::

        - file: /etc/sudoers.d/deploy
          content: "deploy ALL=(ALL) NOPASSWD: /usr/bin/systemctl\\n"
          mode: "0440"
          validate: [visudo, -cf, "{}"]

    In Python::

        file("/etc/nginx/conf.d/shop.conf", template="shop.conf.j2", vars={"port": 8080}, mode="0644")
    """


@op
def write(
    machine: Machine,
    path: str,
    content: Blob,
    mode: Optional[int] = None,
    owner: Optional[str] = None,
    group: Optional[str] = None,
    backup: Optional[str] = None,
    validate: Optional[List[str]] = None,
) -> Result:
    """Put a file of this content in place. A link that something else in this run has put there stays."""
    found = machine.apparent(path)
    if found is not None and found.kind == "symlink":
        text = "%s is a link to %s, not a file: it was made in this run; follow: true manages the file that it leads to"
        return error(text % (path, found.target))
    return machine.write(path, content, mode, owner, group, backup, validate)


file.claims(_paths.path_claim)


@file.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse attributes that contradict each other or do nothing together."""
    _paths.refuse_with_absent(attrs, ("path", "absent"))
    given = [name for name in CONTENT if attrs.get(name) is not None]
    if len(given) > 1:
        raise ValueError("%s: only one of them can give the content" % " and ".join(given))
    if attrs.get("vars") and attrs.get("template") is None:
        raise ValueError("vars are for a template, and none is given")
    for name in ("validate", "backup"):
        if attrs.get(name) and not given:
            raise ValueError("%s is for new content, and none is given" % name)
    if attrs.get("validate") and not any("{}" in part for part in attrs["validate"]):
        raise ValueError("validate needs {} where the path of the file to look at goes")


@file.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Read the source or render the template, so that only content crosses the wire."""
    attrs = node.attrs
    content = attrs.get("content")
    if attrs.get("template") is not None:
        content = Blob.of(context.render(node, attrs["template"], dict(attrs.get("vars") or {})))
    elif attrs.get("source") is not None:
        content = context.read(node, attrs["source"])
    elif isinstance(content, (str, bytes, Blob)):  # a secret is none of these, and stays one until it is sent
        content = Blob.of(content)
    return node.with_attrs(content=content, source=None, template=None, vars=None)


@file.blobs
def blobs(node: Node, world: World) -> List[Blob]:
    """Return the content, unless the host's file has it already."""
    content = node.attrs.get("content")
    if not isinstance(content, Blob):
        return []
    try:
        return [] if world.digest(node.attrs["path"]) == content.sha256 else [content]
    except (OSError, Unknown):
        return [content]


@file.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Compare kind, content, mode and owner with what stands there."""
    attrs = node.attrs
    path, content = attrs["path"], attrs.get("content")
    if attrs.get("follow"):
        path = _paths.followed(world, path)
    stat = _paths.look(world, path, determined=content is not None)
    if attrs.get("absent"):
        if stat is not None and stat.kind == "directory":
            _paths.refuse(path, stat, "a file", "a directory node with absent: true removes it")
        return [_paths.remove(path)] if stat is not None else []
    if stat is None:
        if content is None:
            raise CheckError('%s does not exist and no content is given; content: "" makes an empty file' % path)
        _paths.require_parent(world, path, node, nodes)
    elif stat.kind == "symlink":
        _paths.refuse(path, stat, "a file", "follow: true manages the file that it leads to")
    elif stat.kind != "file":
        _paths.refuse(path, stat, "a file")
    mode = _paths.mode_bits(attrs.get("mode"))
    actions = _paths.attribute_actions(world, path, stat, mode, node, nodes) if stat is not None else []
    if content is not None:
        content = Blob.of(content)
        differs = stat is None or stat.size != content.size or world.digest(path) != content.sha256
        if differs or (actions and stat is not None and _paths.changes_hands(stat, attrs.get("owner"))):
            owner, group = _paths.owners(world, node, nodes)
            return [write(path, content, mode, owner, group, attrs.get("backup"), attrs.get("validate"))]
    return actions


@file.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down the file; where the node gives it no content, its own only where it is small."""
    attrs = node.attrs
    path = _before.followed(world, attrs["path"], bool(attrs.get("follow")))
    written = attrs.get("content") is not None
    looking = _before.Looking(world, _before.REMEMBERED if written or attrs.get("absent") else _before.SMALL)
    known: Dict[str, Any] = {"path": path, "was": looking.entry(path), "written": written}
    if attrs.get("backup"):
        known["backup"] = looking.kept(path, attrs["backup"])
    return looking.memory(**known) if written or attrs.get("absent") else known


@file.undo
def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Bring the former file back, or take ours away."""
    attrs = node.attrs
    path, was = memory["path"], memory["was"]
    undoing = _before.Undoing(world, memory)
    if attrs.get("absent"):
        if was is not None:
            undoing.back_if_missing(path, was)
    elif attrs.get("content") is not None or memory["written"]:
        undoing.back(path, was, ("file",))
        _before.back_up(undoing, memory, attrs.get("backup"))
    elif was is not None:
        undoing.restore_attributes(path, was, _before.given(attrs))
    return undoing.spec()
