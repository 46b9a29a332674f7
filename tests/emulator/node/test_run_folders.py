"""The folders of runs: nobody removes one that is in use or has just been made."""

from __future__ import annotations

import fcntl
import tempfile
from contextlib import suppress

from emulator.node.run_folders import own_folder, remove_leftovers


def test_another_node_does_not_remove_a_folder_before_its_process_has_locked_it(tmp_path, monkeypatch):
    make, lock = tempfile.mkdtemp, fcntl.flock

    def made_while_another_clears_up(**where):
        made = make(**where)
        with monkeypatch.context() as other, suppress(BlockingIOError):
            other.setattr(fcntl, "flock", lambda file, how: lock(file, how | fcntl.LOCK_NB))
            remove_leftovers()
        return made

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", made_while_another_clears_up)
    folder, held = own_folder()
    with held:
        assert folder.exists()
