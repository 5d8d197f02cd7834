"""Settings of Redis: the line in the file, the running value, the op that changes it, and the undo."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.masks import mask
from statecfg.remote.graph.model import CONCEALED, Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.shared import entries, line_edits, records, text_files, utf8

if TYPE_CHECKING:
    from statecfg.resources.shared.lines import RemovedLine

    class RedisMemory(line_edits.LineMemory):
        """The memory of a `redis_setting`. `value` is the running value; None if it is unknown or a password."""

        value: str | None


PASSWORDS = ("masterauth", "requirepass", "tls-client-key-file-pass", "tls-key-file-pass")
# Lines that contain passwords, also those of access lists and of Sentinel.
_SECRET = re.compile(rf"[ \t]*(?i:{'|'.join(PASSWORDS)}|user|sentinel[ \t]+[a-z-]+-pass)[ \t]")
EMPTY = (*PASSWORDS, "masteruser", "notify-keyspace-events", "slaveof", "replicaof", "unixsocket", "logfile", "bind")
LISTS = ("bind", "oom-score-adj-values", "replicaof", "save", "slaveof")  # each has several arguments in its line
_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3}
NO_ANSWER, NO_LOGIN = 2, 3  # exit statuses of the program

# A separate process talks to the server, because checks must not open connections. Passwords and values are on its
# standard input, where other users can't see them. It prints the value as JSON, null if there is no such setting.
# Protocol: RESP 2.
PROGRAM = """\
import json, socket, sys
address, name = sys.argv[1:]
wanted = json.load(sys.stdin)
def ask(*words):
    parts = [word.encode() for word in words]
    stream.write(b"*%d\\r\\n" % len(parts) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(part), part) for part in parts))
    stream.flush()
    return answer()
def answer():
    line = stream.readline().rstrip(b"\\r\\n")
    reply_type, rest = line[:1], line[1:]
    if reply_type == b"-":
        raise ValueError(rest.decode("utf-8", "replace"))
    if reply_type == b"$":
        return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2].decode("utf-8", "replace")
    if reply_type == b"*":
        return [answer() for _ in range(int(rest))]
    if reply_type not in (b"+", b":"):
        raise OSError("the server is not a Redis server")
    return rest.decode()
def fail(status, text):
    print(str(text).replace("\\n", " "), file=sys.stderr)
    sys.exit(status)
def log_in():
    user = [wanted["user"]] if wanted["user"] else []
    if not user:
        try:
            ask("PING")
            return
        except ValueError as problem:
            if not str(problem).startswith("NOAUTH"):
                raise
    for password in wanted["passwords"]:
        try:
            ask("AUTH", *user, password)
            return
        except ValueError as problem:
            if not str(problem).startswith(("WRONGPASS", "ERR invalid password")):
                raise
    fail(3, "the server refuses the password" if wanted["passwords"] else "the server needs a password")
try:
    if address.startswith("/"):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(10)
        peer.connect(address)
    else:
        peer = socket.create_connection(("127.0.0.1", int(address)), 10)
    stream = peer.makefile("rwb")
    log_in()
    if wanted["value"] is not None:
        ask("CONFIG", "SET", name, wanted["value"])
    else:
        found = ask("CONFIG", "GET", name)
        print(json.dumps(found[1] if found else None))
except OSError as problem:
    fail(2, problem)
except ValueError as problem:
    fail(1, problem)
"""


@facet("redis", volatile=True)
def planned(host: World) -> dict[str, records.Fields]:
    """Load nothing: only a login shows the values. The facet has those that nodes of the run set."""
    return {}


def command(address: str, name: str) -> list[str]:
    """Return the program that reads or sets a setting of the server at an address: a port or the path of a socket."""
    return [sys.executable, "-I", "-S", "-c", PROGRAM, address, name]


def _address(attrs: records.Attrs) -> str:
    return str(attrs.get("socket") or attrs["port"])


def _key(name: str, address: str) -> str:
    return f"{name} on {address}"


def _order(login: Mapping[str, Any], value: str | None = None) -> bytes:
    return json.dumps({**login, "value": value}).encode()


def _login(attrs: records.Attrs) -> Mapping[str, Any]:
    """Return the user, and the passwords to try. `requirepass` is the new password, or the present one already."""
    passwords = [attrs.get("password"), attrs.get("value") if attrs["name"] == "requirepass" else None]
    return {"user": attrs.get("user"), "passwords": [each for each in passwords if each and not secretive(each)]}


def text(value: object) -> str:
    """Return a value as the server shows it, except for units."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


