"""A process that plays real runs, or lets a copy of itself do what a module of the tests does: for all of
them torch is imported once, and `transformers` once by the process of the references.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

from engine.domain.spec import RunSpec
from engine.models.reference import process
from engine.runs.local import run_local


def play(path):
    """Report and trace of the run in this file."""
    report, trace = run_local(RunSpec.parse(json.loads(Path(path).read_text()), path))
    return {"report": report, "trace": trace}


def copy(module, arguments):
    """The exit status of a copy of this process that calls `main` of the module."""
    import torch  # noqa: F401

    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.dup2(2, 1)  # standard output carries the answers
        importlib.import_module(module).main(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # without what this process does at its end


def main():
    with process.one_process():
        for line in sys.stdin:
            asked = json.loads(line)
            if "spec" in asked:
                answer = play(asked["spec"])
            else:
                start_the_references()
                answer = copy(asked["module"], asked["arguments"])
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def start_the_references():
    """Start their process by a question that it refuses: a copy's own would end with the copy."""
    refused = process._shared[-1].compute("engine.models.reference.teacher_forcing", ["no spec", "none"])
    assert refused is not None


if __name__ == "__main__":
    main()
