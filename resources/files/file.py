"""Files: content, mode, owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    ActionSpec,
    Argv,
    Attrs,
    Blob,
    CheckError,
    Content,
    HostNode,
    LocalPath,
    ModeChange,
    NodeOptions,
    Owner,
    OwnerGroup,
    Suffix,
    World,
    node_type,
)
from statecfg.resources.shared import file_sources, files, paths

CONTENT = ("content", "source", "template")


@node_type
def file(
    path: AbsolutePath,
    *,
    content: Content | None = None,
    source: LocalPath | None = None,
    template: LocalPath | None = None,
    vars: dict[str, Any] | None = None,
    mode: ModeChange | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    follow: bool = False,
    replace: bool = False,
    create_only: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a file with its complete content, or only the mode and owner of a file that something else creates.

    statecfg replaces the content in one step: at every moment, the file is either the old one or the new one. If you
    omit mode, owner or group, an existing file keeps its own; a new file gets mode 0644 and belongs to the user who
    applies. A new owner or group leaves the whole mode and the capabilities of a program as they are, unless its former
    owner is neither root nor the user who applies: then the set-user-id bits go. If the path is a directory or a link,
    statecfg does not touch it and the node fails, unless `follow` or `replace` decides about a link. If a package
    or command of the same run may create a link there, the plan shows `known after` that node, and the executor decides
    when it reaches the file. In directories such as `conf.d`, for files of others, it expects no link. If a file
    is mounted at the path, such as /etc/hosts in a container, statecfg writes into that file: the change is not atomic
    then, and the plan says that.

    If the file belonged to another user, statecfg replaces it with a new file, even if its content is right. Otherwise
    the former owner could still write to it through an open file or a hard link. If an access list (ACL) grants more
    than `mode`, the plan shows it and the apply removes it. The same holds for an access list that a former owner other
    than root may have made. Other access lists stay.

    Undo: if the file existed before, statecfg restores its content (up to 64 MiB), and of mode, owner and group what
    the node sets, but not its access lists and hard links. Otherwise it removes the file. If the node has no content,
    or has `create_only` and the file existed before, the content stays. What others have changed since the last apply
    stays, and the removal reports it: a file with other content stays as it is.

    :param path: the path of the file
    :param content: the exact content; no line end is added
    :param source: a local file that provides the content, next to the playbook or in the project's ``files/``
    :param template: a local Jinja2 template that renders the content, next to the playbook or in ``templates/``
    :param vars: additional variables for the template; they override the variables of the host
    :param mode: permission bits as an octal string, such as ``"0644"``, or a symbolic mode, such as ``u=rw,go=r`` or
        ``a+x``, which starts from the file's present mode
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs new content; ``{}`` is replaced by
        the path of the file to check. A plan runs it, too: it sees the files as planned, and what it writes is lost
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one when the content changes
    :param follow: if the path is a link, manage the file that it points to
    :param replace: if the path is a link, replace the link by the file
    :param create_only: write the content only if the file does not exist; afterwards it stays as others change it
    :param absent: the file must not exist

    In YAML::

        - file: /etc/sudoers.d/deploy
          content: "deploy ALL=(ALL) NOPASSWD: /usr/bin/systemctl\\n"
          mode: "0440"
          validate: [visudo, -cf, "{}"]

    In Python::

        file("/etc/nginx/conf.d/shop.conf", template="shop.conf.j2", vars={"port": 8080}, mode="0644")
    """


file.identity(paths.path_identity)
file.manners = ("validate", "backup", "follow", "replace")


@file.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the whole content only if the node sets it: other nodes may edit the file otherwise."""
    sets = any(attrs.get(name) is not None for name in CONTENT)
    return [] if sets else ["part:path:" + attrs["path"]]


@file.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other or have no effect together."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    sources = [name for name in CONTENT if attrs.get(name) is not None]
    if len(sources) > 1:
        raise ValueError(f"{' and '.join(sources)}: only one of them is allowed")
    if attrs.get("replace") and attrs.get("follow"):
        raise ValueError("replace and follow: only one of them is allowed")
    if attrs.get("vars") and attrs.get("template") is None:
        raise ValueError("vars requires template")
    for name in ("validate", "backup", "replace", "create_only"):
        if attrs.get(name) and not sources:
            raise ValueError(f"{name} requires content, source or template")
    if attrs.get("validate") and not any("{}" in part for part in attrs["validate"]):
        raise ValueError("validate needs {}, which statecfg replaces by the path of the file to check")


@file.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare file type, content, mode and owner with the host."""
    attrs = node.attrs
    path, content = attrs["path"], attrs.get("content")
    if attrs.get("follow"):
        path = paths.followed(world, path)
    stat = paths.look(world, path, determined=content is not None and not attrs.get("create_only"))
    if attrs.get("replace") and stat is not None and stat.file_type == "symlink":
        stat = None
    files.check_type(path, stat, bool(attrs.get("absent")), files.HELP if content is not None else files.FOLLOW)
    if attrs.get("absent"):
        return ActionSpec([paths.remove(path)] if stat is not None else [])
    if stat is None:
        if content is None:
            raise CheckError(f'{path} does not exist and the node has no content; content: "" creates an empty file')
        paths.require_parent(world, path, node, nodes)
    mode = paths.mode_bits(attrs.get("mode"), stat)
    actions = paths.attribute_actions(world, path, stat, mode, node, nodes) if stat is not None else []
    if content is not None and not files.stays(attrs, stat):
        content = Blob.of(content)
        if paths.needs_write(world, path, stat, content, actions, attrs.get("owner")):
            owner, group = paths.owners(world, node, nodes)
            how = attrs.get("backup"), attrs.get("validate"), attrs.get("replace") or None
            known_after = None if attrs.get("replace") else files.link_maker(world, path)
            return ActionSpec([files.write(path, content, mode, owner, group, *how)], known_after=known_after)
    return ActionSpec(actions)


file.to_wire(file_sources.with_content)
file.produces(files.sha256)
file.implemented_by(files)
