"""The plugin for pytest: the fixture `statecfg`, which plans the playbooks of a project on imagined hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from statecfg.testing.definitions import Definitions


@pytest.fixture
def statecfg(request: pytest.FixtureRequest) -> Definitions:
    """Return the playbooks of the project that contains the test: `statecfg.plan("playbooks/web.yml", "web1")`."""
    from statecfg.playbook import project
    from statecfg.testing.definitions import Definitions

    return Definitions(project.find(request.path.parent).root)
