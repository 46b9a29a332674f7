"""What a program that looks back at the tokens of its steps finds."""

from collections.abc import Sequence
from typing import Any

import edgeloom
from edgeloom.method import Ctx, Done, PlacesLayers, Plan, Step, Tensor, shape_of

SEEN: list[tuple[int, ...]] = []


class LooksBack(PlacesLayers[Any]):
    name = "looks_back"
    title = "Looks back"
    summary = "All layers on one device; when all tokens are there, the source reads the inputs of all steps."

    def plan(self, cluster: Any, model: Any, workload: Any, params: Any) -> Plan:
        return self.placed(cluster, model, workload, [(cluster.workers[0], model.num_layers)])

    def continuous(self, plan: Plan) -> bool:
        return True

    async def forward_all(
        self, ctx: Ctx, plan: Plan, steps: Sequence[Step], tokens: Sequence[Tensor | None], done: Done
    ) -> None:
        if ctx.rank == ctx.cluster.source_rank:
            assert [each is None for each in tokens] == [False, True, True], "only the prompt is there yet"
        await super().forward_all(ctx, plan, steps, tokens, done)
        if ctx.rank == ctx.cluster.source_rank:
            SEEN.extend(shape_of(each) for each in tokens if each is not None)


def test_the_input_of_a_step_stays_its_own_when_later_tokens_are_there() -> None:
    SEEN.clear()
    edgeloom.predict("lab-3", "demo-lm", LooksBack(), prompt_tokens=5, new_tokens=3)
    assert SEEN[:3] == [(1, 5), (1, 1), (1, 1)]
