"""Slices come by their digest: what was begun is gone on with, what is wrong is refused, what is old goes."""

import base64
import fcntl
import hashlib
import os
import threading

import pytest

from emulator.node import slice_cache
from emulator.node.slice_cache import SliceCache
from engine.domain.errors import RunError

SIZE = 1000


def content(number: int) -> bytes:
    return bytes([number]) * SIZE


def file(number: int) -> tuple[str, int]:
    return hashlib.sha256(content(number)).hexdigest(), SIZE


class Server:
    """Gives pieces of 300 bytes; after `patience` of them it has gone."""

    def __init__(self, patience: int = 1 << 30):
        self.asked, self.patience = [], patience
        self.contents = {file(number)[0]: content(number) for number in range(9)}

    def __call__(self, digest: str, start: int) -> str:
        if len(self.asked) >= self.patience:
            raise RunError("The server has said nothing.")
        self.asked.append(start)
        return base64.b64encode(self.contents[digest][start : start + 300]).decode()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return SliceCache(3 * SIZE, lambda line: None)


def kept() -> set[str]:
    return {path.stem for path in slice_cache.folder().glob("*.safetensors")}


def test_a_slice_comes_once_and_is_there_the_next_time(cache):
    server = Server()
    (path,) = cache.fetch([file(1)], server)
    assert path.read_bytes() == content(1) and server.asked == [0, 300, 600, 900]
    assert cache.fetch([file(1)], server) == [path] and len(server.asked) == 4


def test_a_transfer_that_was_cut_off_is_gone_on_with(cache):
    with pytest.raises(RunError, match="said nothing"):
        cache.fetch([file(1)], Server(patience=2))
    server = Server()
    (path,) = cache.fetch([file(1)], server)
    assert server.asked == [600, 900] and path.read_bytes() == content(1)


def test_it_does_something_else_now_and_then_while_it_reads_what_is_there(cache, monkeypatch):
    monkeypatch.setattr(slice_cache, "READ_BYTES", 300)
    cache.fetch([file(1)], Server())
    called = []
    SliceCache(3 * SIZE, lambda line: None, lambda: called.append(1)).fetch([file(1)], Server())
    assert len(called) == 4


def test_other_bytes_than_the_digests_are_refused_and_not_kept(cache):
    server = Server()
    server.contents[file(1)[0]] = content(2)
    with pytest.raises(RunError, match="have another digest"):
        cache.fetch([file(1)], server)
    assert not list(slice_cache.folder().iterdir())


def test_a_kept_file_that_has_changed_comes_again(cache):
    (path,) = cache.fetch([file(1)], Server())
    path.write_bytes(content(2))
    assert cache.fetch([file(1)], Server()) == [path] and path.read_bytes() == content(1)


def test_what_was_not_used_for_longest_goes_first(cache):
    for number in (1, 2, 3):
        (path,) = cache.fetch([file(number)], Server())
        os.utime(path, (number, number))
    os.utime(cache.fetch([file(1)], Server())[0])
    cache.fetch([file(4)], Server())
    assert kept() == {file(number)[0] for number in (1, 3, 4)}


def test_a_plan_whose_slices_are_more_than_a_board_keeps_is_refused_before_anything_comes(cache):
    server = Server()
    with pytest.raises(RunError, match="keeps at most 3 kB"):
        cache.fetch([file(number) for number in range(4)], server)
    assert not server.asked


def test_a_digest_is_no_path(cache):
    with pytest.raises(RunError, match="is no digest"):
        cache.fetch([("../../etc/passwd".ljust(64, "x"), 1)], Server())


@pytest.mark.parametrize("size", (-SIZE, 10.5, True, "1000", None))
def test_a_size_that_no_file_has_is_refused_and_so_makes_no_room_in_the_sum(cache, size):
    server = Server()
    with pytest.raises(RunError, match="no file has"):
        cache.fetch([*(file(number) for number in range(4)), (file(5)[0], size)], server)
    assert not server.asked


def parts() -> set[str]:
    return {path.stem for path in slice_cache.folder().glob("*.part")}


def test_what_cut_off_transfers_have_left_counts_and_goes_unless_somebody_brings_it(cache):
    for number in (1, 2, 3, 4):
        with pytest.raises(RunError, match="said nothing"):
            cache.fetch([file(number)], Server(patience=3))
        os.utime(slice_cache.folder() / f"{file(number)[0]}.part", (number, number))
    assert parts() == {file(number)[0] for number in (2, 3, 4)}, "three of 900 bytes fit"
    with (slice_cache.folder() / f"{file(2)[0]}.part").open("rb") as brought:
        fcntl.flock(brought, fcntl.LOCK_EX)
        cache.fetch([file(4)], server := Server())
        assert server.asked == [900] and parts() == {file(number)[0] for number in (2, 3)}
        cache.fetch([file(5)], Server())
    assert parts() == {file(2)[0]} and kept() == {file(4)[0], file(5)[0]}


class Second:
    """Another node that fetches a slice; `waits` is set when it does something else while it waits."""

    def __init__(self, number: int):
        self.waits, self.paths, self.number = threading.Event(), [], number
        self.thread = threading.Thread(target=self.fetch)

    def fetch(self) -> None:
        cache = SliceCache(3 * SIZE, lambda line: None, self.waits.set)
        self.paths = cache.fetch([file(self.number)], Server())

    def begin(self) -> None:
        self.thread.start()
        assert self.waits.wait(20)


@pytest.mark.parametrize("patience", (2, 1 << 30))
def test_a_node_that_waits_for_another_goes_on_where_that_one_ends(cache, patience):
    server, second = Server(patience), Second(1)

    def ask(digest, start):
        if start == 300:
            second.begin()
        return server(digest, start)

    try:
        cache.fetch([file(1)], ask)
    except RunError:
        assert patience == 2
    second.thread.join()
    assert [path.read_bytes() for path in second.paths] == [content(1)] and not parts()


def test_a_part_that_vanishes_while_a_node_waits_for_it_is_begun_anew(cache):
    part, second = slice_cache.folder() / f"{file(1)[0]}.part", Second(1)
    with part.open("wb") as gone:
        fcntl.flock(gone, fcntl.LOCK_EX)
        second.begin()
        part.unlink()
    second.thread.join()
    assert [path.read_bytes() for path in second.paths] == [content(1)] and not parts()
