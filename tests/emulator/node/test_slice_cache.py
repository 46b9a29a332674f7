"""Slices come by their digest: what was begun is gone on with, what is wrong is refused, what is old goes."""

import base64
import hashlib
import os

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
