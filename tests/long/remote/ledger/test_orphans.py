"""The order of removal of random nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecfg.remote.ledger.ledger import Ledger
from tests.unit.remote.ledger.test_orphans import enter, look, names, row


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from("abcdefgh"))))
def test_each_node_is_removed_once_and_after_its_dependents(requires: dict[str, set[str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(place)
        enter(ledger, *[row(name, f"path:/{name}", requires=sorted(of)) for name, of in requires.items()])
        layers = names(look(ledger).to_remove)
        ledger.close()
    flat = [name for layer in layers for name in layer]
    assert sorted(flat) == sorted(requires)
    at = {name: number for number, layer in enumerate(layers) for name in layer}
    for name in requires:
        for needed in requires[name] & set(requires) - {name}:
            assert at[name] < at[needed] or at[name] == at[needed] == len(layers) - 1
