"""Compute with `transformers` on one device the tokens and logits that every run is compared with.

`python -m engine.models.reference.transformers_outputs SPEC.json OUT.safetensors` computes them in a separate
process, from the same weights: the library loads a directory, or gets the random weights drawn into its
modules. The tokens are chosen greedily, with the library's own KV cache.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import uuid
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.cache_directory import cache_directory, prune
from engine.domain.errors import HostError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.families.hf_config import config_of_spec
from engine.models.families.tensor_names import candidates, rows_in_file, stored_as, unused_names
from engine.models.inputs.library_tokenizer import library_ids, tokenizer_digests
from engine.models.inputs.prompts import is_chat, pixels_of, requests_of, tokenised_text
from engine.models.reference.process import run_apart
from engine.models.weights.directory import CONFIG, read_spec
from engine.ops.layout import TensorPart, tensor_parts, whole_model

if TYPE_CHECKING:
    import torch

    from engine.models.weights.store import Source

KEEP_FILES = 200
TEXT_IDS = "text_ids"
UNUSED = ("accelerate", "scipy")
"""What `transformers` imports where it is installed, for a second, and needs for no model of ours."""
ENGINE = Path(__file__).resolve().parents[2]
CODE = (
    "models/reference/transformers_outputs.py",
    "models/weights/store.py",
    "models/weights/quantise.py",
    "ops/torch_kernels/packed.py",
    "models/weights/drawn.py",
    "ops/layout.py",
    *sorted(str(file.relative_to(ENGINE)) for file in (ENGINE / "models/families").glob("*.py")),
    "models/inputs/prompts.py",
    "models/inputs/library_tokenizer.py",
    "models/inputs/pictures.py",
)
"""Files that decide the numbers: an answer of older code is not taken from the cache."""


class Reference(NamedTuple):
    """Per request: `logits` [new_tokens, V] and the greedy `tokens`; or an encoder's `hidden` [T, D], a
    classifier's class logits [C]. `text_ids` are those that the library's own tokenizer gives the workload's
    text; None where it has no tokenizer, or there is no text.
    """

    tokens: tuple[tuple[int, ...], ...]
    logits: tuple[torch.Tensor, ...]
    hidden: tuple[torch.Tensor, ...]
    text_ids: tuple[int, ...] | None = None

    def tensors(self) -> dict[str, torch.Tensor]:
        """`logits.<i>` or `hidden.<i>` of every request i."""
        named = {f"logits.{index}": logits for index, logits in enumerate(self.logits)}
        return named | {f"hidden.{index}": hidden for index, hidden in enumerate(self.hidden)}


def load_or_compute(spec: RunSpec, cache_dir: Path | None = None) -> Reference:
    """The reference of `spec`, computed at most once per model, weights, prompts and library versions.

    Raises `HostError` when the process that computes it fails.
    """
    path = (cache_dir or cache_directory()) / "references" / f"{_content_hash(spec)}.safetensors"
    if path.is_file():
        return _read(path)
    with TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        run_apart("engine.models.reference.transformers_outputs", spec, made)
        with suppress(OSError):  # a full disk: then it is computed again
            _keep(made, path)
        return _read(made)


def _content_hash(spec: RunSpec) -> str:
    """A hash of everything that decides the reference, and of nothing else."""
    weights: Any = spec.seed
    config = Path(spec.weights.directory) / CONFIG
    if spec.weights.directory and config.is_file():
        weights = (spec.seed, _digest(config))
    if spec.weights.kind == "directory":
        files = sorted(Path(spec.weights.directory).glob("*.safetensors"))
        weights = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    text, tokenizer = tokenised_text(spec), Path(spec.weights.directory)
    facts = {
        "text": None if text is None else (text, is_chat(spec), tokenizer_digests(tokenizer)),
        "model": spec.model.model_dump(mode="json", exclude={"name", "source"}),
        "weights": weights,
        "tokens": [request.tokens for request in requests_of(spec)],
        "pictures": (spec.workload.image or spec.seed) if spec.model.vision else None,
        "new_tokens": [tokens_of(spec, request) for request in requests_of(spec)],
        "versions": [version(package) for package in ("torch", "transformers", "numpy")],
        "code": [_digest(ENGINE / name) for name in CODE],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _keep(made: Path, path: Path) -> None:
    """Put a copy at `path`, whole or not at all; raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{uuid.uuid4().hex}.part")  # emulations in PID namespaces have equal PIDs
    try:
        shutil.copyfile(made, part)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    prune(path.parent, "*.safetensors", KEEP_FILES)


