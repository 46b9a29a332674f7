"""`--spec` of the commands that take a run."""

import argparse
import json

import pytest

from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.cli.main import main
from engine.domain.errors import SpecError
from engine.domain.stored import to_document
from engine.runs.predict import predict
from tests.support.small_cases import GPT2, spec_of, star

ENVIRONMENT = Environment(lambda name: pytest.fail("no cluster is needed"), lambda: (), lambda: ())


def loom(*arguments):
    return main(arguments, COMMANDS, ENVIRONMENT)


@pytest.fixture
def read(tmp_path):
    parser = argparse.ArgumentParser()
    add_run_arguments(parser)

    def of(document, *more):
        path = tmp_path / "run.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return run_spec_of(parser.parse_args(["--spec", str(path), *more]))

    return of


def test_a_report_is_read_as_the_run_that_it_is_of(read):
    spec = spec_of("gpipe", GPT2, star((1e9, 2e9)))
    assert read(to_document(predict(spec))) == spec


@pytest.mark.parametrize(
    ("document", "more", "sentence"),
    [
        ({}, ("--seed", "3"), "it has a whole run, so seed cannot be given, too"),
        ({}, ("--strategy", "lime"), "so strategy cannot be given, too"),
        ("{", (), "is no JSON"),
        ([], (), "expected a JSON object"),
        ({"strategy": "single"}, (), "missing"),
    ],
)
def test_a_file_that_is_no_run_and_arguments_beside_it_are_refused(read, document, more, sentence):
    with pytest.raises(SpecError, match=sentence):
        read(document, *more)


def test_a_run_needs_a_cluster_a_model_and_a_strategy_or_a_spec(capsys):
    assert loom("predict", "--model", "tiny-gpt2", "--strategy", "single") == 2
    assert (
        "CLUSTER is missing: give CLUSTER, --model and --strategy, or --spec FILE, or --showcase NAME."
        in capsys.readouterr().err
    )
