"""The loops of `row_products.c` are right in the vectors of every processor that is here or is emulated."""

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.ops.torch_kernels.row_library import FLAGS, LEVELS, SOURCE

PROGRAM = Path(__file__).with_name("row_products_everywhere.c")
TARGETS = {
    "x86-64": ("gcc", "-march=x86-64", ()),
    "x86-64-v3": ("gcc", "-march=x86-64-v3", ()),
    "x86-64-v4": ("gcc", "-march=x86-64-v4", ()),
    "aarch64": ("aarch64-linux-gnu-gcc", "-march=armv8-a", ("qemu-aarch64",)),
}


def missing(target):
    """What this machine lacks for it, or ""."""
    compiler, _, emulator = TARGETS[target]
    absent = [one for one in (compiler, *emulator) if shutil.which(one) is None]
    flags = set(Path("/proc/cpuinfo").read_text().split())
    if target.startswith("x86-64") and not flags >= LEVELS.get(target, {"sse2"}):
        absent.append(target)
    return ", ".join(absent)


@pytest.mark.parametrize("target", TARGETS)
def test_every_product_is_exact_to_rounding(target, tmp_path):
    if absent := missing(target):
        pytest.skip(f"this machine lacks {absent}")
    compiler, level, emulator = TARGETS[target]
    flags = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]
    built = tmp_path / "products"
    line = (compiler, *flags, level, "-static", f"-I{SOURCE.parent}", "-o", built, PROGRAM, "-lm")
    subprocess.run(line, check=True)
    found = subprocess.run((*emulator, built), check=True, capture_output=True, text=True).stdout
    assert 0 < float(found) < 1e-6
