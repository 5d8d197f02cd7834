"""Secrets leave no trace in what is shown, however they are spelled."""

from __future__ import annotations

import base64
import html
import json
import shlex
from urllib.parse import quote, quote_plus

import pytest

from statecfg.views.redact import Redactor

SECRETS = {
    "plain": "correct horse battery",
    "quotes": 'it\'s "quoted" & <odd>',
    "percent": "100%s{x}$HOME",
    "unicode": "pässwörd-日本",
    "lines": "-----BEGIN KEY-----\nMIIabcdefghijk\n-----END KEY-----\n",
    "long": "k" * 4096,
    "short": "abcd",
}
SPELLINGS = {
    "raw": str,
    "json": lambda s: json.dumps(s)[1:-1],
    "json-utf8": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "repr": lambda s: repr(s)[1:-1],
    "shell": shlex.quote,
    "url": quote,
    "form": quote_plus,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "html": html.escape,
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_taken_out(name, spelling):
    spelled = SPELLINGS[spelling](SECRETS[name])
    shown = Redactor(SECRETS).text(f"before {spelled} after")
    assert spelled not in shown
    assert f"<secret {name}>" in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_lines_of_a_key_are_taken_out_of_a_diff():
    shown = Redactor(SECRETS).data({"diff": "@@ -0,0 +1 @@\n+MIIabcdefghijk\n", "n": 1, "list": ["abcd", None]})
    assert shown == {"diff": "@@ -0,0 +1 @@\n+<secret lines>\n", "n": 1, "list": ["<secret short>", None]}


def test_of_two_the_longer_one_wins():
    assert Redactor({"a": "token", "b": "token-two"}).text("token-two token") == "<secret b> <secret a>"


def test_without_secrets_data_is_the_same():
    data = {"a": ["b"]}
    assert Redactor({}).data(data) is data
