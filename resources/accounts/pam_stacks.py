"""Lines of PAM in /etc/pam.d: their check, the op that edits them, the snapshot, the undo, and the guard.

Source: pam.d(5). The lines of one type in a file are a stack, and their order matters.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.remote.wire.channel import Channel
from statecfg.resources.network import firewall_guard
from statecfg.resources.shared import lines, paths, records, text_files

DIRECTORY = "/etc/pam.d"
TYPES = ("auth", "account", "password", "session")
KEYWORDS = ("required", "requisite", "sufficient", "optional", "include", "substack")
ACTIONS = ("ignore", "bad", "die", "ok", "done", "reset")
# Debian's directories contain one for the architecture.
MODULES = ("/lib/security", "/lib64/security", "/usr/lib/security", "/usr/lib64/security", "/lib", "/usr/lib")
GENERATED = "pam-auth-update"
_ENTRY = re.compile(r"\s*(-?)(\w+)\s+(\[(?:[^\]\\]|\\.)*\]|\S+)\s+(\S+)\s*(.*?)\s*\Z")


def line_of(attrs: records.Attrs) -> str:
    """Return the line of a node."""
    words = [
        "[%s]" % word.replace("]", "\\]") if re.search(r"[\s\[\]]", word) else word
        for word in attrs.get("arguments") or ()
    ]
    mark = "-" if attrs.get("optional_module") else ""
    return " ".join([mark + attrs["module_type"], attrs["control"], attrs["module"], *words])


def path_of(attrs: records.Attrs) -> str:
    """Return the path of a service's file."""
    return posixpath.join(DIRECTORY, attrs["service"])


def parsed(line: str) -> tuple[str, str, str, str] | None:
    """Return type, control, module and arguments of a line; None for a comment, and for anything else."""
    found = _ENTRY.match(re.sub(r"(?<!\\)#.*", "", lines.bare(line)))
    return (found[2].lower(), found[3], found[4], found[5]) if found is not None else None


def _stack(text: str, module_type: str) -> list[tuple[str, tuple[str, str, str, str] | None]]:
    """Return the lines of a stack, each with its parts; None for one that includes a file."""
    stack: list[tuple[str, tuple[str, str, str, str] | None]] = []
    for line in lines.split(text):
        entry = parsed(line)
        if line.startswith("@include"):
            stack.append((line, None))
        elif entry is not None and entry[0] == module_type:
            stack.append((line, entry))
    return stack


def problem(text: str) -> str:
    """Return why PAM can't read a file; "" if it can."""
    for number, line in enumerate(lines.split(text), 1):
        bare = lines.bare(line).strip()
        if not bare or bare.startswith("#") or re.match(r"@include\s+\S+\s*\Z", bare):
            continue
        if bare.endswith("\\"):
            return f"line {number} continues on the next line; write it as one line"
        entry = parsed(line)
        if entry is None or entry[0] not in TYPES or not _valid(entry[1]):
            return f"line {number} is not a line of PAM: {bare}"
    return ""


def _valid(control: str) -> bool:
    if not control.startswith("["):
        return control.lower() in KEYWORDS
    pairs = [pair.partition("=") for pair in control[1:-1].split()]
    return bool(pairs) and all(sign and (action in ACTIONS or action.isdigit()) for _, sign, action in pairs)


def _jumps(text: str, module_type: str) -> dict[str, list[str]]:
    """Return where the lines of a stack jump to: line → the next line after each jump, "" for the end of the stack.

    :raises ValueError: with a message, if one jumps beyond the end
    """
    stack = _stack(text, module_type)
    found: dict[str, list[str]] = {}
    for at, (line, entry) in enumerate(stack):
        for number in re.findall(r"=(\d+)", entry[1]) if entry is not None and entry[1].startswith("[") else ():
            end = at + 1 + int(number)
            if end > len(stack):
                raise ValueError(f"`{lines.bare(line).strip()}` skips {number} lines, and fewer follow")
            found.setdefault(line, []).append(stack[end][0] if end < len(stack) else "")
    return found


def change_refused(before: str, after: str, module_type: str, changed: str | None = None) -> str:
    """Return why a change of a file is refused; "" if it is allowed.

    :param changed: the line that the change adds or replaces; its own jumps may change
    """
    why = problem(after)
    if why:
        return why
    if _stack(before, module_type) and not _stack(after, module_type):
        return f"no line of the type {module_type} would be left, and PAM would refuse every user"
    try:
        old, new = _jumps(before, module_type), _jumps(after, module_type)
    except ValueError as why_not:
        return str(why_not)
    stays = set(lines.split(after))
    for line, ends in new.items():
        # A jump to a line that the change replaces leads to the new line.
        same = [lines.bare(end) if not end or end in stays else changed for end in old.get(line, ())]
        if lines.bare(line) != changed and line in old and same != [lines.bare(end) for end in ends]:
            text = "`%s` would skip other lines than now; change its number first, or put the line elsewhere"
            return text % lines.bare(line).strip()
    return ""


