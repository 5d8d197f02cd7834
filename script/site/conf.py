"""Sphinx settings for the site that script/docs builds from docs/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "statecfg"
version = release = PROJECT["version"]
root_doc = "README"
INDEXES = (root_doc, "decisions/README", "errors")  # pages that list other pages
extensions = ["myst_parser"]
# Headings get the same anchors as on code hosts, so that links work there and on the site.
myst_heading_anchors = 5
suppress_warnings = ["misc.highlighting_failure"]  # the pages about errors show files with mistakes
html_theme = "furo"
html_title = f"statecfg {version}"
html_copy_source = False
html_show_sphinx = html_show_copyright = False
# The site contains all files that its pages and its search need, so it works without a network.
html_theme_options = {"top_of_page_buttons": []}

SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n?)*)", re.M)
OUTSIDE = re.compile(r"\[([^]]+)\]\((\.\./[^)]+)\)")
PAGE = re.compile(r"\]\(([\w/-]+)\.md(?:#[^)]*)?\)")


def navigation(index: str) -> str:
    """Return an index with a hidden table of contents for each section, which lists the linked pages in their order."""
    sections = SECTION.findall(index) or [("Pages", index)]
    trees = (
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *dict.fromkeys(PAGE.findall(text)), "```"])
        for title, text in sections
    )
    return "\n\n".join([index, *trees, ""])


def inside(name: str, text: str) -> str:
    """Return the text of a page, in which links to files outside of docs/ are replaced by their names."""
    page = (ROOT / "docs" / f"{name}.md").parent

    def unlinked(link: re.Match[str]) -> str:
        target = (page / link[2].partition("#")[0]).resolve()
        return link[0] if target.is_relative_to(ROOT / "docs") else link[1]

    return OUTSIDE.sub(unlinked, text)


def read(app: Any, name: str, source: list[str]) -> None:
    """Prepare a page. Indexes get the navigation, so docs/README.md remains the only list of pages."""
    source[0] = inside(name, source[0])
    if name in INDEXES:
        source[0] = navigation(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Connect `read` to Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
