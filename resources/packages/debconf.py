"""Answers to the questions that Debian packages ask during their installation."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Line, NodeOptions, PackageName, PublicLine, node_type
from statecfg.resources.packages import debconf_answers, debconf_rules


@node_type
def debconf(
    package: PackageName,
    *,
    answers: dict[str, bool | list[PublicLine] | Line] | None = None,
    passwords: dict[str, Line] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Answer the questions of a Debian package in advance.

    A ``package`` node of the same name automatically requires the answers. A package reads them when it is installed or
    configured again; changed answers alone don't change an installed package.

    Packages delete passwords after they have read them, so statecfg sets `passwords` only until the package is
    installed. It passes all answers through stdin, and no plan or report shows a password.

    Undo: statecfg restores the former answers, and removes the questions that had no answers before. It does not store
    passwords: a changed password stays changed.

    :param package: the package that asks
    :param answers: the name of the question → text, true or false, or a list for several choices
    :param passwords: the name of a question for a password → the password; a secret

    In YAML::

        - debconf: postfix
          answers:
            postfix/main_mailer_type: Internet Site
            postfix/mailname: mail.example.org
            postfix/chattr: false

    In Python::

        debconf("unattended-upgrades", answers={"unattended-upgrades/enable_auto_updates": True})
    """


@debconf.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the questions, and the answers for the package."""
    questions = [*(attrs.get("answers") or ()), *(attrs.get("passwords") or ())]
    return ["answers:" + attrs["package"].partition(":")[0], *("debconf:" + name for name in questions)]


@debconf.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the answers as debconf stores them, and turn the passwords into secrets."""
    answers, passwords = node.attrs.get("answers") or {}, node.attrs.get("passwords") or {}
    texts = {question: debconf_rules.text(answer) for question, answer in answers.items()}
    hidden = {question: context.secret("debconf-" + question, value) for question, value in passwords.items()}
    return node.with_attrs(answers=texts, passwords=hidden)


debconf.needs([])  # the answers come before the package
debconf.validate(debconf_rules.check_answers)
debconf.implemented_by(debconf_answers)
