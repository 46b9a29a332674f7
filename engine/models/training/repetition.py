"""Find and punish repetition: greedy text of small models otherwise ends in loops.

Welleck et al., "Neural Text Generation with Unlikelihood Training" (ICLR 2020), section 5.2: the model
continues a prefix greedily, and every token of its continuation that completes an n-gram seen before is made
less likely.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

NGRAM = 6
LOOP_REPEATS = 3


def repeats(tokens: Sequence[int], n: int = NGRAM) -> list[bool]:
    """Whether, token by token, the n-gram that it ends stands earlier in `tokens` too."""
    seen: set[tuple[int, ...]] = set()
    result = []
    for end in range(1, len(tokens) + 1):
        ngram = tuple(tokens[max(0, end - n) : end])
        result.append(len(ngram) == n and ngram in seen)
        if len(ngram) == n:
            seen.add(ngram)
    return result


def loops(tokens: Sequence[int]) -> bool:
    """Whether some phrase of 1 to 16 tokens stands `LOOP_REPEATS` times in a row."""
    for period in range(1, 17):
        same = 0
        for now, later in zip(tokens, tokens[period:], strict=False):
            same = same + 1 if now == later else 0
            if same >= period * (LOOP_REPEATS - 1):
                return True
    return False


@torch.no_grad()
def continue_greedily(model: GPT2LMHeadModel, prefix: Tensor, new_tokens: int) -> Tensor:
    """The likeliest next tokens [B, new_tokens] after `prefix` [B, T], with a KV cache."""
    cache, fed, chosen = None, prefix, []
    for _ in range(new_tokens):
        out = model(input_ids=fed, past_key_values=cache, use_cache=True)
        cache, fed = out.past_key_values, out.logits[:, -1:].argmax(-1)
        chosen.append(fed)
    return torch.cat(chosen, 1)


def unlikelihood(model: GPT2LMHeadModel, prefix: Tensor, new_tokens: int) -> Tensor:
    """Mean of -log(1 - p(token)) over the repeated tokens of the model's own continuation (eq. 8)."""
    continuation = continue_greedily(model, prefix, new_tokens)
    text = torch.cat([prefix, continuation], 1)
    mask = torch.tensor([repeats(row) for row in text.tolist()])[:, prefix.shape[1] :]
    logits = model(input_ids=text[:, :-1]).logits[:, prefix.shape[1] - 1 :].float()
    chosen = logits.log_softmax(-1).gather(-1, continuation[..., None])[..., 0]
    loss = -torch.log1p(-chosen.exp().clamp(max=1 - 1e-5))
    return (loss * mask).sum() / mask.sum().clamp(min=1)