def _read(path: Path) -> Reference:
    from safetensors.torch import load_file

    return reference_of(load_file(path))


def reference_of(tensors: dict[str, torch.Tensor]) -> Reference:
    """What `compute` gives, by request."""
    tensors = dict(tensors)
    ids = tensors.pop(TEXT_IDS, None)
    found = _of_requests(tensors)
    return found if ids is None else found._replace(text_ids=tuple(ids.tolist()))


def _of_requests(tensors: dict[str, torch.Tensor]) -> Reference:
    count = 1 + max(int(name.rpartition(".")[2]) for name in tensors)
    if "hidden.0" in tensors:
        return Reference((), (), tuple(tensors[f"hidden.{index}"] for index in range(count)))
    tokens = tuple(tuple(tensors[f"tokens.{index}"].tolist()) for index in range(count))
    return Reference(tokens, tuple(tensors[f"logits.{index}"] for index in range(count)), ())


def compute(spec: RunSpec) -> dict[str, torch.Tensor]:
    """`tokens.<i>` and `logits.<i>`, or `hidden.<i>`, of every request i, and `text_ids`, by `transformers`,
    here and now.
    """
    import torch

    model = library_model(spec)
    answers: dict[Any, dict[str, torch.Tensor]] = {}
    named: dict[str, torch.Tensor] = {}
    with torch.inference_mode():
        for request in requests_of(spec):
            own_picture = spec.model.vision is not None and spec.workload.image is None
            key = (request.tokens, tokens_of(spec, request), request.index if own_picture else -1)
            if key not in answers:
                answers[key] = _answer(spec, model, request)
            named |= {f"{name}.{request.index}": x for name, x in answers[key].items()}
    text = tokenised_text(spec)
    if text is not None:
        named[TEXT_IDS] = torch.tensor(library_ids(spec.weights.directory, text, is_chat(spec)))
    return {name: tensor.clone().contiguous() for name, tensor in named.items()}


def tokens_of(spec: RunSpec, request: Request) -> int:
    """How many tokens `request` gets."""
    return spec.workload.new_tokens if request.new_tokens is None else request.new_tokens


