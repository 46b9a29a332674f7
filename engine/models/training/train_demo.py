"""Train the demo language model: `python -m engine.models.training.train_demo`, about an hour on one core.

A GPT-2 of 6 layers x 8 heads learns the documentation of Python and of EdgeLoom's dependencies
(`demo_corpus.py`), so that the demo cluster writes readable text and nothing is fetched from a model hub. At
first it learns to predict the next token, then also to leave loops (`repetition.py`).

The number of steps, the seed, the versions of the packages and the kind of processor decide the result.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from engine.models.training.demo_corpus import HELD_OUT_ONE_IN, PACKAGES, read_corpus
from engine.models.training.muon import Muon
from engine.models.training.repetition import continue_greedily, loops, unlikelihood

OUTPUT_DIR = Path(__file__).resolve().parents[1] / "demo_lm"
END = "<|endoftext|>"
VOCAB_SIZE = 4096
HIDDEN_SIZE = 160
NUM_POSITIONS = 256
SEQUENCES_PER_STEP = 16
CONTINUATION = 64
UNLIKELIHOOD_WEIGHT = 0.25  # more costs more perplexity than it saves loops
DISTRIBUTIONS = {"sklearn": "scikit-learn", "django": "Django"}
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
        activation_function="gelu_pytorch_tanh",  # the function of "gelu_new" in one kernel
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end_id,
        eos_token_id=end_id,
    )


def share_of_peak(progress: float) -> float:
    """Learning rate over its peak at `progress` in [0, 1]: a short warm-up, then a cosine down to zero."""
    warm_up = 0.03
    if progress < warm_up:
        return progress / warm_up + 0.01
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warm_up) / (1 - warm_up))))


@dataclass(frozen=True)
class Text:
    """All pages as one sequence of tokens, an END after each; `starts` are the beginnings of paragraphs."""

    tokens: Tensor
    starts: Tensor

    @classmethod
    def of(cls, pages: Iterable[str], tokenizer: Tokenizer, end_id: int) -> Text:
        tokens: list[int] = []
        starts: list[int] = []
        for page in pages:
            for paragraph in page.split("\n"):
                starts.append(len(tokens))
                tokens += tokenizer.encode(paragraph + "\n").ids
            tokens.append(end_id)
        last = len(tokens) - NUM_POSITIONS
        return cls(torch.tensor(tokens), torch.tensor([start for start in starts if start <= last] or [0]))

    def windows(self, end_id: int, generator: torch.Generator) -> Tensor:
        """A batch [B, NUM_POSITIONS]: END, then text from the beginning of a paragraph on, as prompts begin
        too.
        """
        chosen = torch.randint(len(self.starts), (SEQUENCES_PER_STEP,), generator=generator)
        body = self.tokens[self.starts[chosen, None] + torch.arange(NUM_POSITIONS - 1)]
        return torch.cat([torch.full((len(body), 1), end_id), body], 1)


def next_token_loss(model: GPT2LMHeadModel, batch: Tensor) -> Tensor:
    """Mean cross-entropy in nats; products in bfloat16, which some processors do several times faster."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = model.transformer(input_ids=batch[:, :-1], use_cache=False).last_hidden_state
        logits = model.lm_head(rows)
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


def fit(model: GPT2LMHeadModel, text: Text, end_id: int, seed: int, steps: int) -> None:
    """Train `model` in place to predict the next token."""
    matrices = [p for p in model.transformer.h.parameters() if p.ndim == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=0.02),
        torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01),
    ]
    generator = torch.Generator().manual_seed(seed)

    def loss_of(step: int) -> Tensor:
        return next_token_loss(model, text.windows(end_id, generator))

    descend(model, optimizers, loss_of, steps, "predicting the next token")


def leave_loops(model: GPT2LMHeadModel, text: Text, end_id: int, seed: int, steps: int) -> None:
    """Train `model` in place not to repeat phrases: every step also punishes repeats in its own text."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.0)
    generator = torch.Generator().manual_seed(seed + 1)

    def loss_of(step: int) -> Tensor:
        windows = text.windows(end_id, generator)
        length = 4 + step % 29
        own = unlikelihood(model, windows[:, :length], CONTINUATION)
        return next_token_loss(model, windows) + UNLIKELIHOOD_WEIGHT * own

    descend(model, [optimizer], loss_of, steps, "leaving loops")


def descend(
    model: GPT2LMHeadModel,
    optimizers: list[torch.optim.Optimizer],
    loss_of: Callable[[int], Tensor],
    steps: int,
    what: str,
) -> None:
    """Take `steps` steps of all optimizers; the learning rates warm up and end at zero."""
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    last_line = time.monotonic()
    model.train()
    for step in range(steps):
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * share_of_peak(step / steps)
        loss = loss_of(step)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if time.monotonic() - last_line > 20:
            last_line = time.monotonic()
            sys.stderr.write(f"{what}: {step / steps:4.0%}, step {step}, loss {loss.item():.3f}\n")


@dataclass(frozen=True)
class Score:
    """How good a model is on held-out text: perplexity per token, how often the first guess is right, how
    often greedy text of `CONTINUATION` tokens after a paragraph's first eight tokens loops.
    """

    perplexity: float
    top1_accuracy: float
    num_tokens: int
    loops_frac: float


@torch.no_grad()
def evaluate(model: GPT2LMHeadModel, texts_ids: Sequence[list[int]]) -> Score:
    """Each text from its own beginning."""
    model.eval()
    loss_sum, hits, count = 0.0, 0, 0
    for ids in texts_ids:
        tokens = torch.tensor([ids[:NUM_POSITIONS]])
        logits, targets = model(input_ids=tokens).logits[0, :-1], tokens[0, 1:]
        loss_sum += float(nn.functional.cross_entropy(logits, targets, reduction="sum"))
        hits += int((logits.argmax(-1) == targets).sum())
        count += len(targets)
    prompts = torch.tensor([ids[:9] for ids in texts_ids if len(ids) >= 9][:200])
    written = continue_greedily(model, prompts, CONTINUATION).tolist()
    return Score(math.exp(loss_sum / count), hits / count, count, sum(map(loops, written)) / len(written))


@torch.no_grad()
def complete(model: GPT2LMHeadModel, tokenizer: Tokenizer, prompt: str) -> str:
    """Greedy text of `CONTINUATION` tokens, prompt included."""
    model.eval()
    ids = torch.tensor([tokenizer.encode(prompt).ids])
    return str(tokenizer.decode([*ids[0].tolist(), *continue_greedily(model, ids, CONTINUATION)[0].tolist()]))


def model_card(score: Score, of_python: Score, facts: dict[str, str], samples: list[str]) -> str:
    """The text of the model card. `of_python`: the score on what is held out of Python's own
    documentation.
    """
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    texts = "\n\n".join(f"```\n{sample.strip()}\n```" for sample in samples)
    return f"""# demo-lm

