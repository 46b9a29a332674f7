"""How the parent of all devices imports torch."""

import ctypes
import threading
from pathlib import Path

import pytest

from engine.domain.network import LoopbackNetwork
from engine.models import catalogue
from engine.runs.execute import execute
from engine.runs.torch_import import wait_for_end
from tests.support.small_cases import spec_of, star

LIBC = ctypes.CDLL(None)
EXIT_S = 0.3
"""So long a thread of these tests takes to end after somebody has waited for its last line of Python."""


@pytest.fixture
def may_end():
    """A semaphore, see sem_overview(7), for which a thread waits on its way out."""
    semaphore = ctypes.create_string_buffer(64)
    assert LIBC.sem_init(semaphore, 0, 0) == 0
    return semaphore


def ends_slowly(may_end):
    """Let this thread wait on its way out, in the destructor of its own data, as libraries do theirs."""
    key = ctypes.c_uint()
    assert LIBC.pthread_key_create(ctypes.byref(key), LIBC.sem_wait) == 0
    assert LIBC.pthread_setspecific(key, ctypes.cast(may_end, ctypes.c_void_p)) == 0


def lets_it_end_later(may_end):
    threading.Timer(EXIT_S, LIBC.sem_post, (may_end,)).start()


def is_there(thread):
    return Path(f"/proc/self/task/{thread.native_id}").exists()


def test_a_thread_has_ended_only_when_its_libraries_have_given_back_their_locks(may_end):
    slow = threading.Thread(target=ends_slowly, args=(may_end,))
    slow.start()
    slow.join()
    assert is_there(slow), "this thread was to end slowly: the test shows nothing"
    lets_it_end_later(may_end)
    wait_for_end(slow)
    assert not is_there(slow)


class Reached(Exception):
    """Raised when a run has torch, before it forks devices."""


def test_no_device_is_forked_while_the_thread_that_imported_torch_ends(may_end, monkeypatch):
    importing = []

    def import_slowly():
        importing.append(threading.current_thread())
        ends_slowly(may_end)
        lets_it_end_later(may_end)

    def next_step():
        assert not is_there(importing[0])
        raise Reached

    monkeypatch.setattr("engine.runs.torch_import._import_torch", import_slowly)
    monkeypatch.setattr("engine.runs.execute.use_host_kernels", next_step)
    model, weights = catalogue.resolve("tiny-gpt2")
    spec = spec_of("single", model, star((1e8,))).model_copy(update={"weights": weights})
    with pytest.raises(Reached):
        execute(spec, lambda spec, dilation: LoopbackNetwork(spec.cluster))
