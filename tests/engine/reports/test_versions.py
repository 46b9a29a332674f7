"""A report names the software and the machine that made it."""

import platform

import torch

from engine.reports import versions


def test_installed_packages_are_named_with_their_versions_and_absent_ones_left_out(monkeypatch):
    monkeypatch.setattr(versions, "PACKAGES", ("torch", "no-such-package-of-ours"))
    found = versions.versions()
    assert found["python"] == platform.python_version()
    assert found["kernel"] == platform.release()
    assert found["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert set(found) == {"python", "kernel", "machine", "torch"}
