"""Where user namespaces are forbidden, one sentence says what forbids them and what allows them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.host import rights
from emulator.host.rights import Rights
from engine.domain.errors import HostError

ASK = "from emulator.host.rights import main; main()"


@pytest.fixture
def forgetful() -> None:
    """What was found out before does not count."""
    rights.rights.cache_clear()


@pytest.mark.parametrize(
    ("setting", "value", "line"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "max_user_namespaces=10000"),
    ],
)
def test_the_setting_that_forbids_is_named_with_the_line_that_allows(
    setting: str, value: str, line: str, tmp_path: Path
) -> None:
    file = tmp_path / setting
    file.parent.mkdir()
    file.write_text(f"{value}\n")
    why, remedy = rights._reason("unshare(): Operation not permitted", tmp_path)
    assert "user namespaces" in why and f"`sudo sysctl -w {setting.partition('/')[0]}.{line}`" in remedy
    file.write_text("12345\n")
    why, remedy = rights._reason("unshare(): Operation not permitted", tmp_path)
    assert "Operation not permitted" in why and "--privileged" in remedy


@pytest.mark.root
def test_without_user_namespaces_a_user_reads_one_sentence_and_no_traceback() -> None:
    """In a user namespace of its own that may make no others, as on a machine where they are forbidden."""
    forbid = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {sys.executable} -c '{ASK}'"
    done = subprocess.run(
        ("unshare", "--user", "--map-root-user", "sh", "-c", forbid),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == (
        "This machine cannot emulate: the kernel is set to allow no user namespaces. An administrator allows "
        "them with `sudo sysctl -w user.max_user_namespaces=10000`.\n"
    ), done.stderr


def test_root_keeps_its_rights_only_where_user_namespaces_are_forbidden_and_says_so(
    forgetful: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "is_machine_root", lambda: True)
    monkeypatch.setattr(rights, "_reason", lambda refusal, settings: ("it is forbidden", "Allow it."))
    monkeypatch.setattr(rights, "_refusal", lambda own_users: "")
    assert rights.rights() == Rights("own") and rights.rights().note == ""

    rights.rights.cache_clear()
    monkeypatch.setattr(rights, "_refusal", lambda own_users: "no" if own_users else "")
    found = rights.rights()
    assert found.kind == "root"
    assert found.note == "The emulation ran with the machine's root rights, since it is forbidden. Allow it."
    found.require()

    rights.rights.cache_clear()
    monkeypatch.setattr(rights, "is_machine_root", lambda: False)
    with pytest.raises(HostError, match=r"^This machine cannot emulate: it is forbidden\. Allow it\.$"):
        rights.rights().require()
    rights.rights.cache_clear()
