"""`python -m bench.nodes.small_model FOLDER`: writes a small model with weights, as `transformers` does."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.spec import RunSpec
from engine.models.catalogue import resolve
from engine.models.reference.transformers_outputs import library_model


def main(folder: Path) -> int:
    model, weights = resolve("tiny-llama", "random")
    device = DeviceSpec(name="d0", flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9)
    cluster = ClusterSpec(name="one", source="d0", devices=(device,))
    spec = RunSpec(cluster=cluster, model=model, weights=weights, strategy="single")
    library_model(spec).save_pretrained(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