# Settings that are one word of a list, in upper or lower case.
WORDS = ("appendfsync", "loglevel", "maxmemory-policy", "sanitize-dump-payload", "syslog-facility")


def same(name: str, now: str, wanted: str) -> bool:
    """Return whether a running value is the wanted one. The server shows sizes in bytes, and flags in its own order."""
    if name in PASSWORDS:
        return now == wanted
    if name == "notify-keyspace-events":
        return _events(now) == _events(wanted)
    if name in WORDS and now.lower() == wanted.lower():
        return True
    if _number(wanted) is not None and _number(now) == _number(wanted):
        return True
    return now.split() == wanted.split() or (wanted.lower() in ("yes", "no") and now == wanted.lower())


def _events(flags: str) -> set[str]:
    """Return the single flags of `notify-keyspace-events`, where `A` means most of them. Source: redis.conf."""
    return {each for flag in flags for each in ("g$lshzxetd" if flag == "A" else flag)}


def _number(value: str) -> int | None:
    found = re.match(r"(-?[0-9]+)([kmg]?b?)\Z", value.lower())
    return int(found.group(1)) * _UNITS[found.group(2)] if found is not None else None


def line(name: str, value: str) -> str:
    """Return the line of a setting. Source: the comments in redis.conf, and sdssplitargs in Redis' sds.c."""
    plain = re.match(r"[A-Za-z0-9_./:@%+=,~^*!-]+\Z", value) and name not in PASSWORDS
    if plain or (name in LISTS and value):
        return f"{name} {value}"
    return '%s "%s"' % (name, value.replace("\\", "\\\\").replace('"', '\\"'))


def _entry(node: HostNode) -> HostNode:
    attrs = node.attrs
    match = rf"^\s*(?i:{re.escape(attrs['name'])})\s"
    return entries.entry(node, attrs["path"], line(attrs["name"], text(attrs.get("value"))), match)


@op(mutex="redis")
def set_running(
    machine: Machine, name: str, address: str, value: str, login: records.Fields, was: str | None
) -> Result:
    """Change a setting of a running server.

    :param was: the former value, for the report; None for a password
    """
    effect = {"redis": {_key(name, address): {"value": value}}}
    result = machine.run(command(address, name), effect, input=_order(login, value))
    lines = (result.get("log") or "").strip().splitlines()
    return result if result["status"] == "ok" or not lines else error(f"{name}: {lines[-1]}", result["log"])


def _ask(attrs: records.Attrs, world: World, **options: Any) -> Probe:
    return world.probe(command(_address(attrs), attrs["name"]), input=_order(_login(attrs)), **options)


def running(attrs: records.Attrs, world: World) -> str | None:
    """Return the running value; None if the server has no such setting.

    :raises Unknown: if a required node may start the server
    :raises CheckError: if it does not answer, or refuses the login
    """
    address = _address(attrs)
    entry = world.entry("redis", _key(attrs["name"], address))
    if entry is not None:
        return str(entry["value"])
    probe = _ask(attrs, world, inputs=("redis", []))
    if probe.status:
        probe = _ask(attrs, world)  # a required node may still start the server, or set the password
    if probe.status:
        message = (probe.errors.decode("utf-8", "replace").strip().splitlines() or ["no answer"])[-1]
        help = {NO_ANSWER: "require the service that starts it", NO_LOGIN: "write password, and user if it needs one"}
        advice = help.get(probe.status)
        raise CheckError(f"the Redis server on {address}: {message}{'; ' + advice if advice else ''}")
    found: str | None = json.loads(probe.text)
    return found


def _conceal(text: str) -> None:
    """Conceal the lines of a file that contain passwords in diffs."""
    for each in text.split("\n"):
        if _SECRET.match(each):
            CONCEALED.update(part.strip() for part in each.splitlines())


