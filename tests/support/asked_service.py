"""An open workload on real devices over loopback: asked, cancelled, a device lost, ended. The file gets what
the processes of the devices said, and the report.
"""

import json
from pathlib import Path

from engine.domain.network import LoopbackNetwork
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star


class Asker:
    """Asks and changes by what it sees of the run."""

    def __init__(self):
        self.commands, self.said = [], {}

    def ask(self, name, tokens, new_tokens, **sampling):
        command = {"kind": "ask", "id": name, "tokens": tokens, "new_tokens": new_tokens}
        self.commands.append(command | {"sampling": sampling})

    def watch(self, event):
        if event.type == "process_log":
            self.said.setdefault(event.device, []).extend(event.lines)
        if event.type == "state" and event.state == "running":
            self.ask("long", [1, 2, 3], 30, temperature=1.0, top_p=0.9, seed=7)
            self.ask("waits", [5, 6], 30)
            self.ask("short", [9, 8, 7, 6], 4)
        if event.type != "mark":
            return
        if event.name == "token_emitted" and event.facts["request"] == 0 and event.facts["index"] == 1:
            self.commands.append({"kind": "withdraw", "id": "waits", "by": "carol"})
            self.commands.append({"kind": "drop_device", "device": "d2"})
        if event.name == "request_finished" and event.facts["request"] == 2:
            self.ask("cut", [4, 4], 30)
        if event.name == "token_emitted" and event.facts["request"] == 3 and event.facts["index"] == 2:
            self.commands.append({"kind": "end_service", "by": "carol"})


def main(target):
    model, weights = catalogue.resolve("tiny-llama")
    work = {"pattern": "serve", "prompt_tokens": 8, "new_tokens": 30, "requests": 9, "max_batch": 2}
    work["scheduler"] = "fcfs"
    spec = spec_of("gpipe", model, star((4e8, 1e8, 2.5e8))).model_copy(
        update={"weights": weights, "dilation": 16.0, "workload": Workload.parse(work, "test")}
    )
    asker = Asker()
    report = execute(
        spec,
        lambda spec, dilation: LoopbackNetwork(spec.cluster),
        asker.watch,
        lambda: asker.commands.pop(0) if asker.commands else None,
    )
    Path(target).write_text(json.dumps({"said": asker.said, "report": report.model_dump(mode="json")}))
