"""Delay, jitter and loss by netem, for real: the emulated network in a kernel that has netem.

Not every kernel has. User-mode Linux is one that runs as an ordinary process, boots in seconds and sees the
host's files; the network inside is the product's own, with nothing replaced.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.netem_guest import RESULT
from tests.support.small_clusters import cluster, link

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.long("emulator", "engine/worlds/real", "tests/support"),
]

GUEST = Path(__file__).parents[2] / "support" / "netem_guest.py"
PTRACE = GUEST.with_name("uml_ptrace.c")
KERNEL = "linux.uml"
BOOT_AND_RUN_S = 240
SLACK_S = 1.5e-3
COUNT, MESSAGE_BYTES = 500, 128 * 1024
CLUSTER = cluster(
    "a b c",
    "",
    link("a", "b", 20e6, delay_s=0.02, reverse_delay_s=0.008),
    link("b", "c", delay_s=0.02, jitter_s=0.01),
)
THERE, BACK, JITTERED = (0, 1), (1, 0), (1, 2)
PHASES = (
    (None, (THERE, BACK, JITTERED), True),
    ({"kind": "set_delay", "link": "a--b", "delay_s": 0.04, "direction": "forward"}, (THERE, BACK), True),
    ({"kind": "set_rate", "link": "a--b", "bit_per_s": 10e6}, (), True),
    ({"kind": "set_loss", "link": "a--b", "loss_frac": 0.1, "direction": "backward"}, (THERE, BACK), False),
)


def in_guest(folder, name, *arguments):
    """The result of a function of `netem_bodies.py`, called in a kernel of its own."""
    kernel = shutil.which(KERNEL)
    assert kernel, f"{KERNEL} is missing, the kernel these tests boot: apt-get install user-mode-linux"
    preloaded = folder / "uml_ptrace.so"
    subprocess.run(("cc", "-shared", "-fPIC", "-o", preloaded, PTRACE, "-ldl"), check=True)
    job = folder / "job.json"
    job.write_text(json.dumps({"name": name, "arguments": arguments}))
    line = (
        "chrt",
        "--rr",
        "1",  # as paced devices do: on a busy host, late timers are wrong figures
        kernel,
        "mem=512M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "ro",
        "quiet",
        "con=null",
        "con0=null,fd:1",
        f"uml_dir={folder}",
        f"init={sys.executable}",
        "--",
        str(GUEST),
        str(job),
    )
    said = subprocess.run(
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOOT_AND_RUN_S,
        check=False,
        env=os.environ | {"HOME": str(folder), "TMPDIR": str(folder), "LD_PRELOAD": str(preloaded)},
    ).stdout
    results = [line.removeprefix(RESULT) for line in said.splitlines() if line.startswith(RESULT)]
    assert results, said
    return json.loads(results[0])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    spec = CLUSTER.model_dump(mode="json")
    folder = tmp_path_factory.mktemp("guest")
    return in_guest(folder, "impaired", spec, PHASES, COUNT, MESSAGE_BYTES)


def test_netem_sits_below_the_bucket_and_no_receiver_helps(found) -> None:
    assert found["backend"] == "tbf+netem"
    assert found["kinds"] == ["tbf", "netem"]
    assert not found["held"]


def test_each_direction_takes_its_own_delay(found) -> None:
    there, back, _ = found["phases"][0]["one_way_s"]
    assert len(there) == len(back) == COUNT
    # whatever else the host does can only delay a datagram or a message
    assert 0.02 <= min(there) <= 0.02 + SLACK_S
    assert 0.008 <= min(back) <= 0.008 + SLACK_S


def test_jitter_spreads_evenly_around_the_delay(found) -> None:
    *_, spread = found["phases"][0]["one_way_s"]
    assert min(spread) >= 0.01
    assert statistics.quantiles(spread, n=20)[-3] <= 0.032
    # uniform from 10 to 30 ms; unlike the standard deviation, quartiles forgive a pause of the host
    assert statistics.quantiles(spread, n=4) == pytest.approx([0.015, 0.02, 0.025], abs=3e-3)


def test_a_message_takes_size_over_rate_plus_delay(found) -> None:
    start, delayed, slowed = (min(phase["message_s"]) for phase in found["phases"][:3])
    assert start == pytest.approx(MESSAGE_BYTES * 8 / 20e6 + 0.02, rel=0.05)
    assert delayed == pytest.approx(MESSAGE_BYTES * 8 / 20e6 + 0.04, rel=0.05)
    assert slowed == pytest.approx(MESSAGE_BYTES * 8 / 10e6 + 0.04, rel=0.05)


def test_a_change_of_delay_leaves_the_other_direction_alone_and_loses_nothing(found) -> None:
    there, back = found["phases"][1]["one_way_s"]
    assert len(there) == len(back) == COUNT
    assert 0.04 <= min(there) <= 0.04 + SLACK_S
    assert 0.008 <= min(back) <= 0.008 + SLACK_S


def test_loss_takes_the_share_asked_for_in_its_direction_only(found) -> None:
    there, back = found["phases"][3]["one_way_s"]
    assert len(there) == COUNT
    assert 1 - len(back) / COUNT == pytest.approx(0.1, abs=0.055)  # four standard deviations
    assert 0.008 <= min(back) <= 0.008 + SLACK_S
