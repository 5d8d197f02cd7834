"""The answers for debconf, as the controller checks and sends them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show
from statecfg.resources.shared import item_rules, records


def questions(attrs: records.Attrs) -> list[str]:
    """Return the names of all questions of a node."""
    return [*(attrs.get("answers") or ()), *(attrs.get("passwords") or ())]


def check_answers(attrs: records.Attrs) -> None:
    """Check the names of questions.

    :raises Wrong: if one is not valid, or an answer is a secret
    :raises ValueError: if there are none, or a question has two answers
    """
    names = questions(attrs)
    if not names:
        raise ValueError("answers or passwords is required; name at least one question")
    for question in names:
        if not re.match(r"[A-Za-z0-9][^\s/\0]*(/[^\s/\0]+)+\Z", question):
            help = "write names such as postfix/mailname; debconf-show PACKAGE lists them"
            raise Wrong(f"{show(question)} is not the name of a question", help)
        if names.count(question) > 1:
            raise ValueError(f"{question} is in answers and in passwords")
    for question, answer in (attrs.get("answers") or {}).items():
        if hasattr(answer, "reveal"):
            raise PublicSecret(f"move {question} to `passwords`", "answers")
        if not isinstance(answer, (bool, str)):
            item_rules.check_answers(question, answer)


def text(answer: bool | str | Sequence[str]) -> str:
    """Return an answer as debconf stores it."""
    if isinstance(answer, bool):
        return "true" if answer else "false"
    return answer if isinstance(answer, str) else ", ".join(answer)
