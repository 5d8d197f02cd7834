"""Rules for how long the passwords of a user are valid."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, NodeOptions, PublicLine, UserName, node_type
from statecfg.resources.accounts import password_ages
from statecfg.resources.shared import entry_rules


@node_type
def password_aging(
    user: UserName,
    *,
    min_days: int | None = None,
    max_days: int | None = None,
    warn_days: int | None = None,
    inactive_days: int | None = None,
    expires: PublicLine | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage how long the password of a user is valid, and until when the account is.

    Attributes that you omit stay as they are. The defaults for new users are in /etc/login.defs.

    Undo: statecfg restores the former rules. If the user no longer exists, there is nothing to undo.

    :param user: the user
    :param min_days: days that must pass before the user may change the password again
    :param max_days: days after which the user must change the password; -1: never
    :param warn_days: days before that from which on logins show a warning
    :param inactive_days: days after that during which the old password still works; -1: without a limit
    :param expires: the first day on which the user can no longer log in, such as ``2027-01-31``, or ``never``

    In YAML::

        - password_aging: deploy
          max_days: 365
          warn_days: 14

    In Python::

        password_aging("guest", expires="2027-01-31")
    """


@password_aging.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a node without rules, and invalid ones."""
    if all(attrs.get(field) is None for field in password_ages.FIELDS):
        raise ValueError(f"at least one of {', '.join(password_ages.FIELDS)} is required")
    entry_rules.check_ages(attrs)


password_aging.managed_by(password_ages.Ages)
password_aging.logins()
