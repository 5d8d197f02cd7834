"""The address of the store: parse and check it, and show it without its password."""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from statecfg.problems import InvalidInput, problem
from statecfg.problems.frozen import dataclass

if TYPE_CHECKING:
    from statecfg.playbook.project import Project

VARIABLE = "STATECFG_STORE"
_FORMS = "write a path, sqlite:///PATH or postgresql://USER@HOST:PORT/DATABASE"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True)
class StoreAddress:
    """Where a store is.

    :param label: the address in messages: a path, or a URL without its password and its parameters
    :param path: the SQLite file; None for PostgreSQL
    :param url: the PostgreSQL URL, including the password; "" for SQLite
    :param private: whether the file is in statecfg's own directory, which is created if it does not exist
    """

    label: str
    path: Path | None = None
    url: str = field(default="", repr=False)
    private: bool = False

    def there(self) -> bool:
        """Return whether a store may exist. For SQLite: whether the file exists."""
        return self.path is None or self.path.exists()


def chosen(project: Project | None, url: str | None = None) -> StoreAddress:
    """Return the address to use: the first of `url`, STATECFG_STORE, the project's setting and the default file.

    :raises InvalidInput: the address is invalid
    """
    text = url or os.environ.get(VARIABLE)
    if text:
        return parse(text, Path.cwd())
    if project is not None and project.settings.store is not None:
        return parse(project.settings.store, project.root)
    path = Path(os.path.realpath(default()))
    return StoreAddress(str(path), path, private=True)


def default() -> Path:
    """Return the default file: `statecfg/store.db` in the user's state directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "statecfg/store.db"


def parse(text: str, base: Path) -> StoreAddress:
    """Parse an address.

    :param base: directory that relative paths start at
    :raises InvalidInput: the address is invalid
    """
    scheme = _SCHEME.match(text)
    if scheme is None or "/" in scheme[1]:
        return _file(text, base)
    name = scheme[1].lower()
    if name == "sqlite":
        # As in SQLAlchemy: three slashes precede a relative path, four precede an absolute one.
        return _file(re.sub(r"\A[^:]*:(///)?", "", text, count=1), base)
    if name in ("postgresql", "postgres"):
        return _server(text)
    raise InvalidInput([problem("SC0413", f"statecfg does not support stores with the scheme `{name}:`", _FORMS)])


def _file(text: str, base: Path) -> StoreAddress:
    # The message does not show the text: it may be a mistyped URL with a password.
    if not text or text.startswith((":memory:", "//")) or re.search(r"[\0?\ud800-\udfff]|//.*@", text):
        raise InvalidInput([problem("SC0413", "this is not the path of a file", _FORMS)])
    # Links are resolved: the lock files are beside the file, and all writers must find the same ones.
    path = Path(os.path.realpath(base / os.path.expanduser(text)))
    return StoreAddress(str(path), path)


def _server(text: str) -> StoreAddress:
    # The message does not show a URL that can't be parsed: the password may be anywhere in it.
    invalid = problem("SC0413", "the postgresql URL is invalid", f"{_FORMS}; write @ : / ? # as %40 %3A …")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput([invalid]) from None
    database = parts.path.removeprefix("/")
    if not database or re.search(r"[@/]", database) or parts.fragment or "//" not in text:
        raise InvalidInput([invalid])
    user = f"{unquote(parts.username)}@" if parts.username else ""
    label = f"postgresql://{user}{host}{f':{port}' if port else ''}/{database}"
    return StoreAddress(label, None, "postgresql+psycopg" + text[text.index(":") :])
