"""How narrowly another token would have been drawn: by little after rounding, by much after a mistake."""

import numpy as np
import pytest
import torch

from engine.domain.sampling import Sampling, TokenDraw
from engine.models.reference.choices import chosen, lead
from engine.ops.draws import drawn

WAYS = [{}, {"top_k": 4}, {"top_p": 0.7}, {"top_k": 6, "top_p": 0.8}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_a_token_that_rounding_brings_about_leads_by_no_more_than_two_errors(way, temperature):
    """Logits off by up to `error` each: a difference of two, or the odds of two groups, by twice that."""
    random, how = np.random.default_rng(5), Sampling(temperature=temperature, seed=2, **way)
    flips = 0
    for index in range(1500):
        exact, error = random.normal(size=20) * 2, 10 ** random.uniform(-2, -0.7)
        off = exact + random.uniform(-error, error, size=20)
        best, token = (drawn(TokenDraw(how, index), logits) for logits in (exact, off))
        if token != best:
            flips += 1
            assert lead(torch.tensor(exact), how, index, best, token) <= 2 * error
    assert flips >= 10


@pytest.mark.parametrize("way", WAYS[1:])
def test_a_token_that_may_not_be_drawn_leads_clearly_against(way):
    """It would be drawn among all tokens, and is far from those that may be."""
    logits = torch.tensor([3.0, 2.9, 2.8, 2.7, 2.6, 2.5, -3.0, -3.0])
    everything, some = Sampling(temperature=2.0, seed=1), Sampling(temperature=2.0, seed=1, **way)
    found = 0
    for index in range(400):
        token, best = (drawn(TokenDraw(how, index), logits.double().numpy()) for how in (everything, some))
        if token >= 6:
            found += 1
            assert lead(logits, some, index, best, token) > 1
    assert found >= 10


def test_without_sampling_the_lead_is_the_difference_of_two_logits():
    logits = torch.tensor([1.0, 4.0, 3.75])
    assert chosen(logits[None], None) == [1]
    assert lead(logits, None, 0, 1, 2) == 0.25


def test_a_token_at_the_edge_of_the_first_k_leads_by_what_keeps_it_out():
    """By hand: the second and third of four logits are 0.25 apart, and top-k is 2."""
    logits = torch.tensor([2.0, 1.0, 0.75, -9.0])
    how = Sampling(temperature=1e-3, seed=0, top_k=2)
    assert lead(logits, how, 0, 0, 2) == pytest.approx(1.25, abs=0.02)
    flat = Sampling(temperature=5.0, seed=0, top_k=2)
    free = Sampling(temperature=5.0, seed=0)
    numbers = logits.double().numpy()
    index = next(i for i in range(100) if drawn(TokenDraw(free, i), numbers) == 2)
    best = drawn(TokenDraw(flat, index), numbers)
    assert lead(logits, flat, index, best, 2) == pytest.approx(0.25)
