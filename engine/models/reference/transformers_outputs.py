"""Compute with `transformers` on one device the tokens and logits that a run is compared with, here and now.

From the same weights: the library loads a directory, or gets the random weights drawn into its modules. The
tokens are chosen as the run's are, with the library's own KV cache. Where a run's own tokens are known,
`teacher_forcing.py` needs fewer passes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.errors import HostError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.families.hf_config import config_of_spec
from engine.models.families.tensor_names import candidates, rows_in_file, stored_as, unused_names
from engine.models.inputs.library_tokenizer import library_ids
from engine.models.inputs.prompts import is_chat, pixels_of, requests_of, tokenised_text
from engine.models.reference.choices import next_token
from engine.models.weights.directory import CONFIG, read_json, read_spec
from engine.ops.layout import TensorPart, tensor_parts, whole_model

if TYPE_CHECKING:
    import torch

    from engine.models.weights.store import Source

TEXT_IDS = "text_ids"
UNUSED = ("accelerate", "scipy")
"""What `transformers` imports where it is installed, for a second, and needs for no model of ours."""


class Reference(NamedTuple):
    """Per request: `logits` [new_tokens, V] and the `tokens` that they give; or an encoder's `hidden`
    [T, D], a classifier's class logits [C]. `text_ids` are those that the library's own tokenizer gives the
    workload's text; None where it has no tokenizer, or there is no text.
    """

    tokens: tuple[tuple[int, ...], ...]
    logits: tuple[torch.Tensor, ...]
    hidden: tuple[torch.Tensor, ...]
    text_ids: tuple[int, ...] | None = None

    def tensors(self) -> dict[str, torch.Tensor]:
        """`logits.<i>` or `hidden.<i>` of every request i."""
        named = {f"logits.{index}": logits for index, logits in enumerate(self.logits)}
        return named | {f"hidden.{index}": hidden for index, hidden in enumerate(self.hidden)}


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
            picture = request.index if own_picture else -1
            key = (request.tokens, tokens_of(spec, request), picture, request.sampling)
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
    rows, cache = [], None
    tokens: list[int] = []
    for _ in range(tokens_of(spec, request)):
        out = model(**seen, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        rows.append(out.logits[0, -1])
        tokens.append(next_token(rows[-1], request.sampling, len(tokens)))
        seen = {"input_ids": torch.tensor([[tokens[-1]]])}
    return {"tokens": torch.tensor(tokens), "logits": torch.stack(rows)}


def library_model(spec: RunSpec, shake: int = 0) -> Any:
    """The `transformers` module of `spec`, with its weights, ready to infer.

    The library reads the config.json of the model's directory by itself, also for random weights: so a config
    that is read differently here is seen. Raises `SpecError` if that file no longer describes `spec.model`.
    `shake`: what products round to 8 bits is moved a little before, by each number but 0 in another way.
    """
    import torch
    from transformers import AutoConfig, Mxfp4Config
    from transformers.initialization import no_init_weights

    from engine.models.weights.store import InBits, source_of

    model, kind, directory = spec.model, _library_class(spec.model), spec.weights.directory
    dtype, local = getattr(torch, model.dtype), {"local_files_only": True, "trust_remote_code": False}
    # experts one by one: the library's grouped products ask for sizes that are multiples of 16 bytes
    how: dict[str, Any] = {"experts_implementation": "eager"} if model.num_experts else {}
    if directory:
        _check_unchanged(model, Path(directory))
    source = source_of(spec.weights, spec.seed)
    if spec.weights.kind == "directory":
        if read_json(Path(directory) / CONFIG).get("quantization_config"):
            how["quantization_config"] = Mxfp4Config(dequantize=True)
        found = kind.from_pretrained(directory, dtype=dtype, use_safetensors=True, **how, **local).eval()
        if model.weight_bits:
            fill(found, model, InBits(source))
        return _taking_int8(found, model.int8_group, shake) if model.activation_bits else found
    if directory:
        config = AutoConfig.from_pretrained(directory, **local)
    else:
        written = config_of_spec(model)
        config = AutoConfig.for_model(written.pop("model_type"), **written)
    with no_init_weights():
        made = kind.from_config(config, dtype=dtype, **how)
    made.tie_weights()
    fill(made, model, InBits(source) if model.weight_bits else source)
    return _taking_int8(made.eval(), model.int8_group, shake) if model.activation_bits else made.eval()


def _taking_int8(module: Any, group: int, shake: int) -> Any:
    """The library's module, every product of whose layers takes in numbers that are rounded to 8 bits by
    groups. The product of the rounded numbers is that of whole numbers but for rounding of its dtype.
    """
    import torch
    from transformers.pytorch_utils import Conv1D

    head = module.get_output_embeddings()
    for part in module.modules():
        if isinstance(part, torch.nn.Linear | Conv1D) and part is not head:
            part.register_forward_pre_hook(
                lambda _, inputs: (
                    rounded_inputs(_moved(inputs[0], shake) if shake else inputs[0], group),
                    *inputs[1:],
                )
            )
    return module


SHAKEN = 2.0**-22
"""The share of a number by which other orders of additions in float32 may move it within a few layers."""


def _moved(x: torch.Tensor, shake: int) -> torch.Tensor:
    """`x` with 2 ** (shake - 1) inputs a little larger, as many after them a little smaller, and so on."""
    import torch

    places = torch.arange(x.shape[-1]) >> (shake - 1)
    return x * (1 + SHAKEN * (1 - 2 * (places % 2)).to(x.dtype))


def rounded_inputs(x: torch.Tensor, group: int) -> torch.Tensor:
    """`x` [..., inputs] with every `group` inputs rounded to 8 bits, of which it gets the nearest; restored.

    A group's scale is its largest number over 127, in float32.
    """
    import torch

    groups = x.unflatten(-1, (-1, group))
    scales = (groups.abs().amax(dim=-1, keepdim=True).float() / 127).to(x.dtype)
    numbers = torch.where(scales > 0, groups / scales, 0.0).round().clamp(-127, 127)
    restored: torch.Tensor = (numbers * scales).flatten(-2)
    return restored


NO_PART_OF_A_CONFIG = (
    *("name", "source", "dtype", "weight_bits", "activation_bits"),
    *("likely_experts", "expert_load", "draft", "likely_acceptance"),
)
"""Fields of a model that a run may have otherwise than its directory."""


def _check_unchanged(model: ModelSpec, directory: Path) -> None:
    stored = read_spec(directory, model.name)
    for field in ModelSpec.model_fields:
        if field not in NO_PART_OF_A_CONFIG and getattr(stored, field) != getattr(model, field):
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
    rows = rows_in_file(model, part.name, stored, part.full_shape[0])
    end = rows.first + rows.step * part.full_shape[0]
    target[rows.first : end : rows.step].copy_(source.read(model, part))
    return name


def leave_out_unused() -> None:
    """Let `transformers` find none of `UNUSED`, in a process that imports it for a reference.

    Where a part of it is imported already, its other parts import what that has found.
    """
    for name in UNUSED if "transformers" not in sys.modules else ():
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # so it counts as not installed