@op(mutex="lines")
def edit_stack(
    machine: Machine,
    path: str,
    module_type: str,
    remove: list[str],
    line: str | None = None,
    after: str | None = None,
    before: str | None = None,
) -> Result:
    """Remove lines, and put a line into the stack, in one write. PAM uses it from the next login on.

    :param after: the module after whose last line the new line goes
    :param before: the module before whose first line it goes; default: in place of the removed line, or at the end
    """
    text = text_files.content(machine, path)
    new = edited(text, module_type, remove, line, after, before)
    why = change_refused(text, new, module_type, line)
    if why:
        return error(f"{path} stays as it is: {why}")
    return machine.write(path, text_files.encoded(machine, path, new))


@op(mutex="lines")
def restore_stack(
    machine: Machine,
    path: str,
    module_type: str,
    line: str | None,
    was: list[lines.RemovedLine],
    moved: bool = False,
) -> Result:
    """Take the node's line away, and put the former lines back in their positions, in one write.

    :param moved: whether the node may have moved the line
    """
    text = text_files.content(machine, path)
    new = undone(text, line, was, moved)
    why = change_refused(text, new, module_type)
    if why:
        return error(f"{path} stays as it is: {why}")
    return machine.write(path, text_files.encoded(machine, path, new))


def edited(
    text: str, module_type: str, remove: Sequence[str], line: str | None, after: str | None, before: str | None
) -> str:
    """Return the text with lines removed and a line put in (see `edit_stack`)."""
    all_lines = lines.split(text)
    gone = [at for at, each in enumerate(all_lines) if lines.bare(each) in remove]
    rest = [each for at, each in enumerate(all_lines) if at not in gone]
    if line is None:
        return "".join(rest)
    neighbor = after or before
    matching = [at for at, each in enumerate(rest) if neighbor and _is(each, module_type, neighbor)]
    if matching:
        at = matching[-1] + 1 if after else matching[0]
    elif gone:
        at = gone[0]
    else:
        own = [at for at, each in enumerate(rest) if _is(each, module_type, "")]
        at = own[-1] + 1 if own else len(rest)
    end = lines.line_ends(all_lines)
    if at and not lines.line_end(rest[at - 1]):
        rest[at - 1] += end
    return "".join([*rest[:at], line + end, *rest[at:]])


def undone(text: str, line: str | None, was: Sequence[lines.RemovedLine], moved: bool) -> str:
    """Return the text without the node's line, and with the former lines (see `restore_stack`)."""
    if line is not None and (moved or all(entry["text"] != line for entry in was)):
        text = lines.without_line(text, line)
    return lines.lines_undone(text, was, None)


def _is(line: str, module_type: str, module: str) -> bool:
    """Return whether a line belongs to a stack, and to a module if one is given."""
    entry = parsed(line)
    return entry is not None and entry[0] == module_type and module in ("", entry[2], posixpath.basename(entry[2]))


def _mine(text: str, attrs: records.Attrs) -> list[str]:
    """Return the lines of the node's module."""
    mine = [lines.bare(each) for each in lines.split(text) if _is(each, attrs["module_type"], attrs["module"])]
    control = attrs.get("control")
    return (
        [each for each in mine if control is None or (parsed(each) or ("", ""))[1] == control]
        if attrs.get("absent")
        else mine
    )


