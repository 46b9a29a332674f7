"""A message of a board reaches the supervisor only if all that the supervisor reads of it is right."""

import base64
import json
import socket

import pytest

from emulator.session.board import Board
from engine.domain.errors import RunError
from engine.domain.events import to_json
from engine.domain.trace import Mark, Span
from engine.runs.output import LEFT_OUT, MOST_LINES
from engine.worlds.real.pacing import Pacer

PACING = Pacer(None).stats()._asdict()
STATUS = {"question": 0, "waits": True, "waiting_for": ["x from d1"], "sent": {"1": 2}, "received": {}}
TOKEN = {"request": 0, "index": 0, "token": 5, "latency_s": 0.1}


@pytest.fixture
def board(tmp_path):
    theirs, ours = socket.socketpair()
    made = Board(0, "d0", "pi", ours, tmp_path)
    made.slices, made.devices = object(), ("d0", "d1")
    made.say = lambda **message: theirs.sendall(json.dumps(message).encode() + b"\n") or made.receive()
    with theirs, ours:
        yield made


def trace(*items):
    return {"type": "trace", "items": to_json(items)}


RIGHT = [
    {"type": "status", **STATUS},
    {"type": "finished", "pacing": PACING},
    {"type": "suspect", "rank": 1, "last_byte_s": None},
    trace(Mark(1.0, "token_emitted", "d0", TOKEN), Mark(1.0, "of_a_method", "d0", {"any": None})),
    trace(Span("d0", "send", "x", -1, 0.0, 1.0, peer="d1")),
]


@pytest.mark.parametrize("message", RIGHT)
def test_what_a_device_process_says_is_passed_on_as_it_is(board, message):
    assert board.say(**message) == [json.loads(json.dumps(message))]


LIES = {
    "status with a wrong sent": {"type": "status", **STATUS, "sent": None},
    "status with a wrong received": {"type": "status", **STATUS, "received": {"d1": 3}},
    "status with a wrong waits": {"type": "status", **STATUS, "waits": "x"},
    "finished with a wrong pacing": {"type": "finished", "pacing": {}},
    "stuck with a wrong pacing": {"type": "stuck", "pacing": PACING | {"errors": ["x"]}},
    "a suspicion of no device": {"type": "suspect", "rank": 10**9, "last_byte_s": None},
    "trace with a wrong items": trace(Mark(1.0, "token_emitted", "d0", {})),
    "with a wrong items": trace(Mark(1.0, "token_emitted", "d0", TOKEN | {"token": -1})),
    "a wrong items": trace(Mark(1.0, "classified", "d0", {"request": 0, "classes": [{"label": "x"}]})),
    "wrong items": trace(Mark(1.0, "replanned", "d0", {"plan": {}})),
    "items": trace(Span("d0", "compute", "x", 0, float("nan"), 1.0)),
    "not of its device": trace(Mark(1.0, "memory", "d1", {"peak_bytes": 1})),
    "or with a peer that is none": trace(Span("d0", "recv", "x", -1, 0.0, 1.0)),
    "message trace with a wrong items": trace(Span("d0", "send", "x", -1, 0.0, 1.0, 10**300, peer="d1")),
    "a peer that is none": trace(Span("d0", "send", "x", -1, 0.0, 1.0, peer="d7")),
}


@pytest.mark.parametrize("words", LIES)
def test_who_leaves_out_what_is_read_is_named_with_a_sentence(board, words):
    with pytest.raises(RunError, match=f"^Board pi says what no device process does: .*{words}.*\\.$"):
        board.say(**LIES[words])


def test_fields_that_nobody_checks_are_not_passed_on(board):
    assert board.say(type="ready", port="evil", pacing=3) == [{"type": "ready"}]


def test_of_all_lines_the_first_ones_are_shown_as_of_a_device_here(board):
    (first,) = board.say(type="log", lines=["x"] * (MOST_LINES - 1))
    (second,) = board.say(type="log", lines=["y" * 9000] * 3)
    assert len(first["lines"]) == MOST_LINES - 1
    assert len(second["lines"][0]) < 1000 and second["lines"][1:] == [LEFT_OUT]
    assert board.say(type="log", lines=["z"]) == []


def test_a_trace_without_an_end_is_ended(board, monkeypatch):
    monkeypatch.setattr("emulator.session.board.MOST_TRACE_BYTES", 1 << 20)
    part = trace(*[Mark(1.0, "of_a_method", "d0", {"any": "x" * 1000})] * 100)
    with pytest.raises(RunError, match=r"more than 1 MiB of trace\.$"):
        for _ in range(11):
            board.say(**part)


def test_no_file_comes_before_the_plan(board, tmp_path):
    file = {
        "type": "file",
        "start": 0,
        "name": "outputs.safetensors",
        "data": base64.b64encode(b"x").decode(),
    }
    board.slices = None
    with pytest.raises(RunError, match="a file before it has a part of the plan"):
        board.say(**file)
    assert not list(tmp_path.iterdir())


def test_a_file_that_begins_anew_takes_the_place_of_what_came_before_a_halt(board, tmp_path):
    for start, data in ((0, b"before"), (0, b"af"), (2, b"ter")):
        board.say(
            type="file",
            name="outputs.safetensors",
            start=start,
            data=base64.b64encode(data).decode(),
        )
    assert (tmp_path / "outputs.safetensors").read_bytes() == b"after"


def test_what_a_board_refuses_later_ends_the_run_with_its_sentence(board):
    """It cannot keep the slices of a new plan, say: it is past its first one."""
    board.state = "halted"
    (said,) = board.say(type="refused", sentence="This board cannot keep the slices.")
    assert (said["type"], said["message"]) == ("error", "This board cannot keep the slices.")
