"""Compute what `transformers` says after every token that a run has emitted (teacher forcing).

The library gets the run's own tokens as input, many in one pass. If it prefers each of them where the run
chose it, they are the tokens that it would have chosen by itself. Once a run has emitted another one, what
follows can only be compared after the same text. Numbers "own" are the model's; "precise" ones are twice as
wide, for the same weights: the difference of both is the rounding error of the model's own. "shaken"
ones are those of a model in whole numbers of 8 bits whose products take in a little more or less, each in
another way, so that some of these are the next ones.

`main([SPEC.json, FOLDER, ANSWERS.json, NUMBERS])` writes FOLDER/I.safetensors for every request I of ANSWERS;
for none of them it only imports, loads and reads what the next call needs.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.inputs.library_tokenizer import library_ids
from engine.models.inputs.prompts import is_chat, pixels_of, requests_of, tokenised_text
from engine.models.reference import kept
from engine.models.reference.choices import chosen
from engine.models.reference.process import Said, prepare, run_apart, say
from engine.models.reference.transformers_outputs import Reference, leave_out_unused, library_model

if TYPE_CHECKING:
    import torch

Numbers = Literal["own", "precise", "shaken-1", "shaken-2", "shaken-3", "shaken-4"]
SHAKEN: tuple[Numbers, ...] = ("shaken-1", "shaken-2", "shaken-3", "shaken-4")
Tokens = Sequence[Sequence[int]]
"""What a run has emitted for each request; nothing for each where the model generates none."""
Forced = Callable[[Tokens, Numbers], "Sequence[torch.Tensor]"]
"""`forced(tokens, numbers)`: logits [new_tokens, V] of every request, or its hidden states [T, D]."""
TWICE_AS_WIDE = {"bfloat16": "float32", "float32": "float64"}
AT_ONCE = 256
"""Tokens of an answer in one pass: between two of them it is told how far it is."""
ROWS, TEXT_IDS = "rows", "text_ids"
MODULE = "engine.models.reference.teacher_forcing"


def reference_after(
    spec: RunSpec,
    tokens: Tokens,
    numbers: Numbers = "own",
    said: Said = lambda words: None,
    cache_dir: Path | None = None,
) -> Reference:
    """The reference of every request of `spec` after the `tokens` that a run has emitted. What was computed
    before, for whichever run, comes from the cache.

    Raises `HostError` when the process that computes it fails.
    """
    requests, prompts = requests_of(spec), kept.Prompts(spec)
    places = [
        prompts.place(request, answer, numbers) for request, answer in zip(requests, tokens, strict=True)
    ]
    found = {place: entry for place in set(places) if (entry := kept.read(place, cache_dir)) is not None}
    missing = {places.index(place): place for place in places if place not in found}
    if missing:
        found |= _computed(spec, {at: tokens[at] for at in missing}, numbers, missing, said, cache_dir)
    rows = tuple(found[place][ROWS] for place in places)
    text = found[places[0]].get(TEXT_IDS)
    text_ids = None if text is None else tuple(text.tolist())
    if not spec.workload.new_tokens:
        return Reference((), (), rows, text_ids)
    ids = [tuple(chosen(each, one.sampling)) for each, one in zip(rows, requests, strict=True)]
    return Reference(tuple(ids), rows, (), text_ids)


def _computed(
    spec: RunSpec,
    answers: Mapping[int, Sequence[int]],
    numbers: Numbers,
    places: Mapping[int, kept.Place],
    said: Said,
    cache_dir: Path | None,
) -> dict[kept.Place, dict[str, torch.Tensor]]:
    from safetensors.torch import load_file

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        asked, made = Path(folder) / "answers.json", Path(folder) / "made"
        asked.write_text(json.dumps({at: list(answer) for at, answer in answers.items()}), encoding="utf-8")
        made.mkdir()
        run_apart(MODULE, spec, made, str(asked), numbers, said=said)
        for at, place in places.items():
            file = made / f"{at}.safetensors"
            kept.keep(place, file, cache_dir)
            found[place] = load_file(file)
    return found


def prepare_reference(spec: RunSpec, folder: Path) -> None:
    """Let the shared process, if there is one, import the library and load the model of `spec` now, unless
    answers to its prompts are kept. `folder` must stay as long as that takes.
    """
    if kept.Prompts(spec).are_known(requests_of(spec)):
        return
    asked, nothing = folder / "prepare.json", folder / "nothing.json"
    asked.write_text(spec.model_dump_json(), encoding="utf-8")
    nothing.write_text("{}", encoding="utf-8")
    prepare(MODULE, [str(asked), str(folder), str(nothing), "own"])


def compute(spec: RunSpec, tokens: Tokens, numbers: Numbers = "own") -> list[torch.Tensor]:
    """Logits [new_tokens, V] of every request, `tokens` being what it has emitted; hidden states [T, D], or a
    classifier's logits [C], where it generates none; computed here and now.
    """
    computed = _answers(spec, dict(enumerate(tokens)), _model_of(spec, numbers))
    return [rows for _, rows in computed]


def _model_of(spec: RunSpec, numbers: Numbers) -> Any:
    model = library_model(spec, SHAKEN.index(numbers) + 1 if numbers in SHAKEN else 0)
    return _widened(spec, model) if numbers == "precise" else model


def _widened(spec: RunSpec, model: Any) -> Any:
    import torch

    return model.to(getattr(torch, TWICE_AS_WIDE[spec.model.dtype]))


def _answers(
    spec: RunSpec, answers: Mapping[int, Sequence[int]], model: Any
) -> Iterator[tuple[int, torch.Tensor]]:
    import torch

    every = requests_of(spec)
    done, total = 0, sum(map(len, answers.values()))

    def note(tokens: int) -> None:
        nonlocal done
        done += tokens
        say(f"{done} of {total} tokens")

    with torch.inference_mode():
        for at, emitted in answers.items():
            yield at, _outputs(spec, model, every[at], emitted, note).clone()


def _outputs(
    spec: RunSpec, model: Any, request: Request, emitted: Sequence[int], note: Callable[[int], None]
) -> torch.Tensor:
    import torch

    seen = {}
    if spec.model.reads_text:
        seen["input_ids"] = torch.tensor([request.tokens])
    if spec.model.vision:
        pixels = torch.from_numpy(pixels_of(spec, request.index)).to(getattr(torch, spec.model.dtype))
        seen["pixel_values"] = pixels[None].to(model.dtype)
    if spec.model.num_classes:
        classes: torch.Tensor = model(**seen).logits[0]
        return classes
    if not emitted:
        states: torch.Tensor = model.base_model(**seen).last_hidden_state[0]
        return states
    out = model(**seen, use_cache=True, logits_to_keep=1)
    rows = [out.logits[0]]
    note(1)
    # in passes of their own: an emitted token may have the id that stands for an image in a prompt
    for start in range(0, len(emitted) - 1, AT_ONCE):
        piece = emitted[start : min(start + AT_ONCE, len(emitted) - 1)]
        out = model(input_ids=torch.tensor([piece]), past_key_values=out.past_key_values, use_cache=True)
        rows.append(out.logits[0])
        note(len(piece))
    return torch.cat(rows)


_loaded: dict[str, Any] = {}
"""The model of the last question, by what decides it: the next one is mostly about the same."""


def _loaded_model(spec: RunSpec, numbers: Numbers) -> Any:
    facts: list[Any] = [each.model_dump(mode="json") for each in (spec.model, spec.weights)]
    facts.append(kept.facts_of_weights(spec))
    own, key = (json.dumps([*facts, each], sort_keys=True) for each in ("own", numbers))
    if key not in _loaded:
        model = _loaded.pop(own, None) if numbers == "precise" else None
        _loaded.clear()
        _loaded[key] = _model_of(spec, numbers) if model is None else _widened(spec, model)
    return _loaded[key]


def idle_cores() -> int:
    """How many cores nobody else uses now, at least one: threads that wait for each other would else spin on
    cores that others want.
    """
    running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    return max(1, len(os.sched_getaffinity(0)) - (running - 1))


def main(arguments: list[str]) -> None:
    leave_out_unused()
    import torch
    from safetensors.torch import save_file

    spec_path, folder, answers_path, numbers = arguments
    assert numbers in get_args(Numbers), numbers
    spec = RunSpec.parse(json.loads(Path(spec_path).read_text(encoding="utf-8")), spec_path)
    answers = json.loads(Path(answers_path).read_text(encoding="utf-8"))
    torch.set_num_threads(idle_cores())
    model = _loaded_model(spec, cast(Numbers, numbers))
    text, more = tokenised_text(spec), {}
    if text is not None:
        more[TEXT_IDS] = torch.tensor(library_ids(spec.weights.directory, text, is_chat(spec)))
    for at, rows in _answers(spec, {int(at): answer for at, answer in answers.items()}, model):
        save_file({ROWS: rows.contiguous(), **more}, Path(folder) / f"{at}.safetensors")