def _answer(spec: RunSpec, model: Any, request: Request) -> dict[str, torch.Tensor]:
    import torch

    seen: dict[str, Any] = {}
    if spec.model.vision:
        seen["pixel_values"] = torch.from_numpy(pixels_of(spec, request.index))[None].to(model.dtype)
    if spec.model.num_classes:
        return {"hidden": model(**seen).logits[0]}
    ids = torch.tensor([request.tokens])
    if spec.model.reads_text:
        seen["input_ids"] = ids
    if not spec.workload.new_tokens:
        return {"hidden": model.base_model(**seen).last_hidden_state[0]}
    rows, tokens, cache = [], [], None
    for _ in range(tokens_of(spec, request)):
        out = model(**seen, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        rows.append(out.logits[0, -1])
        seen = {"input_ids": rows[-1].argmax().reshape(1, 1)}
        tokens.append(int(rows[-1].argmax()))
    return {"tokens": torch.tensor(tokens), "logits": torch.stack(rows)}


def library_model(spec: RunSpec) -> Any:
    """The `transformers` module of `spec`, with its weights, ready to infer.

    The library reads the config.json of the model's directory by itself, also for random weights: so a config
    that is read differently here is seen. Raises `SpecError` if that file no longer describes `spec.model`.
    """
    import torch
    from transformers import AutoConfig
    from transformers.initialization import no_init_weights

    from engine.models.weights.store import InBits, source_of

    model, kind, directory = spec.model, _library_class(spec.model), spec.weights.directory
    dtype, local = getattr(torch, model.dtype), {"local_files_only": True, "trust_remote_code": False}
    # experts one by one: the library's grouped products ask for sizes that are multiples of 16 bytes
    how = {"experts_implementation": "eager"} if model.num_experts else {}
    if directory:
        _check_unchanged(model, Path(directory))
    source = source_of(spec.weights, spec.seed)
    if spec.weights.kind == "directory":
        found = kind.from_pretrained(directory, dtype=dtype, use_safetensors=True, **how, **local).eval()
        if model.weight_bits:
            fill(found, model, InBits(source))
        return found
    if directory:
        config = AutoConfig.from_pretrained(directory, **local)
    else:
        written = config_of_spec(model)
        config = AutoConfig.for_model(written.pop("model_type"), **written)
    with no_init_weights():
        made = kind.from_config(config, dtype=dtype, **how)
    made.tie_weights()
    fill(made, model, InBits(source) if model.weight_bits else source)
    return made.eval()


def _check_unchanged(model: ModelSpec, directory: Path) -> None:
    stored = read_spec(directory, model.name)
    for field in ModelSpec.model_fields:
        if field not in ("name", "source", "dtype", "weight_bits", "likely_experts") and getattr(
            stored, field
        ) != getattr(model, field):
            raise SpecError(
                f"{directory / CONFIG}: {field} is {getattr(stored, field)}, and this run's model has "
                f"{getattr(model, field)}: the file was changed since. Make a new run."
            )


def _library_class(model: ModelSpec) -> Any:
    import transformers

    if model.num_classes:
        return transformers.AutoModelForImageClassification
    if not model.has_head:
        return transformers.AutoModel
    return transformers.AutoModelForImageTextToText if model.vision else transformers.AutoModelForCausalLM


def fill(module: Any, model: ModelSpec, source: Source) -> None:
    """Put the weights of `source` into the library's module, through the names that its files would have."""
    import torch

    state = module.state_dict()
    touched: set[str] = set()
    with torch.no_grad():
        for piece in whole_model(model):
            for part in tensor_parts(model, piece):
                touched.add(_fill_part(state, model, part, source))
    unused = ("pooler.", *unused_names(model))
    unknown = {name for name in set(state) - touched if not name.startswith(unused)}
    tied = state.get("lm_head.weight")
    if model.tied_head and tied is not None and tied.data_ptr() in {state[n].data_ptr() for n in touched}:
        unknown.discard("lm_head.weight")
    if unknown:
        names = ", ".join(sorted(unknown))
        raise HostError(f"transformers has weights that our {model.family} lacks: {names}.")


def _fill_part(state: dict[str, Any], model: ModelSpec, part: TensorPart, source: Any) -> str:
    stored = stored_as(model, part.name, in_module=True)
    name = next(name for name in candidates(model, stored) if name in state)
    target = state[name][stored.expert] if stored.stacked else state[name]
    target = target.t() if stored.transposed and len(part.full_shape) == 2 else target
    first, _ = rows_in_file(model, part.name, stored, part.full_shape[0])
    target.narrow(0, first, part.full_shape[0]).copy_(source.read(model, part))
    return name


def leave_out_unused() -> None:
    """Let `transformers` find none of `UNUSED`, in a process that imports it for a reference.

    Where a part of it is imported already, its other parts import what that has found.
    """
    for name in UNUSED if "transformers" not in sys.modules else ():
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # so it counts as not installed


def main(arguments: list[str]) -> int:
    from safetensors.torch import save_file

    leave_out_unused()
    spec_path, out_path = arguments
    spec = RunSpec.parse(json.loads(Path(spec_path).read_text(encoding="utf-8")), spec_path)
    save_file(compute(spec), out_path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
