"""Where the store is: an address as people write it, checked, and shown without its password."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from statecfg.problems import InvalidInput, problem

if TYPE_CHECKING:
    from statecfg.playbook.project import Project

VARIABLE = "STATECFG_STORE"
_FORMS = "write a path, sqlite:///PATH or postgresql://USER@HOST:PORT/DATABASE"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True)
class Address:
    """Where a store is.

    :param shown: as messages name it: a path, or a URL without its password and its parameters
    :param path: the SQLite file; None for PostgreSQL
    :param url: the PostgreSQL URL, password and all; "" for SQLite
    :param private: whether the file lies in our own directory, which is made when missing
    """

    shown: str
    path: Path | None = None
    url: str = field(default="", repr=False)
    private: bool = False

    def there(self) -> bool:
        """Tell whether there may be a store: a file that is not there has yet to be made."""
        return self.path is None or self.path.exists()


def chosen(project: Project | None, url: str | None = None) -> Address:
    """Return the address that counts: `url`, else STATECFG_STORE, the project's setting, the default file.

    Raises InvalidInput where that is no address.
    """
    text = url or os.environ.get(VARIABLE)
    if text:
        return parse(text, Path.cwd())
    if project is not None and project.settings.store is not None:
        return parse(project.settings.store, project.root)
    path = Path(os.path.realpath(default()))
    return Address(str(path), path, private=True)


def default() -> Path:
    """Return the file used when nothing else is said: `statecfg/store.db` in the user's state directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "statecfg/store.db"


def parse(text: str, base: Path) -> Address:
    """Return the address that a text means; relative paths start at `base`. Raises InvalidInput."""
    scheme = _SCHEME.match(text)
    if scheme is None or "/" in scheme[1]:
        return _file(text, base)
    name = scheme[1].lower()
    if name == "sqlite":
        # As SQLAlchemy has it: three slashes and a relative path, or four and an absolute one.
        return _file(re.sub(r"\A[^:]*:(///)?", "", text, count=1), base)
    if name in ("postgresql", "postgres"):
        return _server(text)
    raise InvalidInput([problem("SC0413", f"there is no store of the kind `{name}`", _FORMS)])


def _file(text: str, base: Path) -> Address:
    # It is not shown: it may be a URL that lost a sign, password and all.
    if not text or text.startswith((":memory:", "//")) or re.search(r"[\0?\ud800-\udfff]|//.*@", text):
        raise InvalidInput([problem("SC0413", "this is not the path of a file", _FORMS)])
    # Links are followed: the turns lie beside the file, and all who write it have to find the same ones.
    path = Path(os.path.realpath(base / os.path.expanduser(text)))
    return Address(str(path), path)


def _server(text: str) -> Address:
    # What can't be taken apart is not shown: the password may stand anywhere in it.
    wrong = problem("SC0413", "the postgresql URL can't be taken apart", f"{_FORMS}; write @ : / ? # as %40 %3A …")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput([wrong]) from None
    database = parts.path.removeprefix("/")
    if not database or re.search(r"[@/]", database) or parts.fragment or "//" not in text:
        raise InvalidInput([wrong])
    user = f"{unquote(parts.username)}@" if parts.username else ""
    shown = f"postgresql://{user}{host}{f':{port}' if port else ''}/{database}"
    return Address(shown, None, "postgresql+psycopg" + text[text.index(":") :])
