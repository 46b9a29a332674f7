"""Train the demo language model: `python -m engine.models.training.train_demo --minutes 25 --seed 1`.

A GPT-2 of 6 layers x 8 heads learns the documentation that every Python installation carries
(`demo_corpus.py`), so that the demo cluster writes readable text and nothing is fetched from a model hub.

The learning-rate schedule follows elapsed time, not a step count: on any machine training ends after
`--minutes`, with the learning rate at zero. `--steps` replaces the clock and makes the result repeatable.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from engine.models.training.demo_corpus import HELD_OUT_ONE_IN, read_corpus

OUTPUT_DIR = Path(__file__).resolve().parents[1] / "demo_lm"
END = "<|endoftext|>"
VOCAB_SIZE = 4096
HIDDEN_SIZE = 128
NUM_POSITIONS = 256
SEQUENCES_PER_STEP = 8
SAMPLE_PROMPTS = (
    "The with statement is used to",
    "Return the number of",
    "If the file does not exist,",
)


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """A byte-level BPE: it can spell any text, in any language, with no unknown token."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[END],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def model_config(end_id: int) -> GPT2Config:
    return GPT2Config(
        vocab_size=VOCAB_SIZE,
        n_positions=NUM_POSITIONS,
        n_embd=HIDDEN_SIZE,
        n_layer=6,
        n_head=8,
        resid_pdrop=0.05,
        embd_pdrop=0.05,
        attn_pdrop=0.0,
        bos_token_id=end_id,
        eos_token_id=end_id,
    )


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix is orthogonalised before it is applied (K. Jordan, "Muon", 2024).

    It needs few steps: training takes minutes on one core. Newton-Schulz runs in float32:
    a CPU without bfloat16 products is several times slower in the usual half precision.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float):
        super().__init__(params, {"lr": lr, "momentum": 0.95, "weight_decay": 0.1})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                velocity = self.state[param].setdefault("velocity", torch.zeros_like(param))
                velocity.lerp_(param.grad, 1 - group["momentum"])
                update = orthogonalise(param.grad.lerp(velocity, group["momentum"]))
                scale = max(1.0, param.shape[1] / param.shape[0]) ** 0.5
                param.mul_(1 - group["lr"] * group["weight_decay"])
                param.add_(update, alpha=-group["lr"] * scale)


def orthogonalise(matrix: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrix with all singular values about 1, by the quintic Newton-Schulz iteration."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    result: Tensor = x if wide else x.T
    return result


def share_of_peak(progress: float) -> float:
    """Learning rate over its peak at `progress` in [0, 1]: a short warm-up, then a cosine down to zero."""
    warm_up = 0.03
    if progress < warm_up:
        return progress / warm_up + 0.01
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warm_up) / (1 - warm_up))))


def fit(model: GPT2LMHeadModel, tokens: Tensor, seed: int, seconds: float, max_steps: int | None) -> int:
    """Train `model` in place for `seconds`, or for `max_steps` steps; returns the steps taken."""
    matrices = [p for p in model.transformer.h.parameters() if p.ndim == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=0.02),
        torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01),
    ]
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    generator = torch.Generator().manual_seed(seed)
    window = torch.arange(NUM_POSITIONS)
    begin = last_line = time.monotonic()
    step = 0
    model.train()
    while True:
        elapsed = time.monotonic() - begin
        progress = step / max_steps if max_steps else elapsed / seconds
        if progress >= 1:
            return step
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * share_of_peak(progress)
        starts = torch.randint(len(tokens) - NUM_POSITIONS + 1, (SEQUENCES_PER_STEP, 1), generator=generator)
        batch = tokens[starts + window]
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        if time.monotonic() - last_line > 20:
            last_line = time.monotonic()
            sys.stderr.write(f"{progress:4.0%}  step {step}  loss {loss.item():.3f}\n")


@dataclass(frozen=True)
class Score:
    perplexity: float
    top1_accuracy: float
    num_tokens: int


