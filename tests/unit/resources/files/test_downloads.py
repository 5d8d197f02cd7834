"""URLs with secrets: the host checks them, and no message shows a part of one."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.resources.files.downloads.downloads import Download
from tests.each import each

HOW: dict[str, Any] = {"headers": None, "proxy": None, "ca": None, "timeout": 5.0}
CHECKSUM = "sha256:" + "0" * 64


@each(
    ("url", "checksum", "reason"),
    [
        ("https://user:first:second@127.0.0.1/", CHECKSUM, "without a user or a password"),
        ("http://second@127.0.0.1/", CHECKSUM, "without a user or a password"),
        ("ftp://127.0.0.1/second", CHECKSUM, "must begin with https:// or http://"),
        ("file:///etc/second", CHECKSUM, "must begin with https:// or http://"),
        ("http://127.0.0.1/second", None, "content over http can be changed on the network"),
        ("https://127.0.0.1:second/", CHECKSUM, "the URL is not valid"),
    ],
)
def test_a_url_with_a_secret_is_checked_before_it_is_used(url: str, checksum: str | None, reason: str) -> None:
    with pytest.raises(LookupError) as caught:
        list(Download(url, checksum, HOW, "/").chunks())
    assert reason in str(caught.value) and "second" not in str(caught.value)
