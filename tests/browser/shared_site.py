"""One `./loom up` for all processes that test in a browser: the first starts it and ends it last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_SH, flock
from pathlib import Path

from tests.ops.test_up import Up


@contextmanager
def shared_site(folder: Path, process: str) -> Iterator[Up]:
    """The one of `folder`, which all these processes name; each of them is another `process`."""
    running = folder / "site"
    with (folder / "site.users").open("w") as users:
        with only_one(folder):
            starts = not running.exists()
            if starts:
                up = started(folder / f"state-{process}")
                running.write_text(f"{up.state_dir}\n{up.port}")
            else:
                state_dir, port = running.read_text().splitlines()
                up = Up(Path(state_dir), int(port))
            flock(users, LOCK_SH)
        try:
            yield up
        finally:
            if starts:
                with only_one(folder):
                    flock(users, LOCK_EX)  # when the last of the others has left, or is gone
                    running.unlink()
                    up.end()


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Waits while another process is here."""
    with (folder / "site.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


def started(state_dir: Path) -> Up:
    up = Up(state_dir)
    try:
        up.start()
    except BaseException:
        up.end()
        raise
    return up
