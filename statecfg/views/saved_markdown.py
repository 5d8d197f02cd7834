"""A saved plan as Markdown for a pull request."""

from __future__ import annotations

from statecfg.run.saved.model import SavedPlan
from statecfg.views import markdown, saved


def text(plan: SavedPlan, statecfg: str, limit: int = markdown.LIMIT) -> str:
    """Return a saved plan as GitHub-flavored Markdown of at most `limit` characters.

    :param statecfg: the version of statecfg that made the plan
    """
    origin = saved.origin(plan, statecfg)
    foot = "".join(["\n", *(f"- {label}: {markdown.code(value[:2000])}\n" for label, value in origin)])
    return markdown.text(saved.report(plan), limit - len(foot)) + foot
