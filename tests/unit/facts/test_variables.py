"""Variables that definitions read."""

from __future__ import annotations

import pytest

from statecfg.facts.variables import UnknownVariable, Vars
from statecfg.graph.opaque import Secret


def test_an_unknown_variable_is_explained_with_names_and_without_values() -> None:
    """Names of variables and secrets are public: masks show them, too."""
    variables = Vars({"db_password": Secret("db", "hunter2 hunter2"), "port": 5432})
    with pytest.raises(UnknownVariable) as caught:
        variables["db_pasword"]
    assert "db_password" in str(caught.value)
    for text in (str(caught.value), repr(caught.value), repr(variables)):
        assert "hunter2" not in text and "5432" not in text
