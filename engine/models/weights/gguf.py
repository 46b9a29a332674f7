"""Writes a GGUF file as a model directory, restored to bfloat16 by `transformers`.

`python -m engine.models.weights.gguf FILE DIRECTORY` does it in a process of its own, whose memory ends with
it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from engine.domain.errors import HostError


def write_directory(file: Path, directory: Path) -> None:
    """Fill `directory` with config, tokenizer and weights of the GGUF `file`. Raises `HostError`."""
    done = subprocess.run(
        (sys.executable, "-m", __name__, str(file), str(directory)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = said[-1].rstrip(".") if said else done.returncode
        raise HostError(
            f"{file.name} cannot be restored: {reason}: give the directory of the model's safetensors files."
        )


def _write(file: Path, directory: Path) -> None:
    import gguf
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # `transformers` reads the file three times and makes the names' table per module: half of its time.
    for name in ("GGUFReader", "get_tensor_name_map"):
        setattr(gguf, name, lru_cache(maxsize=1)(getattr(gguf, name)))

    read = {"gguf_file": file.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(file.parent, **read)
    restored = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, dtype=torch.bfloat16, quantization_config=restored, **read
    )
    tokenizer.save_pretrained(directory)
    model.save_pretrained(directory)
    for path in directory.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    _write(Path(sys.argv[1]), Path(sys.argv[2]))
