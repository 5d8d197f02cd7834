"""The file of a saved plan."""

from __future__ import annotations

import hashlib

import pytest

from statecfg.problems import InvalidInput
from statecfg.run.saved import plan_file
from tests.each import each


def edited(body: str) -> bytes:
    """Return a file with a correct checksum whose first line is followed by a text."""
    head = f'{{"format": "{plan_file.FORMAT}", "version": {plan_file.VERSION}, "statecfg": "1.0", "sha256": "'.encode()
    tail = f'",\n{body}'.encode()
    return head + hashlib.sha256(head + tail).hexdigest().encode() + tail


@each(
    ("body", "why"),
    [
        ('"playbook": "a.yml", "playbook": "b.yml"}', "is damaged: an object contains the key 'playbook' twice"),
        ('"sha256": "0", "playbook": "a.yml"}', "is damaged: an object contains the key 'sha256' twice"),
        ('"created": NaN}', "is damaged: NaN is not JSON"),
        ('"hosts": {}}', "is missing or wrong"),
        ("", "is damaged: Expecting property name"),
    ],
)
def test_an_edited_plan_is_refused(body: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_file.parse(edited(body), "web.plan", "1.0")
    problem = caught.value.problems[0]
    assert why in f"{problem.summary} {problem.detail}"
