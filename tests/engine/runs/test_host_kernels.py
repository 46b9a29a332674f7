"""The kernels' table is probed once per processor and version of torch, and kept in the cache."""

import multiprocessing
import os
import time
from importlib.metadata import version

import pytest

from engine.domain.errors import HostError
from engine.ops.torch_kernels.linear_table import LinearTable, processor
from engine.runs import host_kernels


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def kept(**changed):
    host_kernels._keep(
        LinearTable(
            **{"processor": processor(), "torch": version("torch"), "row_library": "", "choices": ()}
            | changed
        )
    )


def test_a_table_of_this_processor_and_torch_is_used_again():
    assert host_kernels.known_kernels() is None
    kept()
    assert host_kernels.known_kernels() is not None


@pytest.mark.parametrize("changed", [{"processor": "another one"}, {"torch": "1.0"}, {"row_library": "a.so"}])
def test_a_table_of_another_processor_torch_or_library_is_not(changed):
    kept(**changed)
    assert host_kernels.known_kernels() is None


def test_a_table_that_cannot_be_read_is_not():
    kept()
    host_kernels.kernels_file().write_text("{")
    assert host_kernels.known_kernels() is None


def test_a_probe_that_fails_says_why(monkeypatch):
    def fail(*dtypes):
        raise RuntimeError("no such instruction.")

    monkeypatch.setattr("engine.ops.torch_kernels.linear_probe.probe", fail)
    with pytest.raises(HostError, match=r"failed: RuntimeError: no such instruction\.$"):
        host_kernels.measured_kernels()


def test_a_probe_that_dies_is_an_error(monkeypatch):
    monkeypatch.setattr("engine.ops.torch_kernels.linear_probe.probe", lambda: os._exit(1))
    with pytest.raises(HostError, match=r"failed: its process died\.$"):
        host_kernels.measured_kernels()


def test_a_probe_ends_with_the_block_that_asked_for_it(monkeypatch):
    """Its plan may be refused before: then nobody waits for the table."""
    monkeypatch.setattr("engine.ops.torch_kernels.linear_probe.probe", lambda: time.sleep(1e6))
    with pytest.raises(KeyError), host_kernels.probing():
        raise KeyError
    assert multiprocessing.active_children() == []


def test_a_probe_leaves_no_process_and_its_table_is_used_from_then_on():
    table = host_kernels.measured_kernels()
    assert multiprocessing.active_children() == []
    assert host_kernels.known_kernels() == table == host_kernels.use_host_kernels()
