"""Read secrets from environment variables and files."""

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


def secret(name: str, *, env: str | None = None, file: str | os.PathLike[str] | None = None) -> Any:
    """Return the secret in an environment variable or a file.

    The result is a `Secret`. Its declared type is `Any`, so that type checkers accept it for attributes that take text.

    :param name: its name in reports
    :param env: the environment variable; pass either this or `file`
    :param file: the file; one line break at its end is not part of the value
    :raises InvalidInput: the secret is missing, too short, or declared wrongly
    """
    return _make(name, env, None if file is None else os.fspath(file), positions.of_frame(sys._getframe(1)))


def tagged(tag: str, value: Any, location: SourceLocation) -> Secret:
    """Return the secret of `!secret {env: X}` or `!secret {file: path}` in YAML.

    :param tag: the tag as it is written
    :param value: the value of the tag
    :param location: the source location of the tag
    """
    keys = value if isinstance(value, dict) else {}
    unknown = [key for key in keys if key not in ("env", "file", "name")]
    for key in unknown:
        report(problem("SC0422", f"a secret has no key `{key}`", suggest(key, ("env", "file", "name")), location))
    texts = {key: item for key, item in keys.items() if isinstance(item, str) and item}
    if ("env" in texts) == ("file" in texts) or len(texts) != len(keys):
        detail = f"{tag} requires a map with either env or file"
        if not unknown:  # otherwise one of them is probably the misspelled key
            report(problem("SC0422", detail, f"write {tag} {{env: NAME}} or {tag} {{file: PATH}}", location))
        return Secret(str(texts.get("name", "wrong")), _UNKNOWN, available=False)
    path = texts.get("file")
    if path is not None and not os.path.isabs(path):
        path = os.path.join(os.path.dirname(location.file), os.path.expanduser(path))
    stem = os.path.splitext(os.path.basename(path or ""))[0]
    return _make(texts.get("name") or texts.get("env") or stem, texts.get("env"), path, location)


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


def _make(name: str, env: str | None, file: str | None, location: SourceLocation) -> Secret:
    if not NAME.match(name) or (env is None) == (file is None):
        if NAME.match(name):
            report(problem("SC0422", f"secret `{name}` requires either env or file", "pass one of them", location))
        else:
            help_text = "use letters, digits, _, - and ., and start with a letter or _"
            report(problem("SC0422", f"`{name}` is not a valid name of a secret", help_text, location))
        return Secret("wrong", _UNKNOWN, available=False)
    missing = _PLACEHOLDERS.get()
    if missing is not None and (env not in os.environ if env is not None else not os.path.lexists(str(file))):
        missing[name] = None
        return Secret(name, _UNKNOWN, available=False)
    value, reason, help_text = _from_env(name, str(env)) if env is not None else _from_file(name, str(file))
    if value is not None and len(value) < SHORTEST:
        detail = f"secret `{name}` has {len(value)} characters; the minimum is {SHORTEST}"
        report(problem("SC0421", detail, "use a longer secret: a shorter text can't be masked in output", location))
    elif value is not None:
        return value
    else:
        report(problem("SC0420", f"secret `{name}`: {reason}", help_text, location))
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
