"""An open workload whose requests join each other, on real devices over loopback: the file gets the report,
and who was in each step.
"""

import json
from pathlib import Path

from engine.domain.network import LoopbackNetwork
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star

LONG, JOINS, LEAVES, STOPS, LAST = range(5)
WITH_A_PAUSE_TO_JOIN = 40


class Asker:
    """Asks and changes by what it sees of the run: each thing once."""

    def __init__(self):
        self.commands, self.steps = [], []
        self.when = {
            (LONG, 1): self.ask_others,
            (LEAVES, 2): lambda: self.withdraw("leaves"),
            (STOPS, 2): lambda: self.withdraw("stops", answered=True),
            (LONG, 12): lambda: self.commands.append({"kind": "drop_device", "device": "d2"}),
            (LONG, 20): lambda: self.ask("last", [8, 8], 30),
            (LAST, 24): lambda: self.commands.append({"kind": "end_service", "by": "carol"}),
        }

    def ask(self, name, tokens, new_tokens, **sampling):
        command = {"kind": "ask", "id": name, "tokens": tokens, "new_tokens": new_tokens}
        self.commands.append(command | {"sampling": sampling})

    def ask_others(self):
        self.ask("joins", [9, 8, 7, 6], 16, temperature=1.0, top_p=0.9, seed=7)
        self.ask("leaves", [5, 6], WITH_A_PAUSE_TO_JOIN)
        self.ask("stops", [1], WITH_A_PAUSE_TO_JOIN)

    def withdraw(self, name, answered=False):
        self.commands.append({"kind": "withdraw", "id": name, "by": "carol", "answered": answered})

    def watch(self, event):
        if event.type == "state" and event.state == "running":
            self.ask("long", [1, 2, 3], WITH_A_PAUSE_TO_JOIN)
        if event.type == "mark" and event.name == "step_scheduled":
            self.steps.append(event.facts["requests"])
        if event.type == "mark" and event.name == "token_emitted":
            self.when.pop((event.facts["request"], event.facts["index"]), lambda: None)()


def main(target, strategy, scheduler):
    model, weights = catalogue.resolve("tiny-llama")
    work = {"pattern": "serve", "prompt_tokens": 8, "new_tokens": WITH_A_PAUSE_TO_JOIN, "requests": 9}
    work |= {"max_batch": 5, "scheduler": scheduler}
    chooser = {"head": "last"} if strategy == "gpipe" else {}  # who chooses must be told how
    spec = spec_of(strategy, model, star((4e8, 1e8, 2.5e8)), **chooser).model_copy(
        update={"weights": weights, "dilation": 16.0, "workload": Workload.parse(work, "test")}
    )
    asker = Asker()
    report = execute(
        spec,
        lambda spec, dilation: LoopbackNetwork(spec.cluster),
        asker.watch,
        lambda: asker.commands.pop(0) if asker.commands else None,
    )
    found = {"steps": asker.steps, "report": report.model_dump(mode="json")}
    Path(target).write_text(json.dumps(found))
