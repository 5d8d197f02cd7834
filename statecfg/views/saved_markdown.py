"""A saved plan as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.views import markdown, saved


def text(plan: Mapping[str, Any], statecfg: str, limit: int = markdown.LIMIT) -> str:
    """Return a saved plan as GitHub-flavored Markdown of at most `limit` characters.

    :param statecfg: the version of statecfg that made the plan
    """
    said = saved.origin(plan, statecfg)
    foot = "".join(["\n", *(f"- {label}: {markdown.code(value[:2000])}\n" for label, value in said)])
    return markdown.text(saved.report(plan), limit - len(foot)) + foot