A small GPT-2 that the project trains itself (`engine/models/training/train_demo.py`), so that a demo run
writes readable text and its accuracy can be measured, without a model hub.

| | |
|---|---|
{rows}
| held-out perplexity | {score.perplexity:.2f} per token |
| of it, Python's own documentation | {of_python.perplexity:.2f} per token |
| held-out top-1 accuracy | {score.top1_accuracy:.1%} of {score.num_tokens} tokens |
| greedy text of {CONTINUATION} tokens that loops | {score.loops_frac:.1%} of 200 held-out beginnings |

Held out: one paragraph in {HELD_OUT_ONE_IN}, chosen by the hash of its text, each scored from its own
beginning. The model saw no other text than its corpus: it imitates documentation and has no other use.

Greedy samples:

{texts}

## Corpus and licence
The text is what an installation of EdgeLoom carries, its prose only. Of Python: the language reference
(`pydoc_data.topics`) and the docstrings of the standard library, (c) Python Software Foundation and the
modules' authors, under the PSF License Agreement version 2. Of PyTorch, NumPy, Django, SciPy, scikit-learn,
SymPy and NetworkX: their docstrings, (c) their authors, under licences of the BSD kind. The weights were made
from that text alone.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.models.training.train_demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=2200, help="to predict the next token")
    parser.add_argument("--loop-steps", type=int, default=150, help="to leave loops")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT_DIR)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    corpus = read_corpus()
    tokenizer = train_tokenizer(corpus.train)
    end_id = int(tokenizer.token_to_id(END) or 0)
    text = Text.of(corpus.train, tokenizer, end_id)
    held_out_ids = [[end_id, *tokenizer.encode(paragraph).ids] for paragraph in corpus.held_out]
    model = GPT2LMHeadModel(model_config(end_id))
    fit(model, text, end_id, arguments.seed, arguments.steps)
    leave_loops(model, text, end_id, arguments.seed, arguments.loop_steps)

    training = (
        f"{arguments.steps} steps of {SEQUENCES_PER_STEP} x {NUM_POSITIONS} tokens, then "
        f"{arguments.loop_steps} that also punish repeats; seed {arguments.seed}"
    )
    facts = {"training text": f"{len(text.tokens):,} tokens", "training": training}
    publish(model, tokenizer, held_out_ids, facts, arguments.output)


def publish(
    model: GPT2LMHeadModel,
    tokenizer: Tokenizer,
    held_out_ids: list[list[int]],
    trained: dict[str, str],
    output: Path,
) -> None:
    """Score the model, and write its weights, tokenizer and card into `output`."""
    score = evaluate(model, held_out_ids)
    of_python = evaluate(model, held_out_ids[: len(read_corpus(()).held_out)])  # Python's pages come first
    versions = [f"{name} {version(DISTRIBUTIONS.get(name, name))}" for name in PACKAGES]
    facts = {
        "architecture": f"GPT-2, 6 layers of 8 heads, hidden {HIDDEN_SIZE}, {NUM_POSITIONS} positions, tied",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "tokenizer": f"byte-level BPE, {VOCAB_SIZE} tokens",
        **trained,
        "corpus and code of": ", ".join([f"Python {sys.version.split()[0]}", *versions]),
    }
    samples = [complete(model, tokenizer, prompt) for prompt in SAMPLE_PROMPTS]
    model.config.activation_function = "gelu_new"
    model.save_pretrained(output)
    (output / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(output / "tokenizer.json"))
    (output / "README.md").write_text(model_card(score, of_python, facts, samples))
    sys.stdout.write(
        f"{output}: held-out perplexity {score.perplexity:.2f}, "
        f"top-1 accuracy {score.top1_accuracy:.1%}, loops {score.loops_frac:.1%}\n"
    )


if __name__ == "__main__":
    main()
