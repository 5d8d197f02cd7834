"""The command that a plan shows, and the refusal to ask without a terminal."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from statecfg.cli import next_command, options, session
from statecfg.cli.options import ConnectionOptions, Selection


@click.command()
@options.store_option
def probe(store: str | None) -> None:
    """Print the arguments for the same selection, connection and store."""
    click.echo(" ".join(next_command.apply_arguments("site.yml", Selection(prune=True), ConnectionOptions(user="me"))))


def test_words_contain_the_store_of_the_command_line() -> None:
    run = CliRunner().invoke
    assert run(probe, ["--store", "x.db"]).output == "site.yml --prune -u me --store x.db\n"
    assert run(probe, [], env={"STATECFG_STORE": "x.db"}).output == "site.yml --prune -u me\n"


def test_without_a_terminal_only_apply_mentions_saved_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "interactive", lambda: False)
    with pytest.raises(click.UsageError, match=r"not a terminal\. Pass --yes\.\Z"):
        session.asks(False)
    assert session.asks(True) is False
