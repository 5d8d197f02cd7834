"""AMP: boxes survive encoding, match the bytes of the original's programs, and anything else is refused."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecfg.remote.units import amp
from statecfg.remote.units.amp import AmpError, BoxDecoder, encode
from statecfg.remote.units.tools import client as tool_client
from tests.host.units.tool_scene import Scene

RECORDS = json.loads((Path(__file__).parent / "amp_bytes.json").read_text())
KEYS = st.text(min_size=1, max_size=60)
BOXES = st.lists(st.dictionaries(KEYS, st.binary(max_size=300), max_size=5), max_size=4)


@given(boxes=BOXES, cut=st.integers(1, 70))
def test_decoding_restores_encoded_boxes(boxes: list[dict[str, bytes]], cut: int) -> None:
    """A box is decoded correctly however its bytes are cut into pieces."""
    data = b"".join(map(encode, boxes))
    decoder, found = BoxDecoder(), []
    for start in range(0, len(data), cut):
        found += decoder.feed(data[start : start + cut])
    assert found == boxes
    assert not decoder.partial


@given(st.binary(max_size=400), st.integers(1, 50))
def test_random_bytes_are_decoded_exactly_or_refused(data: bytes, cut: int) -> None:
    decoder, found = BoxDecoder(), []
    try:
        for start in range(0, len(data), cut):
            found += decoder.feed(data[start : start + cut])
    except AmpError:
        return
    assert b"".join(map(encode, found)) + bytes(decoder.buffer) == data


@given(st.text(), st.integers(0, 3 * amp.VALUE_LIMIT))
def test_long_values_are_split_and_joined_again(text: str, size: int) -> None:
    text = (text + "é") * (size // len((text + "é").encode()) + 1)
    box = amp.spread("data", text)
    assert BoxDecoder().feed(encode(box)) == [box]
    assert amp.gather("data", box).decode() == text
    assert amp.gather("other", box) == b""


@pytest.mark.parametrize("size", [0, 1, amp.VALUE_LIMIT])
def test_keys_and_values_up_to_the_limit_are_accepted(size: int) -> None:
    assert BoxDecoder().feed(encode({"k" * amp.KEY_LIMIT: b"v" * size})) == [{"k" * amp.KEY_LIMIT: b"v" * size}]


REFUSED = {
    "an empty key": {"": "x"},
    "a key that is too long": {"k" * 256: "x"},
    "a value that is too long": {"k": "x" * 65536},
    "a box that is too large": {str(number): "x" * 65535 for number in range(129)},
    "an unpaired surrogate": {"k": "\ud800"},
}


@pytest.mark.parametrize("box", REFUSED.values(), ids=REFUSED)
def test_encode_refuses_invalid_boxes(box: dict[str, str]) -> None:
    with pytest.raises(AmpError):
        encode(box)


BAD = {
    "a key of 256 bytes": b"\x01\x00",
    "a key of 65535 bytes": b"\xff\xff" + b"x" * 100,
    "a duplicate key": encode({"k": "1"})[:-2] + encode({"k": "2"}),
    "an HTTP request": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_the_decoder_refuses_invalid_bytes(data: bytes) -> None:
    with pytest.raises(AmpError):
        BoxDecoder().feed(data)


def test_the_decoder_refuses_an_endless_box_early() -> None:
    decoder = BoxDecoder()
    with pytest.raises(AmpError, match="over 8388608 bytes"):
        for number in range(200):
            decoder.feed(encode({str(number): "x" * 60_000})[:-2])
    assert len(decoder.buffer) < 2 * amp.BOX_LIMIT


def test_bytes_that_are_not_utf_8_are_kept() -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    (box,) = BoxDecoder().feed(encode({"k": text}))
    assert box == {"k": b"caf\xe9"}
    assert amp.decode_text(box["k"]) == text


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["case"])
def test_recorded_bytes_decode_and_encode_to_the_same(record: dict[str, str]) -> None:
    for data in (bytes.fromhex(record["request"]), bytes.fromhex(record["answer"])):
        (box,) = BoxDecoder().feed(data)
        assert encode(box) == data
        assert encode({key: value.decode() for key, value in box.items()}) == data


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("place"))
    yield scene
    scene.close()


# a recorded case of the original → the call of our tool that sends the same request, and the result of this call
CALLS: dict[str, tuple[list[str], int, str, str]] = {
    "get all settings of a unit (version of 2012)": (
        *(["relation-get", "--format=json", "-", "wordpress/0"], 0, '{"host": "10.0.0.5", "port": "80"}\n', ""),
    ),
    "get settings of a unit outside the relation (version of 2012)": (
        *(["relation-get", "-", "wordpress/9"], 0, ""),
        "relation-get: error: NoSuchUnit: The relation 'db' has no unit state for 'wordpress/9'\n",
    ),
    "set one setting and delete another (version of 2012)": (["relation-set", "a=b", "gone="], 0, "", ""),
    "log without a client id (version of 2012)": (["juju-log", "hi"], 0, "", ""),
    "open a port (version of 2012)": (["open-port", "80"], 0, "", ""),
    "list relations without a name (version of 2012)": (
        *(["relation-ids"], 0, ""),
        "relation-ids: error: MustSpecifyRelationName: Relation name must be specified\n",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_our_tools_send_the_original_agent_the_recorded_bytes(case: str, scene: Scene, tmp_path: Path) -> None:
    (record,) = (record for record in RECORDS if record["case"] == case)
    words, *expected = CALLS[case]
    client = None if words[0] == "juju-log" else "c"
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        listener.settimeout(30)

        def answer() -> None:
            with listener.accept()[0] as line:
                heard.append(line.recv(65536))
                line.sendall(bytes.fromhex(record["answer"]))

        thread = threading.Thread(target=answer)
        thread.start()
        found = scene.call(
            *words, JUJU_AGENT_SOCKET=str(tmp_path / "socket"), JUJU_CLIENT_ID=client, JUJU_RELATION=None
        )
        thread.join(30)
    assert [data.hex() for data in heard] == [record["request"]]
    assert list(found) == expected


def test_a_tool_waits_for_a_busy_agent(tmp_path: Path) -> None:
    """The kernel refuses a connection at once if the agent's queue is full. The tool then tries again."""
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as waiting:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(0)
        listener.settimeout(30)
        others = [waiting.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3)]
        with pytest.raises(BlockingIOError):
            for other in others:
                other.setblocking(False)
                other.connect(str(tmp_path / "socket"))
        found: list[dict[str, bytes]] = []
        thread = threading.Thread(target=lambda: found.append(tool_client.ask(str(tmp_path / "socket"), "x", {})))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        for other in others:
            other.close()
        while thread.is_alive():
            with listener.accept()[0] as line:
                line.settimeout(30)
                if line.recv(65536):
                    line.sendall(encode({"_answer": "1"}))
                    thread.join(30)
        assert found == [{"_answer": b"1"}]
