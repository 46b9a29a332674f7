"""Drawn tokens: the generator's numbers, the distribution, and what parts of the vocabulary send."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from engine.domain.sampling import Sampling, TokenDraw, candidates_of_part
from engine.ops.draws import allowed, drawn, gumbel, scores
from engine.ops.head_columns import Candidates, DrawAmong
from engine.ops.tokens import Draw
from engine.ops.torch_kernels import dispatch
from tests.support.philox import philox
from tests.support.small_cases import LLAMA

WAYS = {
    "temperature": {},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.6},
    "both": {"top_k": 8, "top_p": 0.7},
}


def sampling(temperature=1.0, seed=3, **more):
    return Sampling(temperature=temperature, seed=seed, **more)


def test_the_generator_of_the_tests_gives_the_published_numbers():
    """Known answers of the authors' own library, Random123: for nothing but zeros, and for digits of pi."""
    assert philox((0, 0, 0, 0), (0, 0)) == (
        0x16554D9ECA36314C,
        0xDB20FE9D672D0FDC,
        0xD7E772CEE186176B,
        0x7E68B68AEC7BA23B,
    )


def test_the_numbers_are_philoxs_and_depend_on_seed_request_token_and_id_alone():
    for seed, stream, index in ((0, 0, 0), (7, 2, 9), (2**63 - 1, 4, 1)):
        expected = []
        for block in range(5):
            for bits in philox((block + 1, 0, index, 0), (seed, stream)):
                expected.append(-np.log(-np.log(((bits >> 12) + 0.5) / 2**52)))
        got = gumbel(sampling(seed=seed, stream=stream), index, np.arange(20))
        np.testing.assert_allclose(got, expected, rtol=1e-12)
        some = np.array([3, 5, 18])
        np.testing.assert_allclose(
            gumbel(sampling(seed=seed, stream=stream), index, some), got[some], rtol=1e-12
        )


LOGITS = np.array([1.0, 0.2, -0.5, 2.0, 1.9, -3.0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_have_the_frequencies_that_the_library_gives_them(way, temperature):
    """Chi-square of 4,000 draws, 99.9 % point; the library's own warpers give the probabilities."""
    draws = 4000
    more = {name: min(value, 3) if name == "top_k" else value for name, value in WAYS[way].items()}
    how = sampling(temperature, **more)
    rows = TemperatureLogitsWarper(temperature)(None, torch.tensor(LOGITS)[None])
    if "top_k" in more:
        rows = TopKLogitsWarper(more["top_k"])(None, rows)
    if "top_p" in more:
        rows = TopPLogitsWarper(more["top_p"])(None, rows)
    expected = rows.softmax(-1)[0].numpy() * draws
    found = np.bincount([drawn(TokenDraw(how, index), LOGITS) for index in range(draws)], minlength=6)
    assert not found[expected == 0].any()
    possible = expected > 0
    chi_square = ((found - expected)[possible] ** 2 / expected[possible]).sum()
    assert chi_square < CHI_SQUARE_999[possible.sum() - 1]


CHI_SQUARE_999 = (0.0, 10.828, 13.816, 16.266, 18.467, 20.515)
"""By degrees of freedom, from tables."""


@pytest.mark.parametrize("seed", range(40))
def test_who_may_be_drawn_are_those_of_the_library(seed):
    random = np.random.default_rng(seed)
    logits = random.normal(size=30) * 3
    top_p, top_k, temperature = (
        random.uniform(0.05, 0.99),
        int(random.integers(1, 40)),
        random.uniform(0.1, 3),
    )
    rows = TemperatureLogitsWarper(temperature)(None, torch.tensor(logits)[None])
    rows = TopPLogitsWarper(top_p)(None, TopKLogitsWarper(top_k)(None, rows))
    how = sampling(temperature, top_p=top_p, top_k=top_k)
    assert allowed(how, logits).tolist() == torch.nonzero(rows[0].isfinite()).flatten().tolist()


def test_tokens_that_follow_each_other_are_independent():
    """Noise that is used again would draw the same token at every place from the same logits."""
    flat, how = np.zeros(4), sampling()
    tokens = [drawn(TokenDraw(how, index), flat) for index in range(4000)]
    pairs = np.zeros((4, 4))
    for pair in pairwise(tokens):
        pairs[pair] += 1
    assert ((pairs - 250) ** 2 / 250).sum() < 37.70  # 15 degrees of freedom, 99.9 %


@pytest.mark.parametrize("bounds", [(0, 50), (0, 17, 50), (0, 1, 2, 3, 49, 50), (0, 25, 26, 50)])
@pytest.mark.parametrize("way", [*WAYS, "mixed"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_parts_of_the_vocabulary_draw_the_token_of_the_whole(bounds, way, dtype):
    """Ties, which bfloat16 has, go to the lowest id on both ways."""
    random = torch.Generator().manual_seed(1)
    logits = (torch.randn(40, 50, generator=random) * 2).to(dtype)
    ways = list(WAYS.values())[:2] if way == "mixed" else [WAYS[way]]
    hows = [sampling(0.9, stream=row, **ways[row % len(ways)]) for row in range(40)]
    if way == "mixed":
        hows[3] = None
    draws = tuple(TokenDraw(how, 4) for how in hows)
    whole = dispatch.run(Draw(draws), LLAMA, None, {}, (logits,)).tolist()
    assert whole[3] == int(logits[3].float().argmax()) or way != "mixed"
    parts = [(start, logits[:, start:stop]) for start, stop in pairwise(bounds)]
    count = candidates_of_part(draws)
    if not count:
        joined = dispatch.run(Draw(draws), LLAMA, None, {}, tuple(part for _, part in parts))
        assert joined.tolist() == whole
        return
    found = [
        dispatch.run(Candidates(start, min(count, part.shape[1]), draws), LLAMA, None, {}, (part,))
        for start, part in parts
    ]
    assert all(one.shape[1] <= count for one in found)
    assert dispatch.run(DrawAmong(draws), LLAMA, None, {}, tuple(found)).tolist() == whole


def test_the_largest_score_is_drawn_and_a_small_temperature_takes_the_most_likely_token():
    how = sampling(1e-30)
    assert [drawn(TokenDraw(how, index), LOGITS) for index in range(50)] == [3] * 50
    draw = TokenDraw(sampling(2.0), 8)
    assert drawn(draw, LOGITS) == int(scores(draw, LOGITS, np.arange(6)).argmax())


def test_numbers_that_are_not_finite_end_no_run():
    nan = np.array([0.0, np.nan, 1.0])
    assert drawn(TokenDraw(sampling(top_p=0.5), 0), nan) in (0, 1, 2)


def test_a_sampling_travels_as_integers():
    how = sampling(0.7, top_p=0.9, top_k=40, seed=2**63 - 1, stream=12)
    assert Sampling.of_numbers(how.as_numbers()) == how