def _without_passwords(memory: line_edits.LineMemory) -> line_edits.LineMemory:
    """Return a memory without the passwords in lines of the file."""

    def mark(neighbor: Sequence[Any] | None) -> Sequence[Any] | None:
        secret = neighbor is not None and neighbor[0] is not None and _SECRET.match(neighbor[0])
        return [None, *neighbor[1:]] if neighbor is not None and secret else neighbor

    was: list[RemovedLine] = []
    for entry in memory["lines"]:
        kept: RemovedLine = {**entry, "above": mark(entry["above"]), "below": mark(entry["below"])}
        if _SECRET.match(entry["text"]):
            kept["text"], kept["secret"] = "", True
        was.append(kept)
    last = memory["last"]
    return {**memory, "lines": was, "last": None if last is not None and _SECRET.match(last) else last}


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the line of the file and the running value with the wanted value.

    :raises CheckError: if the file has several lines with the setting, or the server does not know it
    """
    attrs, name = node.attrs, node.attrs["name"]
    if world.apparent(attrs["path"]) is None and world.is_known(attrs["path"]):
        if attrs.get("absent"):
            return []
        raise CheckError(f"file {attrs['path']} does not exist; require the package of the server")
    actions = entries.check(_entry(node), nodes, world)
    content = utf8.text(world, attrs["path"])
    _conceal(content)
    found = _lines(name, content)
    if found > 1 and not attrs.get("absent"):
        raise CheckError(f"{attrs['path']} has {found} lines with {name}; keep one of them")
    if attrs.get("absent") or attrs.get("running") is False:
        return actions
    now, wanted = running(attrs, world), text(attrs["value"])
    if now is None:
        raise CheckError(f"this version of Redis has no setting {name}")
    if not same(name, now, wanted):
        # First the server: with a value that it refuses in the file, it would not start again.
        actions.insert(0, _set(attrs, wanted, now))
    return actions


def _lines(name: str, content: str) -> int:
    return len(re.findall(rf"^[ \t]*(?i:{re.escape(name)})[ \t]", content, re.M))


def _set(attrs: records.Attrs, value: str, was: str) -> Action:
    secret = attrs["name"] in PASSWORDS
    return set_running(attrs["name"], _address(attrs), value, _login(attrs), None if secret else was)


def remember(node: HostNode, world: World) -> RedisMemory:
    """Record the lines of the setting and its running value; of a password, only whether there was one."""
    attrs, now = node.attrs, None
    if attrs.get("running") is not False and not attrs.get("absent"):
        now = running(attrs, world)
    known = now is not None and (attrs["name"] not in PASSWORDS or not now)
    return {**_without_passwords(entries.remember(_entry(node), world)), "value": now if known else None}


def undo(node: HostNode, memory: RedisMemory, world: World) -> ActionSpec:
    """Restore the former line and the former running value. A running value that others have changed stays."""
    attrs: dict[str, Any] = {**node.attrs, **getattr(node, "secret_attrs", {})}
    name, was = attrs["name"], memory["value"]
    path, hidden = memory["path"], _without_passwords(memory)
    stat = world.stat(path)
    content = text_files.content(world, path) if stat is not None and stat.file_type == "file" else ""
    _conceal(content)
    # A ledger of 0.4.0 has a mask in place of the line.
    if any(entry.get("secret") or entry["text"] == mask("line") for entry in hidden["lines"]):
        there = bool(_lines(name, content))
        if attrs.get("absent") and there:
            return ActionSpec()
        message = f"the line of {name} in {path} {'stays' if there else 'is not restored'}"
        if not attrs.get("absent") and attrs.get("running") is not False:
            message += ", and the running value stays"
        return ActionSpec(left=[message + ": statecfg does not record passwords"])
    spec = entries.undo(_entry(node), hidden, world)
    if attrs.get("absent") or attrs.get("running") is False:
        return spec
    if was is None:
        text_left = f"the running value of {name} stays: statecfg does not record passwords"
        spec.left += [text_left] if name in PASSWORDS else []
        return spec
    if _ask(attrs, world).status == NO_ANSWER:  # it reads the file when it starts
        return spec
    try:
        now = running(attrs, world)
    except CheckError as problem:
        spec.left.append(f"the running value of {name} stays: {problem}")
        return spec
    if now is None or same(name, now, was):
        return spec
    if same(name, now, text(attrs["value"])):
        spec.actions.append(_set(attrs, was, now))
    else:
        shown = "was changed" if name in PASSWORDS else f"is now {now}"
        spec.left.append(f"the running value of {name} {shown}: it stays")
    return spec
