"""Control frames between the controller and a worker."""

from __future__ import annotations

import pytest

from statecfg.engines.channel import CONTROL, ChannelEnded, EngineFrame, message
from tests.each import each


def test_a_control_frame_is_a_json_object() -> None:
    assert message(EngineFrame(CONTROL, 0, b'{"type": "beat"}')) == {"type": "beat"}


@each("payload", [b'{"type": "beat", "type": "open"}', b'{"credit": NaN}', b"[1]", b"\xff", b"", b"[" * 100_000])
def test_any_other_control_frame_ends_the_channel(payload: bytes) -> None:
    with pytest.raises(ChannelEnded, match="not a JSON object"):
        message(EngineFrame(CONTROL, 0, payload))
