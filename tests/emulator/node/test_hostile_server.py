"""What a server says that is none of ours: a board refuses it in a sentence, and does nothing else."""

from __future__ import annotations

import errno
import json
import resource
import socket
import threading
from pathlib import Path

import pytest

from emulator.node import board_process
from emulator.node.board_process import BoardProcess
from emulator.session.boards import _without_places
from emulator.session.wire import JsonLines
from engine.domain.errors import RunError
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.runs.predict import prepare
from tests.support.boards import bound
from tests.support.small_cases import spec_of, star

MODEL, _ = catalogue.resolve("tiny-llama", "random")
MOST_BYTES = 1 << 20
PATIENCE_S = 60.0


@pytest.fixture
def answers(tmp_path: Path, monkeypatch):
    """What a board's process says to what it is told, until the server hangs up."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(board_process, "use_host_kernels", lambda: None)  # it forks, and here are threads

    def told(text: bytes) -> list[dict]:
        ours, theirs = socket.socketpair()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        process = BoardProcess(JsonLines(theirs, MOST_BYTES), "127.0.0.1", 1 << 20, 1 << 40)
        ours.settimeout(PATIENCE_S)
        with ours, theirs:
            talking = threading.Thread(target=tell, args=(ours, text), daemon=True)
            talking.start()
            reading = threading.Thread(target=process.run, args=(tmp_path,), daemon=True)
            reading.start()
            said = b""
            while b"refused" not in said:
                piece = ours.recv(1 << 16)
                assert piece, said
                said += piece
            talking.join()
            ours.shutdown(socket.SHUT_RDWR)
            reading.join()
        assert process.child is None, "nothing was started"
        assert resource.getrlimit(resource.RLIMIT_FSIZE) == limit, "nor prepared in this process"
        return [json.loads(line) for line in said.splitlines()]

    return told


def tell(sock: socket.socket, text: bytes) -> None:
    sock.sendall(text)


def assignment(**other: object) -> bytes:
    spec = bound(spec_of("megatron", MODEL, star((1e8,) * 2)))
    message = {
        "type": "assign",
        "rank": 0,
        "spec": _without_places(spec, is_played=False).model_dump(mode="json"),
        "plan": prepare(spec).plan.model_dump(mode="json"),
        "requests": [],
        "key": "00" * 32,
        "ahead_s": 0.0,
        "files": [],
        "paced": False,
        "beside": [0],
        "memory_bytes": 1 << 33,
        "given": [[0, 1, 1e9, 1e-4, 0.0]],
    }
    return json.dumps(message | other).encode() + b"\n"


def with_spec(**other: object) -> bytes:
    spec = bound(spec_of("megatron", MODEL, star((1e8,) * 2)))
    return assignment(spec=spec.model_copy(update=other).model_dump(mode="json"))


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b"17\n",
        b'{"kind": "assign"}\n',
        b'{"type": "probe", "key": "no hex", "address": "127.0.0.1", "port": 1}\n',
        b'{"type": "probe", "key": "00", "address": ["127.0.0.1"], "port": 1e99}\n',
        b'{"type": "be_probed", "key": 7}\n',
        assignment(rank="the first"),
        assignment(rank=2),
        assignment(rank=-1),
        assignment(ahead_s="NaN"),
        assignment(files=[["a" * 64]]),
        assignment(files=[["../../../etc/passwd", 3]]),
        assignment(key=None),
        assignment(files=[["a" * 64, 3]]),
        assignment(beside="all"),
        assignment(memory_bytes=None),
        assignment(given=[[0, 7, 1e9, 1e-4, 0.0]]),
        assignment(given=[[0, 1, -1e9, 1e-4, 0.0]]),
        assignment(given=[[0, 1, 1e9]]),
    ],
)
def test_what_no_server_of_ours_says_is_refused_in_a_sentence(answers, text: bytes) -> None:
    (*_, last) = answers(text)
    assert last["type"] == "refused" and last["sentence"].endswith(".")


def test_a_message_without_an_end_is_not_kept(answers) -> None:
    (*_, last) = answers(b"x" * (MOST_BYTES + 1))
    assert "more than 1,048,576 bytes" in last["sentence"]


def test_a_server_names_no_folder_of_a_board(answers) -> None:
    for place in ("weights", "draft_weights"):
        (*_, last) = answers(with_spec(**{place: WeightsRef(kind="directory", directory="/root")}))
        assert "a board reads slices alone" in last["sentence"]


def test_a_board_measures_links_so_often_and_no_more(answers, monkeypatch) -> None:
    monkeypatch.setattr(board_process, "MOST_PROBES_AT_ONCE", 2)
    *first, last = answers(3 * b'{"type": "be_probed", "key": "00"}\n')
    assert [one["type"] for one in first] == ["probing", "probing"]
    assert "measurements of links" in last["sentence"]


def test_where_no_file_has_two_names_a_slice_is_there_all_the_same(tmp_path, monkeypatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    (tmp_path / "slice").write_bytes(b"weights")
    board_process._link(tmp_path / "at", tmp_path / "slice")
    assert (tmp_path / "at").read_bytes() == b"weights"


def test_a_device_computes_with_the_kernels_that_its_board_was_measured_with(answers, monkeypatch) -> None:
    def forks(*given: object) -> None:
        order.append("fork")
        raise RunError("It is enough.")

    order: list[str] = []
    monkeypatch.setattr(board_process, "use_host_kernels", lambda: order.append("kernels"))
    monkeypatch.setattr(board_process, "fork_device", forks)
    monkeypatch.setattr(board_process, "_have_clock_of_server", lambda ahead_s: None)
    (*_, last) = answers(assignment())
    assert last["sentence"] == "It is enough." and order == ["kernels", "fork"]
