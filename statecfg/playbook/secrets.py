"""Where secrets come from: environment variables and files."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from statecfg.graph.opaque import SHORTEST, Secret, recording
from statecfg.problems import positions, problem, report, suggest
from statecfg.problems.positions import SourceLocation

__all__ = ["SHORTEST", "Secret", "placeholders", "recording", "secret", "tagged"]

LARGEST = 64 * 1024
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_UNKNOWN = "0000-not-available"  # stands for a value that was reported as missing

_PLACEHOLDERS: ContextVar[dict[str, None] | None] = ContextVar("secrets that stand for missing ones", default=None)


@contextlib.contextmanager
def placeholders() -> Iterator[dict[str, None]]:
    """Let something else stand for secrets that are not here, for what needs no values; gather their names."""
    missing: dict[str, None] = {}
    token = _PLACEHOLDERS.set(missing)
    try:
        yield missing
    finally:
        _PLACEHOLDERS.reset(token)


def secret(name: str, *, env: str | None = None, file: str | os.PathLike[str] | None = None) -> Any:
    """Return the secret that an environment variable or a file holds.

    The result is a `Secret`. It is typed as `Any`, so that type checkers accept it for each attribute that takes text.

    :param name: what reports call it
    :param env: the environment variable; or
    :param file: the file; one line break at its end is not part of the value
    :raises InvalidInput: it is not there, too short, or declared wrongly
    """
    return _make(name, env, None if file is None else os.fspath(file), positions.of_frame(sys._getframe(1)))


def tagged(tag: str, value: Any, place: SourceLocation) -> Secret:
    """Return the secret of a `!secret {env: X}` or `!secret {file: path}` in YAML, where `place` is."""
    given = value if isinstance(value, dict) else {}
    for key in given:
        if key not in ("env", "file", "name"):
            report(problem("SC0422", f"a secret has no key `{key}`", suggest(key, ("env", "file", "name")), place))
    texts = {key: item for key, item in given.items() if isinstance(item, str) and item}
    if ("env" in texts) == ("file" in texts) or len(texts) != len(given):
        detail = f"{tag} takes a map with either env or file"
        report(problem("SC0422", detail, f"write {tag} {{env: NAME}} or {tag} {{file: PATH}}", place))
        return Secret(str(texts.get("name", "wrong")), _UNKNOWN, available=False)
    path = texts.get("file")
    if path is not None and not os.path.isabs(path):
        path = os.path.join(os.path.dirname(place.file), os.path.expanduser(path))
    stem = os.path.splitext(os.path.basename(path or ""))[0]
    return _make(texts.get("name") or texts.get("env") or stem, texts.get("env"), path, place)


def _make(name: str, env: str | None, file: str | None, place: SourceLocation) -> Secret:
    if not NAME.match(name) or (env is None) == (file is None):
        detail = f"`{name}` is no name" if not NAME.match(name) else "it takes either env or file"
        report(problem("SC0422", detail, "use letters, digits, _, - and ., and one of env and file", place))
        return Secret("wrong", _UNKNOWN, available=False)
    missing = _PLACEHOLDERS.get()
    if missing is not None and (env not in os.environ if env is not None else not os.path.lexists(str(file))):
        missing[name] = None
        return Secret(name, _UNKNOWN, available=False)
    found, wrong, cure = _from_env(name, str(env)) if env is not None else _from_file(name, str(file))
    if found is not None and len(found) < SHORTEST:
        detail = f"secret `{name}` has {len(found)} characters; {SHORTEST} are the least"
        report(problem("SC0421", detail, "use a longer one: so short a text can't be masked in output", place))
    elif found is not None:
        return found
    else:
        report(problem("SC0420", f"secret `{name}`: {wrong}", cure, place))
    return Secret(name, _UNKNOWN, available=False)


# These return secrets and report nothing, so that no frame that holds a value is ever part of a traceback.


def _from_env(name: str, env: str) -> tuple[Secret | None, str, str]:
    if env in os.environ:
        return Secret(name, os.environ[env]), "", ""
    return None, f"the environment variable `{env}` is not set", f"set it before the run: {env}=… statecfg …"


def _from_file(name: str, path: str) -> tuple[Secret | None, str, str]:
    cure = "check the path"
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return None, f"{path} is no regular file", cure
            if mode & 0o004:
                return None, f"{path} can be read by everyone (mode {stat.S_IMODE(mode):04o})", f"chmod 0600 {path}"
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return None, f"{path} can't be read: {error.strerror}", cure
    if len(data) > LARGEST:
        return None, f"{path} is larger than {LARGEST} bytes", cure
    try:
        return Secret(name, data.decode("utf-8").removesuffix("\n").removesuffix("\r")), "", ""
    except UnicodeDecodeError as error:
        return None, f"{path} is no UTF-8 text at byte offset {error.start}", cure
