"""Declare secrets: in environment variables, in files, encrypted, or printed by a program."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from statecfg.graph.later import LaterSecret
from statecfg.graph.opaque import SHORTEST, Secret, recording, would_show_secret
from statecfg.playbook import secret_keys
from statecfg.problems import Problem, collecting, positions, problem, report, reporting, suggest
from statecfg.problems.positions import SourceLocation

__all__ = ["SHORTEST", "Secret", "placeholders", "recording", "secret", "tagged"]

LARGEST = 64 * 1024
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_SOURCES = ("env", "file", "sops", "age", "vault", "command", "generate")
_GENERATED = ("length", "encoding")  # keys for `generate`
_EITHER = "env: NAME, file: PATH, sops: FILE, age: FILE, vault: FILE, command: [PROGRAM, ARGUMENT] or generate: KIND"
_UNKNOWN = "0000-not-available"  # the value of a placeholder for a missing secret

_PLACEHOLDERS: ContextVar[dict[str, None] | None] = ContextVar("names of missing secrets", default=None)


@contextlib.contextmanager
def placeholders() -> Iterator[dict[str, None]]:
    """Replace missing secrets by placeholders in the block, for commands that don't need their values.

    :returns: a map whose keys are the names of the missing secrets
    """
    missing: dict[str, None] = {}
    token = _PLACEHOLDERS.set(missing)
    try:
        yield missing
    finally:
        _PLACEHOLDERS.reset(token)


def secret(
    name: str,
    *,
    env: str | None = None,
    file: str | os.PathLike[str] | None = None,
    sops: str | os.PathLike[str] | None = None,
    age: str | os.PathLike[str] | None = None,
    vault: str | os.PathLike[str] | None = None,
    command: Sequence[str] | None = None,
    generate: Literal["password", "uuid", "key"] | None = None,
    key: str | Sequence[str] | None = None,
    length: int | None = None,
    encoding: Literal["hex", "base64"] | None = None,
) -> Any:
    """Return the secret in an environment variable or a file, encrypted, printed by a program, or made by the host.

    The result is a `Secret`. Its declared type is `Any`, so that type checkers accept it for attributes that take text.
    Pass exactly one of the sources. statecfg reads those after `file` only when something needs the value. The paths of
    `sops`, `age` and `vault` are relative to the file that calls this function.

    :param name: its name in reports
    :param env: the environment variable
    :param file: the file; one line break at its end is not part of the value
    :param sops: a file that the program `sops` encrypted
    :param age: a file that `age` encrypted, or its text in armor
    :param vault: a file that `ansible-vault` encrypted, or the text of an encrypted string
    :param command: a program and its arguments. The value is what it prints, without one line break at its end
    :param generate: each host generates a value of this kind once, and keeps it; see the node type `generate`
    :param key: the value's key, if the source is YAML or JSON: `db.password`, or a list of keys
    :param length: for `generate`: characters of a password, or bytes of a key
    :param encoding: for `generate`: how the bytes of a key are written
    :raises InvalidInput: the secret is missing, too short, or declared wrongly
    """
    location = positions.of_frame(sys._getframe(1))
    sources = {"env": env, "file": file, "sops": sops, "age": age, "vault": vault, "command": command}
    sources["generate"] = generate
    given: dict[str, Any] = {source_type: value for source_type, value in sources.items() if value is not None}
    given = {
        source_type: os.fspath(value) if isinstance(value, os.PathLike) else value
        for source_type, value in given.items()
    }
    if len(given) != 1 or not _valid(given):
        texts = ", ".join(f"`{source_type}`" for source_type in _SOURCES)
        detail = f"secret `{name}` requires one of {texts}"
        report(problem("SC0422", detail, "pass a string to one of them, or a list of strings to `command`", location))
        return Secret("wrong", _UNKNOWN, available=False)
    if key is not None:
        given["key"] = list(key) if isinstance(key, tuple) else key
    given.update((option, value) for option, value in (("length", length), ("encoding", encoding)) if value is not None)
    return _make(name, given, location)


def tagged(tag: str, value: Any, location: SourceLocation, hint: str = "") -> Secret:
    """Return the secret of `!secret {env: X}`, `!secret {vault: FILE}` and so on, or of `!vault`, in YAML.

    :param tag: the tag as it is written
    :param value: the value of the tag
    :param location: the source location of the tag
    :param hint: the name of the variable or attribute, for a secret that has no better name
    """
    if tag == "!vault":
        return _vault_text(value, location, hint)
    keys = value if isinstance(value, dict) else {}
    valid = (*_SOURCES, *_GENERATED, "key", "name")
    unknown = [key for key in keys if key not in valid]
    for key in unknown:
        report(problem("SC0422", f"a secret has no key `{key}`", suggest(key, valid), location))
    source_types = [source_type for source_type in _SOURCES if source_type in keys]
    if (
        len(source_types) != 1
        or not _valid({source_types[0]: keys[source_types[0]]})
        or unknown
        or not _valid_name(keys)
    ):
        if not unknown:  # otherwise one of them is probably the misspelled key
            detail = f"{tag} requires a map with one source of the secret"
            report(problem("SC0422", detail, f"write {tag} with {_EITHER}", location))
        return Secret("wrong", _UNKNOWN, available=False)
    source_type = source_types[0]
    given = {key: item for key, item in keys.items() if key != "name"}
    if source_type == "file" and not os.path.isabs(given["file"]):
        given["file"] = os.path.join(os.path.dirname(location.file), os.path.expanduser(given["file"]))
    return _make(keys.get("name") or _default_name(source_type, given, hint), given, location)


def _valid(given: Mapping[str, Any]) -> bool:
    """Return whether the value of a source has the right type, and contains no other secret: messages show it."""
    ((source_type, value),) = given.items()
    if source_type == "command" and not isinstance(value, (list, tuple)):
        return False
    texts = value if source_type == "command" else [value]
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        return False
    return bool(texts) and bool(texts[0]) and not would_show_secret(list(texts))


def _valid_name(keys: Mapping[str, Any]) -> bool:
    return "name" not in keys or (isinstance(keys["name"], str) and bool(keys["name"]))


def _default_name(source_type: str, given: Mapping[str, Any], hint: str) -> str:
    """Return the name of a secret that has no `name`."""
    if source_type == "env":
        return str(given["env"])
    key = given.get("key")
    if isinstance(key, (str, list)) and key:
        return re.sub(r"[^A-Za-z0-9_.-]", "-", key if isinstance(key, str) else ".".join(map(str, key))).lstrip("-.")
    if source_type == "generate":
        return hint or str(given[source_type])
    if source_type == "command":
        return hint or re.sub(r"[^A-Za-z0-9_.-]", "-", str(given[source_type][-1])).lstrip("-.")
    value = str(given[source_type])
    is_text = "\n" in value  # an encrypted text
    return (hint or source_type) if is_text else os.path.splitext(os.path.basename(value))[0]


def unavailable(name: str, reason: str, help: str, location: SourceLocation) -> Secret:
    """Return a placeholder for a secret that statecfg can't read. Report it, unless placeholders are allowed.

    :param name: its name in reports
    :param reason: why statecfg can't read it
    :param help: what to do
    :param location: the source location of the secret
    """
    missing = _PLACEHOLDERS.get()
    if missing is None:
        report(problem("SC0420", f"secret `{name}`: {reason}", help, location))
    else:
        missing[name] = None
    return Secret(name, _UNKNOWN, available=False)


def _vault_text(value: Any, location: SourceLocation, hint: str) -> Secret:
    from statecfg.playbook import ansible_vault

    if not isinstance(value, str) or not ansible_vault.is_text(value):
        detail = f"!vault requires a string that begins with {ansible_vault.MARK}"
        help_text = "write `!vault |`, then the lines that `ansible-vault encrypt_string` prints"
        report(problem("SC0422", detail, help_text, location))
        return Secret("wrong", _UNKNOWN, available=False)
    return _make(hint or "vault", {"vault": value}, location)


def _make(name: str, given: Mapping[str, Any], location: SourceLocation) -> Secret:
    """Return a secret.

    :param given: its source, and `key` if there is one
    """
    if not NAME.match(name):
        help_text = "use letters, digits, _, - and ., and start with a letter or _"
        report(problem("SC0422", f"`{name}` is not a valid name of a secret", help_text, location))
        return Secret("wrong", _UNKNOWN, available=False)
    key = given.get("key")
    keys = key.split(".") if isinstance(key, str) else [] if key is None else key
    source_type = next(source_type for source_type in _SOURCES if source_type in given)
    if source_type == "generate" or any(option in given for option in _GENERATED):
        return _generated(name, source_type, given, location)
    right = isinstance(keys, list) and all(isinstance(item, str) and item for item in keys)
    if not right or (key is not None and (not keys or source_type in ("env", "file"))):
        help_text = "use `key` with sops, age, vault or command, and write key: NAME.NAME or a list of names"
        report(problem("SC0422", f"secret `{name}`: `key` is not valid here", help_text, location))
        return Secret("wrong", _UNKNOWN, available=False)
    if source_type not in ("env", "file"):
        return _encrypted(name, source_type, given[source_type], tuple(keys), location)
    missing, env, file = _PLACEHOLDERS.get(), given.get("env"), given.get("file")
    if env is not None:
        secret_keys.current().variables.add(str(env))
    if missing is not None and (env not in os.environ if env is not None else not os.path.lexists(str(file))):
        missing[name] = None
        return Secret(name, _UNKNOWN, available=False)
    value, reason, help_text = _from_env(name, str(env)) if env is not None else _from_file(name, str(file))
    if value is None:
        report(problem("SC0420", f"secret `{name}`: {reason}", help_text, location))
    elif len(value) < SHORTEST:
        report(_too_short(name, value, location))
    else:
        return value
    return Secret(name, _UNKNOWN, available=False)


def _generated(name: str, source_type: str, given: Mapping[str, Any], location: SourceLocation) -> Secret:
    """Return a secret that hosts generate."""
    from statecfg.graph import declare, generated
    from statecfg.graph import recording as nodes
    from statecfg.resources import generate

    wrong = [
        option for option in given if (option in _GENERATED) == (source_type != "generate") and option != "generate"
    ]
    if wrong:
        detail = f"secret `{name}`: `{wrong[0]}` is not valid here"
        report(problem("SC0422", detail, "use `length` and `encoding` with `generate`, and nothing else", location))
        return Secret("wrong", _UNKNOWN, available=False)
    attrs = {option: given[option] for option in _GENERATED if option in given}
    attrs["kind"] = given["generate"]
    with nodes.recording(), collecting() as problems, reporting():  # this node itself is not used
        declare.declare_at(generate, [name], attrs, location)
    if problems:
        detail = "; ".join(item.detail for item in problems)
        report(problem("SC0422", f"secret `{name}`: {detail}", problems[0].help, location))
        return Secret("wrong", _UNKNOWN, available=False)
    return generated.GeneratedSecret(name, attrs, location)


def _too_short(name: str, value: Secret, location: SourceLocation) -> Problem:
    detail = f"secret `{name}` has {len(value)} characters; the minimum is {SHORTEST}"
    return problem("SC0421", detail, "use a longer secret: a shorter text can't be masked in output", location)


def _encrypted(name: str, source_type: str, value: Any, key: tuple[str, ...], location: SourceLocation) -> Secret:
    """Return a secret that is read when it is needed. With `placeholders`, return a placeholder and read nothing."""
    from statecfg.playbook import secret_sources  # takes time to import

    directory = os.path.dirname(os.path.abspath(location.file))
    source = secret_sources.SecretSource(
        source_type, "\0".join(value) if source_type == "command" else value, directory, key
    )
    if source_type != "command" and not source.inline:
        path = os.path.abspath(os.path.join(directory, os.path.expanduser(value)))
        source = secret_sources.SecretSource(source_type, path, directory, key)
    ring = secret_keys.current()
    cause = ring.once(("check", source), partial(secret_sources.check, source))
    if cause is not None:
        report(problem("SC0420", f"secret `{name}`: {cause.detail}", cause.help, location))
        return Secret(name, _UNKNOWN, available=False)
    missing = _PLACEHOLDERS.get()
    if missing is None:
        read = partial(_read, ring, name, source, location)
        return ring.once(("secret", name, source, location), partial(LaterSecret, name, read))
    if secret_sources.missing(source):
        missing[name] = None
    return Secret(name, _UNKNOWN, available=False)


def _read(ring: secret_keys.Ring, name: str, source: Any, location: SourceLocation) -> Secret:
    """Return a secret with its value. If it can't be read, report that each time and return a placeholder."""
    from statecfg.playbook import secret_sources

    read = partial(secret_sources.read, ring, name, source, os.path.abspath(location.file))
    found = ring.once(("value", name, source), read)
    if isinstance(found, Secret) and len(found) >= SHORTEST:
        return found
    if isinstance(found, Secret):
        report(_too_short(name, found, location))
    else:
        report(problem("SC0420", f"secret `{name}`: {found.detail}", found.help, location))
    return Secret(name, _UNKNOWN, available=False)


# These functions return secrets and don't report problems, so that no traceback contains a frame with a value.


def _from_env(name: str, env: str) -> tuple[Secret | None, str, str]:
    if env in os.environ:
        return Secret(name, os.environ[env]), "", ""
    return None, f"the environment variable `{env}` is not set", f"set it before the run: {env}=… statecfg …"


def _from_file(name: str, path: str) -> tuple[Secret | None, str, str]:
    help_text = "check the path"
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return None, f"{path} is not a regular file", help_text
            if mode & 0o004:
                return None, f"{path} can be read by everyone (mode {stat.S_IMODE(mode):04o})", f"chmod 0600 {path}"
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return None, f"{path} can't be read: {error.strerror}", help_text
    if len(data) > LARGEST:
        return None, f"{path} is larger than {LARGEST} bytes", help_text
    try:
        return Secret(name, data.decode("utf-8").removesuffix("\n").removesuffix("\r")), "", ""
    except UnicodeDecodeError as error:
        return None, f"{path} is not UTF-8 text at byte offset {error.start}", "save the secret as UTF-8 text"
