"""Settings of Sphinx for the site that script/docs builds from docs/."""

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
INDEXES = (root_doc, "decisions/README", "errors")  # the pages that list others
extensions = ["myst_parser"]
# The anchors that code hosts give to headings, so that the same links work there and on the site.
myst_heading_anchors = 5
suppress_warnings = ["misc.highlighting_failure"]  # the pages of errors show files with mistakes
html_theme = "furo"
html_title = f"statecfg {version}"
html_copy_source = False
html_show_sphinx = html_show_copyright = False
# Everything that a page needs is in the site: it works without a network, and search does too.
html_theme_options = {"top_of_page_buttons": []}

SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n?)*)", re.M)
OUTSIDE = re.compile(r"\[([^]]+)\]\((\.\./[^)]+)\)")
PAGE = re.compile(r"\]\(([\w/-]+)\.md(?:#[^)]*)?\)")


def navigation(index: str) -> str:
    """Return an index with a hidden table of contents for each section: the pages that it links to, in its order."""
    sections = SECTION.findall(index) or [("Pages", index)]
    trees = (
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *dict.fromkeys(PAGE.findall(text)), "```"])
        for title, text in sections
    )
    return "\n\n".join([index, *trees, ""])


def inside(name: str, text: str) -> str:
    """Return a page's text with only the name of each file that it links to and that is not in docs/."""
    page = (ROOT / "docs" / f"{name}.md").parent

    def unlinked(link: re.Match[str]) -> str:
        target = (page / link[2].partition("#")[0]).resolve()
        return link[0] if target.is_relative_to(ROOT / "docs") else link[1]

    return OUTSIDE.sub(unlinked, text)


def read(app: Any, name: str, source: list[str]) -> None:
    """Prepare a page. An index gets the navigation, so that docs/README.md is the only list of pages."""
    source[0] = inside(name, source[0])
    if name in INDEXES:
        source[0] = navigation(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Connect the step above."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
