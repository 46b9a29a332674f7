"""A session sees its program, its model and its cache, and no secrets: planned from the modes of files."""

import os
from pathlib import Path

import pytest

from emulator.host.enter import Room, View
from emulator.host.rights import IDENTITY, Rights
from emulator.session import view


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a server's state, as root would start a session in it; nothing else is needed."""
    root = tmp_path / "home" / "edgeloom"
    for name in ("emulator", ".loom/model-store/small"):
        (root / name).mkdir(parents=True)
    for directory in (tmp_path, *tmp_path.rglob("*")):
        directory.chmod(0o755)
    monkeypatch.setattr(view, "ROOT", root)
    monkeypatch.setattr(view, "CODE", (root / "emulator",))
    monkeypatch.setattr(view, "PYTHON", ())
    monkeypatch.setattr(view, "SHARED", ())
    monkeypatch.setattr(view, "homes", set)
    monkeypatch.setattr(view, "default_state_directory", lambda: root / ".loom")
    monkeypatch.setattr(view, "identity", lambda: IDENTITY)
    monkeypatch.setattr(view, "rights", lambda: Rights("own"))
    monkeypatch.setattr(view, "first_closed", lambda path: closed_below(tmp_path, path))
    monkeypatch.setattr(view.sys, "path", [""])
    monkeypatch.delenv("LOOM_STATE_DIR", raising=False)
    return root


def closed_below(top: Path, path: Path) -> Path | None:
    """As if all above `top` were open: pytest's directories are not."""
    between = [each for each in reversed(path.parents) if each.is_relative_to(top)]
    return next((each for each in between if not each.stat().st_mode & 0o001), None)


def room(reads: tuple[Path, ...] = (), writes: tuple[Path, ...] = ()) -> Room:
    return view.room_of((0,), None, reads, writes)


def test_where_others_may_read_all_only_the_servers_state_is_covered(checkout: Path) -> None:
    assert set(room().covered) - {"/run", "/dev/shm"} == {str(checkout / ".loom")}
    assert [one.path for one in room().views] == [str(checkout / "emulator")]


def test_a_moved_state_directory_is_covered_too(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_STATE_DIR", str(checkout.parent))
    assert str(checkout.parent) in room().covered
    assert str(checkout / "emulator") in {one.path for one in room().views}


def test_below_a_closed_directory_only_what_is_needed_is_shown(checkout: Path) -> None:
    checkout.parent.chmod(0o700)
    assert str(checkout.parent) in room().covered
    assert [one.path for one in room().views] == [str(checkout / "emulator")]


def test_of_a_closed_checkout_the_code_alone_is_shown_as_the_sessions_own(checkout: Path) -> None:
    (checkout / ".env").write_text("SECRET_KEY=1")
    for directory in (checkout, checkout / "emulator"):
        directory.chmod(0o700)
    owner = (os.getuid(), os.getgid())
    assert room().views == (View(str(checkout / "emulator"), owner=owner),)
    assert str(checkout) in room().covered


def test_the_model_of_a_run_is_shown_below_the_servers_state_and_no_other(checkout: Path) -> None:
    store = checkout / ".loom/model-store"
    (store / "other").mkdir()
    assert View(str(store / "small")) in room(reads=(store / "small",)).views
    assert not [one for one in room(reads=(store / "small",)).views if "other" in one.path]


def test_a_model_whose_files_others_may_not_read_is_shown_as_the_sessions_own(
    checkout: Path, tmp_path: Path
) -> None:
    model, blobs = tmp_path / "model", tmp_path / "blobs"
    for directory in (model, blobs):
        directory.mkdir(mode=0o755)
    (blobs / "weights").touch(mode=0o600)
    (model / "model.safetensors").symlink_to(blobs / "weights")
    owner = (os.getuid(), os.getgid())
    shown = {View(str(model), owner=owner), View(str(blobs / "weights"), owner=owner)}
    assert shown <= set(room(reads=(model,)).views)


def test_of_the_directory_to_which_a_link_of_a_model_leads_only_the_file_is_shown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = checkout.parent
    (home / "model").mkdir()
    (home / "notes").mkdir()
    (home / "weights").touch()
    (home / "model" / "model.safetensors").symlink_to(home / "weights")
    (home / "model" / "more").symlink_to(home / "notes")
    monkeypatch.setattr(view, "homes", lambda: {home})
    found = {one.path for one in room(reads=(home / "model",)).views}
    assert found == {str(checkout / "emulator"), str(home / "model"), str(home / "weights")}


def test_of_a_home_only_what_is_needed_is_shown_and_of_one_with_a_method_its_modules(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = checkout.parent
    (home / ".ssh").mkdir()
    (home / "thirds.py").touch()
    monkeypatch.setattr(view, "homes", lambda: {home})
    found = room(reads=(home,))
    assert str(home) in found.covered
    assert {one.path for one in found.views} == {str(checkout / "emulator"), str(home / "thirds.py")}


def test_a_home_is_covered_only_where_it_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in view.homes()
    monkeypatch.setattr(view.os, "getuid", lambda: 2**20)
    assert view.homes() == set()


def test_what_it_writes_is_shown_writable(checkout: Path, tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.mkdir()
    assert [one.path for one in room(writes=(written,)).views if one.writable] == [str(written)]


def test_an_ordinary_user_stays_the_owner_and_closed_directories_stay_in_sight(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "identity", lambda: None)
    checkout.parent.chmod(0o700)
    found = room(reads=(checkout,))
    assert found.identity is None and found.own_users
    assert str(checkout.parent) not in found.covered and str(checkout / ".loom") in found.covered
    assert all(one.owner is None for one in found.views)


def test_where_user_namespaces_are_forbidden_root_stays_root(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "rights", lambda: Rights("root", "it is forbidden", "Allow it."))
    assert (room().identity, room().own_users) == (None, False)
