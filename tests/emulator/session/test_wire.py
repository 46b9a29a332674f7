"""A session's errors arrive as what they were."""

import socket

import pytest

from emulator.session.wire import JsonLines, error_from_json, error_to_json
from engine.domain.errors import Cancelled, EdgeLoomError, HostError, PeerFailed, PlanError, SpecError


@pytest.mark.parametrize(
    "error",
    [
        SpecError("links[0] is wrong.", [("links[0]", "wrong")]),
        PlanError("No plan."),
        HostError("No tc."),
        PeerFailed("b died.", "b", 1.5),
        Cancelled("Stopped."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_class_sentence_and_facts(error: EdgeLoomError) -> None:
    again = error_from_json(error_to_json(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_messages_survive_any_cut_of_the_stream() -> None:
    ours, theirs = socket.socketpair()
    lines = JsonLines(ours)
    with ours, theirs:
        theirs.sendall(b'{"a": 1}\n{"b"')
        assert lines.receive(1.0) == [{"a": 1}]
        assert lines.receive(0) == []
        theirs.sendall(b": 2}\n")
        assert lines.receive(1.0) == [{"b": 2}]
        assert not lines.closed
        theirs.close()
        assert lines.receive(1.0) == []
        assert lines.closed
