"""The server that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.host.server.serving import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server with an empty store."""
    with serving(tmp_path_factory.mktemp("served") / "project") as found:
        yield found
