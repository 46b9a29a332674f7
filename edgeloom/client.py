"""The client: one method for each thing that a notebook does with the server.

Answers are JSON as the server gives it (`/api/docs` describes every field), figures are in SI units, and
times of runs are virtual seconds. `events` needs the package websockets, and frames need pandas.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    import pandas

OVER = ("finished", "failed", "cancelled")
POLL_S = 0.5
"""How often `wait` asks whether a run or an experiment is over."""


class Refused(Exception):
    """The server refused a request: `status` is that of HTTP, `fields` name what is to blame."""

    def __init__(self, status: int, sentence: str, fields: list[dict[str, str]]):
        super().__init__(sentence)
        self.status = status
        self.fields = fields


class Client:
    """One server at `url`, with one API token. Methods raise `Refused`, and `ConnectionError` if nobody
    answers within `timeout_s`. A `run_id`, `cluster_id` or `experiment_id` is the number that pages show.
    """

    def __init__(self, url: str, token: str, timeout_s: float = 120.0):
        self.url = url.rstrip("/")
        self.token = token
        self.timeout_s = timeout_s

    # runs

    def start(self, **request: Any) -> Run:
        """Start a run: the fields of a `RunRequest` (`cluster_id` or `cluster`, `model`, `strategy`, …)."""
        return Run(self, int(self.call("POST", "/api/runs", request)["id"]))

    def predict(self, **request: Any) -> dict[str, Any]:
        """The same run in the simulated world: its report, plan and memory."""
        answer: dict[str, Any] = self.call("POST", "/api/predict", request)
        return answer

    def run(self, run_id: int) -> Run:
        """A run that is stored already; nothing is asked of the server yet."""
        return Run(self, run_id)

    def runs(self, **filters: Any) -> list[dict[str, Any]]:
        """Runs as rows, newest first. `filters`: status, model, strategy, cluster, tag, search,
        limit, offset.
        """
        rows: list[dict[str, Any]] = self.call("GET", "/api/runs?" + urlencode(filters))
        return rows

    def runs_frame(self, **filters: Any) -> pandas.DataFrame:
        """`runs` with the same `filters` as a table of pandas, with the run's number as its index and a
        column per figure.
        """
        import pandas

        table = pandas.DataFrame([{**row, **row["figures"]} for row in self.runs(**filters)])
        return table.set_index("id") if len(table) else table

    def clusters(self) -> list[dict[str, Any]]:
        """The stored clusters, a row for each: number, name, size, owner."""
        rows: list[dict[str, Any]] = self.call("GET", "/api/clusters")
        return rows

    def cluster_file(self, cluster_id: int, form: str = "toml") -> str:
        """A stored cluster and how it is drawn, as a file; `form` is toml, json or yaml."""
        with self._open("GET", f"/api/clusters/{cluster_id}/{form}", None) as answer:
            text: str = answer.read().decode()
        return text

    def new_cluster(self, text: str, kind: str = "toml") -> int:
        """Store the cluster of the `text` of a file (`kind` toml, json, yaml) or drawing (mn, graphml, gml);
        its number.
        """
        drawing = self.call("POST", "/api/clusters/import", {"text": text, "kind": kind})
        return int(self.call("POST", "/api/clusters", drawing)["id"])

    # experiments

    def experiments(self) -> list[dict[str, Any]]:
        """The stored experiments, a row for each."""
        rows: list[dict[str, Any]] = self.call("GET", "/api/experiments")
        return rows

    def new_experiment(self, toml: str) -> Experiment:
        """Store an experiment from the text of its file, `toml`; nothing is carried out yet."""
        return Experiment(self, int(self.call("POST", "/api/experiments", {"toml": toml})["id"]))

    def experiment(self, experiment_id: int) -> Experiment:
        """A stored experiment, by the number that pages show; nothing is asked of the server yet."""
        return Experiment(self, experiment_id)

    # requests

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the API at `path`, `body` as its JSON; the answer's JSON, None if it has none."""
        with self._open(method, path, body) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def lines(self, method: str, path: str, body: Any) -> Iterator[str]:
        """The lines of the answer to such a request (`path`, `body`), as they come."""
        with self._open(method, path, body) as answer:
            for line in answer:
                yield line.decode().rstrip("\n")

    def _open(self, method: str, path: str, body: Any) -> Any:
        request = Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            return urlopen(request, timeout=self.timeout_s)
        except HTTPError as error:
            raise _refusal(error) from None
        except (URLError, TimeoutError) as error:
            raise ConnectionError(f"{self.url} does not answer: {error}.") from error


