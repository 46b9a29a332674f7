"""The contract of a method, by the function that methods from outside are checked with: ours keep it, and
what breaks it is found.
"""

from __future__ import annotations

import pytest

from edgeloom.testing import BrokenContract, check_strategy
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.models.reference.kept import Prompts
from engine.runs import calculate
from engine.strategies import registry
from engine.strategies.outside import of_file
from tests.support.outside import THIRDS, write_method

PLACED = (
    "        return self.placed(cluster, model, workload, [(first, cut), (last, model.num_layers - cut)])\n"
)
FORWARD = "\n    async def forward_all(self, ctx, plan, steps, tokens, done):\n"


@pytest.fixture(autouse=True, scope="module")
def references():
    """What `transformers` says depends on no method, so it is computed once for all of them."""
    known = {}

    def compute(spec):
        prompts = Prompts(spec)
        key = spec.workload.new_tokens, *map(prompts.folder, requests_of(spec))
        if key not in known:
            known[key] = transformers_outputs.compute(spec)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calculate, "compute_reference", compute)
        yield


@pytest.mark.parametrize("chosen", registry.STRATEGIES, ids=lambda chosen: chosen.name)
def test_a_method_keeps_the_contract(chosen):
    check_strategy(chosen)


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    monkeypatch.setattr(registry, "_BY_NAME", dict(registry._BY_NAME))
    monkeypatch.setattr(registry, "_OUTSIDE", dict(registry._OUTSIDE))


@pytest.fixture
def checked(tmp_path):
    """Checks the method in this text."""

    def check(text, **params):
        check_strategy(type(of_file(str(write_method(tmp_path, text))).method), params or None)

    return check


def test_a_method_that_only_places_layers_keeps_it(checked):
    checked(THIRDS)
    checked(THIRDS, share=0.5)


BROKEN = {
    "another plan each time": (
        THIRDS.replace(
            PLACED,
            "        self.given['n'] = self.given.get('n', 0) + 1\n"
            "        cut = self.given['n'] % 2\n" + PLACED,
        ),
        "makes another plan when it is asked again",
    ),
    "a layer left out": (
        THIRDS.replace("model.num_layers - cut)])", "model.num_layers - cut - 1)])"),
        "the stages end at layer 1, expected 2",
    ),
    "a message that nobody sends": (
        THIRDS + FORWARD + "        await ctx.recv((ctx.rank + 1) % ctx.world_size, 'never')\n",
        "deadlock",
    ),
    "no device but one": (
        THIRDS.replace("cluster.workers[-1]\n", "cluster.workers[-1]\n        last = 1\n"),
        "device 1 is no worker",
    ),
    "a reason of two sentences": (
        THIRDS + "\n    def supports(self, cluster, model):\n        return 'No. It cannot.'\n",
        "no single sentence",
    ),
    "a step of several requests taken for one of the first": (
        THIRDS
        + FORWARD
        + "        alone = [step.model_copy(update={'sequences': ()}) for step in steps]\n"
        + "        await super().forward_all(ctx, plan, alone, tokens, done)\n",
        "^scheduler continuous, .* 3 poisson: ",
    ),
    "nothing that it runs on": (
        THIRDS
        + "\n    def supports(self, cluster, model):\n        return 'it is too good for all of them.'\n",
        "has a reason against every model",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name, checked):
    text, says = BROKEN[name]
    with pytest.raises(BrokenContract, match=says):
        checked(text)


def test_wrong_numbers_are_found(checked):
    """A stage whose first layer is computed twice gives tokens that transformers does not."""
    twice = (
        "\n    def stage_layers(self, ctx, plan, layers):\n"
        "        from edgeloom.method.operations import Residual\n"
        "        from edgeloom.method.running import StageLayers\n\n"
        "        class Twice(StageLayers):\n"
        "            async def run(self, step, x):\n"
        "                again = Residual(self.layers.start, 'ffn')\n"
        "                return await super().run(step, await self.ctx.compute(again, x, x))\n\n"
        "        return Twice(ctx, plan, layers)\n"
    )
    with pytest.raises(BrokenContract, match="numbers are not those of transformers"):
        checked(THIRDS + twice)


def test_a_plan_that_does_not_look_at_memory_is_found(checked):
    careless = THIRDS + (
        "\n    def placed(self, cluster, model, workload, layers):\n"
        "        rich = [one.model_copy(update={'memory_bytes': 1e12}) for one in cluster.devices]\n"
        "        cluster = cluster.model_copy(update={'devices': tuple(rich)})\n"
        "        return super().placed(cluster, model, workload, layers)\n"
    )
    with pytest.raises(BrokenContract, match="expected a PlanError with need and have"):
        checked(careless)
