"""AMP: boxes come back whole, are the bytes that the original's programs send and take, and nothing else is taken."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from statecfg.remote import amp
from statecfg.remote.amp import AmpError, Decoder, encode
from tests.units.tool_scene import Scene

RECORDS = yaml.safe_load((Path(__file__).parent / "amp.yml").read_text())
KEYS = st.text(min_size=1, max_size=60)
BOXES = st.lists(st.dictionaries(KEYS, st.binary(max_size=300), max_size=5), max_size=4)


def shown(record: dict[str, Any]) -> str:
    return f"{record['command']} {record['values']}"


@given(boxes=BOXES, cut=st.integers(1, 70))
def test_boxes_come_back_whole(boxes: list[dict[str, bytes]], cut: int) -> None:
    """Whatever the pieces it arrives in, a box is what it was."""
    data = b"".join(map(encode, boxes))
    decoder, found = Decoder(), []
    for start in range(0, len(data), cut):
        found += decoder.feed(data[start : start + cut])
    assert found == boxes
    assert not decoder.partial


@given(st.binary(max_size=400), st.integers(1, 50))
def test_noise_is_boxes_or_refused(data: bytes, cut: int) -> None:
    decoder, found = Decoder(), []
    try:
        for start in range(0, len(data), cut):
            found += decoder.feed(data[start : start + cut])
    except AmpError:
        return
    assert b"".join(map(encode, found)) + bytes(decoder.buffer) == data


@given(st.text(), st.integers(0, 3 * amp.VALUE_LIMIT))
def test_long_values_are_spread(text: str, size: int) -> None:
    text = (text + "é") * (size // len((text + "é").encode()) + 1)
    box = amp.spread("data", text)
    assert Decoder().feed(encode(box)) == [box]
    assert amp.gather("data", box).decode() == text
    assert amp.gather("other", box) == b""


@pytest.mark.parametrize("size", [0, 1, amp.VALUE_LIMIT])
def test_values_up_to_the_limit(size: int) -> None:
    assert Decoder().feed(encode({"k" * amp.KEY_LIMIT: b"v" * size})) == [{"k" * amp.KEY_LIMIT: b"v" * size}]


REFUSED = {
    "an empty key": {"": "x"},
    "a key too long": {"k" * 256: "x"},
    "a value too long": {"k": "x" * 65536},
    "a box too long": {str(number): "x" * 65535 for number in range(17)},
    "no text": {"k": "\ud800"},
}


@pytest.mark.parametrize("box", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_not_sent(box: dict[str, str]) -> None:
    with pytest.raises(AmpError):
        encode(box)


BAD = {
    "a key too long": b"\x01\x00",
    "a key far too long": b"\xff\xff" + b"x" * 100,
    "a key twice": encode({"k": "1"})[:-2] + encode({"k": "2"}),
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_box_is_refused(data: bytes) -> None:
    with pytest.raises(AmpError):
        Decoder().feed(data)


def test_a_box_without_end_is_refused_early() -> None:
    decoder = Decoder()
    with pytest.raises(AmpError, match="over 1048576 bytes"):
        for number in range(100):
            decoder.feed(encode({str(number): "x" * 60_000})[:-2])
    assert len(decoder.buffer) < 2 * amp.BOX_LIMIT


def test_bytes_that_are_no_text_are_kept() -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    (box,) = Decoder().feed(encode({"k": text}))
    assert box == {"k": b"caf\xe9"}
    assert amp.decode_text(box["k"]) == text


@pytest.mark.parametrize("record", RECORDS, ids=shown)
def test_the_bytes_of_the_original(record: dict[str, Any]) -> None:
    question = {**record["values"], amp.ASK: "1", amp.COMMAND: record["command"]}
    assert encode(question).hex() == record["sent"]
    assert encode(record["answer"]).hex() == record["answered"]
    (answer,) = Decoder().feed(bytes.fromhex(record["answered"]))
    assert {key: value.decode() for key, value in answer.items()} == record["answer"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("place"))
    yield scene
    scene.close()


@pytest.mark.parametrize("record", RECORDS, ids=shown)
def test_our_agent_answers_the_bytes_of_the_original(record: dict[str, Any], scene: Scene) -> None:
    """What the original's tools send, but for the client id, is answered by the bytes that its agent answered.

    The one difference is in the order of a JSON map's keys, which is none.
    """
    sent = bytes.fromhex(record["sent"])
    mine = encode({"client_id": scene.token})[:-2]
    sent = sent.replace(encode({"client_id": "c"})[:-2], mine)
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(scene.agent.path)
        line.sendall(sent)
        answered = line.recv(65536)
    expected = bytes.fromhex(record["answered"])
    if "data" in record["answer"]:
        (box,) = Decoder().feed(answered)
        assert json.loads(box["data"]) == json.loads(record["answer"]["data"])
        box["data"] = record["answer"]["data"].encode()
        answered = encode(box)
    assert answered.hex() == expected.hex()
