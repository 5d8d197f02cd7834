"""Servers of the corpus: bare host, second apply, drift and destroy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.host.corpus import course


@pytest.mark.parametrize("role", ["nginx", "redis", "docker"])
def test_plans_of_a_role_predict_its_changes(
    role: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("corpus", course.run(role, tmp_path))