@torch.no_grad()
def evaluate(model: GPT2LMHeadModel, texts_ids: Iterable[list[int]]) -> Score:
    """Each text from its own beginning: perplexity per token, and how often the first guess is right."""
    model.eval()
    loss_sum, hits, count = 0.0, 0, 0
    for ids in texts_ids:
        tokens = torch.tensor([ids[:NUM_POSITIONS]])
        logits, targets = model(input_ids=tokens).logits[0, :-1], tokens[0, 1:]
        loss_sum += float(nn.functional.cross_entropy(logits, targets, reduction="sum"))
        hits += int((logits.argmax(-1) == targets).sum())
        count += len(targets)
    return Score(math.exp(loss_sum / count), hits / count, count)


@torch.no_grad()
def complete(model: GPT2LMHeadModel, tokenizer: Tokenizer, prompt: str, new_tokens: int = 60) -> str:
    """Greedy text, prompt included."""
    model.eval()
    ids = tokenizer.encode(prompt).ids
    for _ in range(new_tokens):
        logits = model(input_ids=torch.tensor([ids])).logits
        ids.append(int(logits[0, -1].argmax()))
    return str(tokenizer.decode(ids))


def model_card(score: Score, facts: dict[str, str], samples: list[str]) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    texts = "\n\n".join(f"```\n{sample.strip()}\n```" for sample in samples)
    return f"""# demo-lm

A small GPT-2 that the project trains itself (`engine/models/training/train_demo.py`), so that a demo run
writes readable text and its accuracy can be measured, without a model hub.

| | |
|---|---|
{rows}
| held-out perplexity | {score.perplexity:.2f} per token |
| held-out top-1 accuracy | {score.top1_accuracy:.1%} of {score.num_tokens} tokens |

Held out: one paragraph in {HELD_OUT_ONE_IN}, chosen by the hash of its text, each scored from its own
beginning. The model saw no other text than its corpus: it imitates documentation and has no other use.

Greedy samples:

{texts}

## Corpus and licence
The text is what every Python installation carries, its prose only: the language reference
(`pydoc_data.topics`) and the docstrings of the standard library, (c) Python Software Foundation and the
modules' authors, under the PSF License Agreement version 2. The weights were made from that text alone.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.models.training.train_demo", description=__doc__)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--steps", type=int, help="train this many steps instead of --minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT_DIR)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    corpus = read_corpus()
    tokenizer = train_tokenizer(corpus.train)
    end_id = int(tokenizer.token_to_id(END) or 0)
    train_ids = [id_ for text in corpus.train for id_ in [end_id, *tokenizer.encode(text).ids]]
    held_out_ids = [[end_id, *tokenizer.encode(text).ids] for text in corpus.held_out]
    model = GPT2LMHeadModel(model_config(end_id))
    steps = fit(model, torch.tensor(train_ids), arguments.seed, arguments.minutes * 60, arguments.steps)

    score = evaluate(model, held_out_ids)
    facts = {
        "architecture": f"GPT-2, 6 layers of 8 heads, hidden {HIDDEN_SIZE}, {NUM_POSITIONS} positions, tied",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "tokenizer": f"byte-level BPE, {VOCAB_SIZE} tokens",
        "training text": f"{len(train_ids):,} tokens",
        "training": f"{steps} steps of {SEQUENCES_PER_STEP} x {NUM_POSITIONS} tokens, seed {arguments.seed}",
        "corpus and code of": f"Python {sys.version.split()[0]}, torch {torch.__version__.split('+')[0]}",
    }
    samples = [complete(model, tokenizer, prompt) for prompt in SAMPLE_PROMPTS]
    model.save_pretrained(arguments.output)
    (arguments.output / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(arguments.output / "tokenizer.json"))
    (arguments.output / "README.md").write_text(model_card(score, facts, samples))
    sys.stdout.write(
        f"{arguments.output}: held-out perplexity {score.perplexity:.2f}, "
        f"top-1 accuracy {score.top1_accuracy:.1%}\n"
    )


if __name__ == "__main__":
    main()
