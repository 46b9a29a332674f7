"""The kernels' table is probed once per processor and version of torch, and kept in the cache."""

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
        LinearTable(**{"processor": processor(), "torch": version("torch"), "choices": ()} | changed)
    )


def test_a_table_of_this_processor_and_torch_is_used_again():
    assert host_kernels.known_kernels() is None
    kept()
    assert host_kernels.known_kernels() is not None


@pytest.mark.parametrize("changed", [{"processor": "another one"}, {"torch": "1.0"}])
def test_a_table_of_another_processor_or_torch_is_not(changed):
    kept(**changed)
    assert host_kernels.known_kernels() is None


def test_a_table_that_cannot_be_read_is_not():
    kept()
    host_kernels.kernels_file().write_text("{")
    assert host_kernels.known_kernels() is None


def test_a_probe_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(host_kernels, "PROBE", "engine.ops.no_such_module")
    with pytest.raises(HostError, match=r"Timing the kernels .* No module named"):
        host_kernels.measured_kernels()