def _is_positioned(text: str, attrs: records.Attrs) -> bool:
    """Return whether the node's line is there, and at its position."""
    stack = [lines.bare(line) for line, _ in _stack(text, attrs["module_type"])]
    line = line_of(attrs)
    if " ".join(line.split()) not in [" ".join(each.split()) for each in stack]:
        return False
    at = [" ".join(each.split()) for each in stack].index(" ".join(line.split()))
    for word, right in (("after", lambda index: index < at), ("before", lambda index: index > at)):
        module = attrs.get(word)
        indexes = [index for index, each in enumerate(stack) if module and _is(each, attrs["module_type"], module)]
        if module and not all(map(right, indexes)):
            return False
    return True


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the line with the wanted one.

    :raises CheckError: if the service has no file, the host has no such module, or the change would break the stack
    """
    attrs, path = node.attrs, path_of(node.attrs)
    wanted = HostNode(node.provides, node.type, node.requires, {**attrs, "path": path})
    path, stat = text_files.target(wanted, nodes, world, "put the line into its content")
    if stat is None:
        if attrs.get("absent"):
            return []
        raise CheckError(f"{path} does not exist; require the package of the service")
    text, line = text_files.content(world, path), None if attrs.get("absent") else line_of(attrs)
    mine = _mine(text, attrs)
    if (line is None and not mine) or (line is not None and _is_positioned(text, attrs)):
        return []
    if GENERATED in text and not attrs.get("edit_generated"):
        help = "write a profile into /usr/share/pam-configs, and a command that runs `pam-auth-update --package`"
        raise CheckError(f"pam-auth-update generates {path}: {help}; edit_generated: true edits it anyway")
    if line is not None:
        _require_neighbors(text, attrs, path, mine)
        _require_module(world, attrs)
    where = (attrs.get("after"), attrs.get("before"))
    why = change_refused(text, edited(text, attrs["module_type"], mine, line, *where), attrs["module_type"], line)
    if why:
        raise CheckError(f"{path} can't be changed: {why}")
    return [edit_stack(path, attrs["module_type"], mine, line, *where)]


def _require_neighbors(text: str, attrs: records.Attrs, path: str, mine: Sequence[str]) -> None:
    if len(mine) > 1:
        help = "use line_in_file for one of several lines"
        raise CheckError(f"{path} has {len(mine)} lines for {attrs['module_type']} {attrs['module']}; {help}")
    for word in ("after", "before"):
        module = attrs.get(word)
        if module and not any(_is(each, attrs["module_type"], module) for each in lines.split(text)):
            raise CheckError(f"{path} has no line for {attrs['module_type']} {module}, which {word} names")


def _require_module(world: World, attrs: records.Attrs) -> None:
    """Check that the module exists: PAM refuses every user if a required one does not.

    :raises CheckError: if it does not exist
    """
    module = attrs["module"]
    if attrs.get("optional_module"):
        return
    if attrs["control"] in ("include", "substack"):
        found = world.stat(posixpath.join(DIRECTORY, module)) is not None
    elif module.startswith("/"):
        found = world.stat(module) is not None
    else:
        found = any(world.stat(posixpath.join(above, module)) is not None for above in _directories(world))
    if not found:
        raise CheckError(f"this host has no module {module}; require its package, or write optional_module: true")


def _directories(world: World) -> list[str]:
    found = []
    for above in MODULES:
        stat = world.stat(above)
        if stat is None or above.endswith("security"):
            found += [above] if stat is not None else []
        else:
            names = [name for name in world.listdir(above) if "-linux-" in name]
            found += [posixpath.join(above, name, "security") for name in names]
    return found


def remember(node: HostNode, world: World) -> records.Fields:
    """Record the lines of the module, with their positions."""
    path = paths.followed(world, path_of(node.attrs))
    text = text_files.content(world, path) if world.stat(path) is not None else ""
    all_lines, mine = lines.split(text), _mine(text, node.attrs)
    return {"was": lines.taken_out(all_lines, {at for at, each in enumerate(all_lines) if lines.bare(each) in mine})}


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Remove the node's line, and put the former ones back. A line that others have changed stays."""
    attrs, path, was = node.attrs, paths.followed(world, path_of(node.attrs)), memory["was"]
    if world.stat(path) is None:
        return ActionSpec()
    text, line = text_files.content(world, path), None if attrs.get("absent") else line_of(attrs)
    mine = _mine(text, attrs)
    foreign = [each for each in mine if each != line and all(entry["text"] != each for entry in was)]
    if foreign:
        return ActionSpec(left=[f"another change of {path} stays: {foreign[0]}"])
    there = [lines.bare(each) for each in lines.split(text)]
    back = bool(was) and all(entry["text"] in there for entry in was)
    if line is not None and line not in there and not back:
        text = f"{path}: others have changed or removed the line of this node: what is there now stays"
        return ActionSpec(left=[] if world.acted else [text])
    moved = bool(line is not None and (attrs.get("after") or attrs.get("before")) and _is_positioned(text, attrs))
    if undone(text, line, was, moved) == text:
        return ActionSpec()
    return ActionSpec([restore_stack(path, attrs["module_type"], line, was, moved)])


def guard(
    machine: RealMachine, channel: Channel, remote: bool, warnings: list[str], nodes: Sequence[HostNode]
) -> firewall_guard.ChangeGuard:
    """Return the guard of the nodes' files (see `NodeType.guard`)."""
    stack_paths = sorted({path_of(node.attrs) for node in nodes if node.type == "pam"})

    def record() -> Callable[[], list[str]]:
        return firewall_guard.files(machine, stack_paths)

    watched = firewall_guard.Watched(("pam",), record, what="the lines of PAM")
    return firewall_guard.ChangeGuard(channel, remote, warnings, watched)