def _refusal(error: HTTPError) -> Refused:
    """The server's sentence, in the form of /api or of /v1."""
    try:
        said = json.loads(error.read())
        sentence = said.get("detail") or said["error"]["message"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(error.code, f"The server answered {error.code} {error.reason}.", [])
    return Refused(error.code, str(sentence), said.get("fields", []))


class Run:
    """One run on the server; `run_id` is the number that pages show."""

    def __init__(self, client: Client, run_id: int):
        self.client = client
        self.id = run_id

    def __repr__(self) -> str:
        return f"Run({self.id})"

    def detail(self) -> dict[str, Any]:
        """All that is stored: status, request, spec, plan, report, prediction."""
        found: dict[str, Any] = self._call("GET", "")
        return found

    def report(self) -> dict[str, Any]:
        """The report of a run that is over; raises `Refused` while there is none."""
        found: dict[str, Any] = self._call("GET", "/report.json")
        return found

    def wait(self, timeout_s: float = 3600.0) -> dict[str, Any]:
        """Wait until the run is over; its detail. Raises `TimeoutError`."""
        return _until_over(self, "status", timeout_s)

    def events(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """All events after the cursor `since`, stored and live, until the run is over."""
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.client import connect

        parts = urlsplit(self.client.url)
        scheme = "wss" if parts.scheme == "https" else "ws"
        headers = {"Authorization": f"Bearer {self.client.token}"}
        address = f"{scheme}://{parts.netloc}/ws/runs/{self.id}?since={since}"
        was_over = self.detail()["status"] in OVER
        try:
            with connect(address, additional_headers=headers, max_size=None) as socket:
                while True:
                    found = json.loads(socket.recv())["events"]
                    yield from found
                    if any(map(_ends, found)) or (was_over and not found):  # silence: all has been read
                        return
        except ConnectionClosed as error:
            raise ConnectionError(f"The events of run {self.id} broke off: {error}.") from error

    def process_log(self, device: str | None = None) -> Iterator[dict[str, Any]]:
        """What the processes wrote so far, or that of `device`: `device`, `time_s`, `text` of each line."""
        asked: dict[str, Any] = {} if device is None else {"device": device}
        page: dict[str, Any] = {"cursor": 0, "more": True}
        while page["more"]:
            page = self._call("GET", "/process-log?" + urlencode({**asked, "since": page["cursor"]}))
            yield from page["lines"]

    def change(self, kind: str, **fields: Any) -> None:
        """A live change, such as `change("set_rate", link="a--b", bit_per_s=5e6)`; `fields` are those of its
        kind.
        """
        self._call("POST", "/changes", {"command": {"kind": kind, **fields}})

    def cancel(self) -> None:
        """Ask for the end of the run; `wait` tells when it is over."""
        self._call("POST", "/cancel")

    def ask(self, prompt: str, new_tokens: int | None = None) -> Iterator[str]:
        """The answer of a run that serves to `prompt`, in pieces as they come; at most `new_tokens`."""
        body = {"model": str(self.id), "prompt": prompt, "stream": True}
        if new_tokens is not None:
            body["max_tokens"] = new_tokens
        for line in self.client.lines("POST", "/v1/completions", body):
            data = line.removeprefix("data: ")
            if not data or data == "[DONE]":
                continue
            piece = json.loads(data)
            if "error" in piece:
                raise Refused(503, piece["error"]["message"], [])
            text = piece["choices"][0]["text"]
            if text:
                yield text

    def end_service(self) -> None:
        """Let a run that serves take no more requests, and finish."""
        self._call("POST", "/end-service")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.call(method, f"/api/runs/{self.id}{path}", body)


def _until_over(what: Run | Experiment, key: str, timeout_s: float) -> dict[str, Any]:
    until_s = time.monotonic() + timeout_s
    while (found := what.detail())[key] not in OVER:
        if time.monotonic() > until_s:
            raise TimeoutError(f"{what} is {found[key]} after {timeout_s:g} s.")
        time.sleep(POLL_S)
    return found


def _ends(event: dict[str, Any]) -> bool:
    """The report, if there is one, comes together with the last state."""
    return event["type"] == "state" and event["state"] in OVER


class Experiment:
    """One experiment on the server; `experiment_id` is the number that pages show."""

    def __init__(self, client: Client, experiment_id: int):
        self.client = client
        self.id = experiment_id

    def __repr__(self) -> str:
        return f"Experiment({self.id})"

    def detail(self) -> dict[str, Any]:
        """All that is stored, and how far each world is."""
        found: dict[str, Any] = self._call("GET", "")
        return found

    def predict(self) -> None:
        """Let every point be predicted; points that are known already are not computed again."""
        self._call("POST", "/predict")

    def emulate(self, digests: Iterable[str] | None = None) -> None:
        """Let these points be emulated (`digests`, the column `digest` of `frame`), or all."""
        body = {"choose": "all"} if digests is None else {"digests": list(digests)}
        self._call("POST", "/emulate", body)

    def cancel(self) -> None:
        """Let no further point be carried out."""
        self._call("POST", "/cancel")

    def wait(self, timeout_s: float = 3600.0) -> dict[str, Any]:
        """Wait until nothing is left to do; its detail. Raises `TimeoutError`."""
        return _until_over(self, "state", timeout_s)

    def frame(self) -> pandas.DataFrame:
        """One line for each point and world: coordinates, state, seed, digest, then every metric."""
        import pandas

        rows = self._call("GET", "/rows")["rows"]
        kept = ("world", "seed", "state", "outcome", "run_id", "digest")
        return pandas.DataFrame(
            [row["coordinates"] | {key: row[key] for key in kept} | row["metrics"] for row in rows]
        )

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.call(method, f"/api/experiments/{self.id}{path}", body)
