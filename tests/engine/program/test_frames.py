"""A message's header survives its way as bytes, and refuses what its fields cannot hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import EdgeLoomError
from engine.program.frames import DTYPES, FRAME_HEADER_BYTES, FrameHeader, pack_note, unpack_note

HEADER = FrameHeader(7, 48, (0, -1), 1.25, 2.5, "float32", (2, 6), "layer-3", 2, 255)
LONG = st.integers(-(2**63), 2**63 - 1)


@given(
    st.builds(
        FrameHeader,
        message=st.integers(0, 2**62),
        payload_bytes=st.integers(0, 2**62),
        request_token=st.tuples(st.integers(-1, 2**30), st.integers(-1, 2**30)),
        sent_s=st.floats(0, 1e9),
        due_s=st.floats(0, 1e9),
        dtype=st.sampled_from(DTYPES),
        shape=st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple),
        tag=st.text("abé-9", max_size=20),
        note_size=st.integers(0, 255),
        epoch=st.integers(0, 255),
        sequence=st.integers(0, 2**32 - 1),
        changes=st.integers(0, 2**16 - 1),
    )
)
def test_a_header_comes_back_as_it_was_packed(header):
    packed = header.pack()
    assert len(packed) == FRAME_HEADER_BYTES
    assert FrameHeader.unpack(packed + b"body") == header


@given(st.lists(LONG, max_size=255))
def test_a_note_comes_back_as_it_was_packed(note):
    body = bytearray(pack_note(tuple(note)) + b"tensor")
    assert unpack_note(HEADER._replace(note_size=len(note)), body) == tuple(note)


def test_the_body_is_eight_bytes_per_integer_of_the_note_and_the_tensor():
    assert HEADER.body_bytes == 2 * 8 + 48
    assert len(pack_note((1, 2))) == 16


@pytest.mark.parametrize(
    "wrong", [{"tag": "x" * 41}, {"tag": "é" * 21}, {"shape": (1,) * 6}, {"note_size": 256}]
)
def test_what_no_frame_can_carry_is_refused_by_its_sender(wrong):
    with pytest.raises(EdgeLoomError, match="a frame carries tags up to 40 bytes"):
        HEADER._replace(**wrong).pack()
