"""Digests of secrets in saved plans: salted, slow, and of no use for guessing a secret quickly."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from statecfg.run.saved import digests

SECRET = "canary-of-the-database"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace scrypt by a quick function, and give the arguments of its calls."""
    calls: list[dict[str, Any]] = []

    def scrypt(password: bytes, **arguments: Any) -> bytes:
        calls.append({"password": password, **arguments})
        return hashlib.sha256(arguments["salt"] + password).digest()

    monkeypatch.setattr(hashlib, "scrypt", scrypt)
    return calls


def test_a_secret_has_another_digest_in_each_plan() -> None:
    one, two = (digests.of_secrets({"TOKEN": SECRET})["TOKEN"] for _ in range(2))
    assert one["salt"] != two["salt"] and one["scrypt"] != two["scrypt"]
    for recorded in (one, two):
        assert digests.is_secret(SECRET, recorded) and not digests.is_secret(SECRET + "x", recorded)
        salt = bytes.fromhex(recorded["salt"])
        wanted = hashlib.scrypt(SECRET.encode(), salt=salt, n=1 << 14, r=8, p=1, maxmem=64 << 20, dklen=32)
        assert recorded["scrypt"] == wanted.hex()


def test_each_secret_has_a_random_salt_of_16_bytes(quick: list[dict[str, Any]]) -> None:
    found = [recorded for _ in range(50) for recorded in digests.of_secrets({"a": SECRET, "b": SECRET}).values()]
    salts = {bytes.fromhex(recorded["salt"]) for recorded in found}
    assert len(salts) == 100 and min(map(len, salts)) >= 16
    for at in range(16):  # no byte of the salt is fixed
        assert len({salt[at] for salt in salts}) > 16
    assert [call["salt"] for call in quick] == [bytes.fromhex(recorded["salt"]) for recorded in found]


def test_each_guess_at_a_secret_costs_at_least_what_owasp_requires(quick: list[dict[str, Any]]) -> None:
    recorded = digests.of_secrets({"TOKEN": SECRET})["TOKEN"]
    assert digests.is_secret(SECRET, recorded)
    assert len(quick) == 2
    for call in quick:
        assert call["password"] == SECRET.encode() and call["dklen"] >= 32
        assert call["n"] >= 1 << 14 and call["r"] >= 8 and call["p"] >= 1
