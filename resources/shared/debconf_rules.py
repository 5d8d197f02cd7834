"""The answers for debconf, as the controller checks and sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show


def check_answers(answers: Mapping[str, Any]) -> None:
    """Check the names of questions.

    :raises Wrong: if one is not valid
    :raises ValueError: if there are none
    """
    if not answers:
        raise ValueError("answers is empty; name at least one question")
    for question in answers:
        if not re.match(r"[A-Za-z0-9][^\s/]*(/[^\s/]+)+\Z", question):
            help = "write names such as postfix/mailname; debconf-show PACKAGE lists them"
            raise Wrong(f"answers: {show(question)} is not the name of a question", help)


def sent(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that the host gets: the `answers` as text, and `passwords`, the questions with secrets."""
    passwords = sorted(question for question, answer in answers.items() if hasattr(answer, "reveal"))
    texts = {question: _text(answer) for question, answer in answers.items()}
    return {"answers": texts, "passwords": passwords or None}


def _text(answer: Any) -> Any:
    if isinstance(answer, bool):
        return "true" if answer else "false"
    if isinstance(answer, str) or hasattr(answer, "reveal"):
        return answer
    return ", ".join(answer)
