"""What control groups grant, by the files of both versions (cgroups(7), kernel.org's cgroup-v2.html)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.domain import granted


def grants(tmp_path: Path, monkeypatch, own: str, files: dict[str, str]) -> float:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(granted, "CGROUPS", tmp_path)
    monkeypatch.setattr(granted, "OWN", tmp_path / "own")
    return granted.granted_frac.__wrapped__()


@pytest.mark.parametrize(
    ("own", "files", "frac"),
    [
        ("0::/\n", {}, 1.0),
        ("0::/box\n", {"box/cpu.max": "max 100000\n"}, 1.0),
        ("0::/box\n", {"box/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/box\n", {"box/cpu.max": "150000 100000\n"}, 1.0),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "25000 100000\n"}, 0.25),
        ("0::/elsewhere\n", {"cpu.max": "50000 100000\n"}, 0.5),  # a container sees its own group as the root
        ("3:cpu,cpuacct:/b\n", {"cpu/b/cpu.cfs_quota_us": "1000", "cpu/b/cpu.cfs_period_us": "2000"}, 0.5),
        ("3:cpu:/b\n", {"cpu/b/cpu.cfs_quota_us": "-1\n", "cpu/b/cpu.cfs_period_us": "100000\n"}, 1.0),
        ("3:cpuset:/b\n", {"cpuset/b/cpu.cfs_quota_us": "1", "cpuset/b/cpu.cfs_period_us": "2"}, 1.0),
        ("no line of groups\n\n0::/box\n", {"box/cpu.max": "", "cpu.max": "50000 100000\n"}, 0.5),
    ],
)
def test_the_smallest_quota_around_a_process_is_what_a_thread_gets(tmp_path, monkeypatch, own, files, frac):
    assert grants(tmp_path, monkeypatch, own, files) == frac
