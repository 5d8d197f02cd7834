"""The rooms: each package is listed, described in the docs, and part of an installation."""

from __future__ import annotations

import ast
import re
import tomllib

from tests import ROOT as CHECKOUT
from tests.each import each
from tests.unit.sources import DATA, FILES, ROOMS, ROOT, SUB_PACKAGES, module_name, parsed, part

PACKAGES = [room for room in ROOMS if room != "__main__"]


def test_every_package_is_a_room_or_a_listed_part_of_one() -> None:
    """A package that is not listed would count as its room, without a decision about its floor."""
    packages = {module_name(path).removeprefix("statecfg.") for path in FILES if path.name == "__init__.py"}
    assert packages - {"statecfg"} == {*PACKAGES, *SUB_PACKAGES}


def section(title: str) -> str:
    """Return a section of the page about the architecture."""
    page = (CHECKOUT / "docs/architecture.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_docs_have_a_row_for_each_room_and_its_parts_in_the_order_of_the_floors() -> None:
    rows = [row.replace("/", ".") for row in re.findall(r"^\| `([\w/]+)/` \|", section("Rooms"), flags=re.M)]
    expected = [name for room in PACKAGES for name in (room, *inside(room))]
    assert rows == expected


def inside(room: str) -> list[str]:
    """Return the listed packages and directories of a room, sorted by name."""
    found = [name for name in (*SUB_PACKAGES, *DATA) if part(f"statecfg.{name}") == room]
    return sorted(found)


def test_the_docs_name_existing_rooms_for_each_document() -> None:
    table = section("Rooms").partition("\n| document |")[2]
    patterns = re.findall(r"`([\w/*]+)`", table)
    assert len(patterns) >= 30
    assert [one for one in patterns if not list(ROOT.glob(one.rstrip("/"))) and not list(ROOT.glob(f"{one}.py"))] == []


@each("room", PACKAGES)
def test_every_room_has_a_docstring_about_its_purpose(room: str) -> None:
    assert len(docstring(room).splitlines()[0]) > 30, room


@each("room", PACKAGES)
def test_the_docstring_of_a_room_says_what_it_may_import(room: str) -> None:
    sentence = r"\b(Imports|May import|It may import) (nothing|every|all|only|the (same|rooms|packages)|`)"
    assert len(re.findall(sentence, docstring(room).replace("\n", " "))) == 1, room


def docstring(room: str) -> str:
    return ast.get_docstring(parsed(ROOT.joinpath(*room.split("."), "__init__.py"))) or ""


def test_an_installation_contains_every_package() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    assert listed == sorted(module_name(path) for path in FILES if path.name == "__init__.py")
