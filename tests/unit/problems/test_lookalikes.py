"""Names and paths: statecfg refuses control characters and reports lookalike characters."""

from __future__ import annotations

import pytest

from statecfg.graph import graph, layers
from statecfg.problems import InvalidInput
from statecfg.problems.lookalikes import lookalikes
from statecfg.resources import directory, file
from tests.each import each


@each(
    ("char", "says"),
    [("\n", "line break (U+000A)"), ("\r", "line break (U+000D)"), ("\x1b", "control character (U+001B)"),
     ("\x7f", "control character (U+007F)"), ("\x9b", "control character (U+009B)"), ("\u2028", "line break (U+2028)")],
)  # fmt: skip
def test_control_characters_in_paths_are_refused_with_their_code_point(char: str, says: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        file(f"/etc/a{char}b", content="x")
    (problem,) = wrong.value.problems
    assert says in problem.detail and char not in problem.detail
    with pytest.raises(InvalidInput):
        file("/etc/a", content="x", provides=f"a{char}b")


@each(
    ("text", "says"),
    [
        (
            "file:/etc/\u202efdp.exe",
            ["U+202E (RIGHT-TO-LEFT OVERRIDE) changes the direction in which the text is shown"],
        ),
        ("file:/etc/p\u0430sswd", ["the word `p\u0430sswd` mixes Latin letters with U+0430 (CYRILLIC SMALL LETTER A)"]),
        ("file:/srv/\u041c\u043e\u0441\u043a\u0432\u0430/index", []),
        ("file:/srv/Zürich/日本語/naïve", []),
    ],
)
def test_lookalikes_are_named_with_their_code_point(text: str, says: list[str]) -> None:
    assert list(lookalikes(text)) == says


def test_graph_with_too_many_layers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MAX_LAYERS", 10)

    def chain(length: int) -> graph.Graph:
        found = directory("/0")
        for number in range(1, length):
            found = directory(f"/{number}", requires=[found])
        return found

    assert len(layers.layers(chain(10))) == 10
    with pytest.raises(InvalidInput, match="1 nodes remain after 10 layers"):
        layers.layers(chain(11))
