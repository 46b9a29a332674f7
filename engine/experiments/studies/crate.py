"""A study's metadata as RO-Crate 1.2 (https://w3id.org/ro/crate/1.2), which archives of data read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from engine.experiments.studies.study import CRATE, MANIFEST, Study

SPECIFICATION = "https://w3id.org/ro/crate/1.2"
PROGRAM = "#edgeloom"
NO_LICENCE = "No licence was given: ask those whose study it is how it may be used."
TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".toml": "application/toml",
    ".parquet": "application/vnd.apache.parquet",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".tex": "application/x-tex",
    ".html": "text/html",
    ".py": "text/x-python",
}

Entity = dict[str, Any]


def crate_of(study: Study) -> str:
    """The text of `ro-crate-metadata.json`: its root has what the specification says it must."""
    graph: list[Entity] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": SPECIFICATION},
        },
        _root(study),
        {
            "@id": PROGRAM,
            "@type": "SoftwareApplication",
            "name": "EdgeLoom",
            "description": "A testbed for distributed transformer inference on edge clusters.",
            "softwareVersion": study.environment.get("edgeloom", ""),
        },
        *_files(study),
    ]
    if _is_address(study.licence):
        graph.append({"@id": study.licence, "@type": "CreativeWork", "name": study.licence})
    return json.dumps({"@context": f"{SPECIFICATION}/context", "@graph": graph}, indent=1) + "\n"


def _root(study: Study) -> Entity:
    titles = [one.title or one.name for one in study.experiments]
    points = sum(one.points for one in study.experiments)
    methods = ", ".join(method.name for method in study.methods)
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"EdgeLoom study: {'; '.join(titles)}",
        "description": f"Design, runs, results and figures of {points} points of distributed transformer "
        f"inference on edge clusters, by {methods}. `edgeloom study repeat` carries them out again.",
        "datePublished": study.packed_on,
        "license": {"@id": study.licence} if _is_address(study.licence) else study.licence or NO_LICENCE,
        "hasPart": [{"@id": name} for name in (MANIFEST, *study.files)],
        "mentions": {"@id": PROGRAM},
    }


def _files(study: Study) -> Iterator[Entity]:
    yield {"@id": MANIFEST, "@type": "File", "name": MANIFEST, "encodingFormat": TYPES[".json"]}
    for name, file in study.files.items():
        ending = f".{name.rpartition('.')[2]}"
        yield {
            "@id": name,
            "@type": "File",
            "name": name.rpartition("/")[2],
            "contentSize": str(file.bytes),
            "sha256": file.sha256,
            **({"encodingFormat": TYPES[ending]} if ending in TYPES else {}),
        }


def _is_address(licence: str) -> bool:
    return licence.startswith("https://")
