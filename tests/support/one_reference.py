"""The reference of a run, computed into a cache unless it is there; the file gets "" or the error's
sentence.
"""

import json
from pathlib import Path

from engine.domain.errors import HostError
from engine.domain.spec import RunSpec
from engine.models.reference.transformers_outputs import load_or_compute


def main(spec_file, cache, said):
    spec = RunSpec.parse(json.loads(Path(spec_file).read_text()), spec_file)
    try:
        load_or_compute(spec, Path(cache))
        Path(said).write_text("")
    except HostError as error:
        Path(said).write_text(str(error))
