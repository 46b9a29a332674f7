"""The reference of a run after the tokens in a file, computed into a cache unless it is there; the last file
gets "" or the error's sentence.
"""

import json
from pathlib import Path

from engine.domain.errors import HostError
from engine.domain.spec import RunSpec
from engine.models.reference.teacher_forcing import reference_after


def main(spec_file, tokens_file, cache, said):
    spec = RunSpec.parse(json.loads(Path(spec_file).read_text()), spec_file)
    try:
        reference_after(spec, json.loads(Path(tokens_file).read_text()), cache_dir=Path(cache))
        Path(said).write_text("")
    except HostError as error:
        Path(said).write_text(str(error))
