"""The server and the browser that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.host.server.browser import browsing
from tests.host.server.serving import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server with an empty store."""
    with serving(tmp_path_factory.mktemp("served") / "project") as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a running browser."""
    with browsing() as program:
        yield program
