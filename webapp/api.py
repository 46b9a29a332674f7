"""The HTTP API: routers of the apps, and one form for every refusal.

Every error is `{"detail": sentence, "fields": [{"path", "message"}]}`. The OpenAPI document is at
/api/openapi.json, its browsable form at /api/docs.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation

from engine.domain.complaints import problems
from engine.domain.errors import EdgeLoomError, PlanError, SpecError
from webapp.accounts.access import viewer
from webapp.accounts.api import router as accounts
from webapp.advice.api import router as advice
from webapp.base.bodies import CheckedParser, checked_json
from webapp.base.errors import TooMany, Unavailable
from webapp.clusters.api import router as clusters
from webapp.clusters.catalogue import router as catalogue
from webapp.clusters.machines import router as machines
from webapp.clusters.nodes import router as nodes
from webapp.clusters.pictures import router as pictures
from webapp.clusters.scenarios import router as scenarios
from webapp.experiments.api import router as experiments
from webapp.http.health import router as health
from webapp.openapi.document import Document
from webapp.operations.machines import router as fleet
from webapp.operations.models_api import router as models
from webapp.runs.api import router as runs
from webapp.serving.api import router as serving

logger = logging.getLogger(__name__)


@lru_cache(maxsize=2)
def _document(api: NinjaAPI, path_prefix: str) -> Document:
    """Made once per process: it takes more than a second."""
    return Document(api, path_prefix)


class Api(NinjaAPI):
    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> Document:
        return _document(self, self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The view's own name: what generated clients call the method."""
        return operation.view_func.__name__


api = Api(
    title="EdgeLoom",
    version="1",
    description="Draw a cluster, run a real distributed transformer on it, watch, change, keep, compare.",
    auth=viewer,
    parser=CheckedParser(),
    docs_decorator=login_required,
)
api.add_router("", accounts)
api.add_router("", catalogue)
api.add_router("", pictures)
api.add_router("", scenarios)
api.add_router("", advice)
api.add_router("/clusters", clusters)
api.add_router("", runs)
api.add_router("", serving)
api.add_router("/experiments", experiments)
api.add_router("", health)
api.add_router("/fleet", fleet)
api.add_router("/models", models)
api.add_router("/machines", machines)
api.add_router("/nodes", nodes)


def refusal(request: HttpRequest, status: int, detail: str, fields: list[tuple[str, str]]) -> HttpResponse:
    data = {"detail": detail, "fields": [{"path": path, "message": message} for path, message in fields]}
    return api.create_response(request, data, status=status)


@api.exception_handler(EdgeLoomError)
def on_edgeloom_error(request: HttpRequest, error: EdgeLoomError) -> HttpResponse:
    if isinstance(error, SpecError):
        return refusal(request, 422, str(error), error.fields)
    if isinstance(error, TooMany | Unavailable):
        response = refusal(request, 429 if isinstance(error, TooMany) else 503, str(error), [])
        if error.retry_s is not None:
            response.headers["Retry-After"] = str(error.retry_s)
        return response
    # No plan is possible: a page may know that the same request will be refused again.
    fields = [("strategy", str(error))] if isinstance(error, PlanError) else []
    return refusal(request, 409, str(error), fields)


@api.exception_handler(ValidationError)
def on_validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Answer a request of a wrong form. Paths are relative to its body: `spec.links[2].bit_per_s`."""
    fields = []
    for where in dict.fromkeys(item["loc"][0] for item in error.errors):
        skipped = 2 if where == "body" else 1  # also the name of the view's argument
        items = [item | {"loc": item["loc"][skipped:]} for item in error.errors if item["loc"][0] == where]
        fields += problems(items, _sent(request, where))
    path, message = fields[0]
    more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
    return refusal(request, 422, f"{path}: {message}{more}." if path else f"{message}{more}.", fields)


def _sent(request: HttpRequest, where: str) -> Any:
    """What the request has in its body, its query, …, where pydantic found it wrong; None: nobody knows."""
    if where == "body":
        return checked_json(request.body)
    assert request.resolver_match is not None, "a view has answered"
    values = {"query": request.GET, "form": request.POST, "path": request.resolver_match.kwargs}.get(where)
    return None if values is None else dict(values.items())


@api.exception_handler(AuthenticationError)
def on_authentication_error(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return refusal(request, 401, "Nobody is logged in: log in first.", [])


@api.exception_handler(HttpError)
def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """A body that could not be read has its reason as the cause."""
    sentence = error.__cause__ if isinstance(error.__cause__, SpecError) else error
    return refusal(request, error.status_code, str(sentence), [])


@api.exception_handler(Http404)
def on_not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return refusal(request, 404, f"{error}." if str(error) else f"{request.path} does not exist.", [])


@api.exception_handler(RequestDataTooBig)
def on_large_body(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    """Refuse a body over DATA_UPLOAD_MAX_MEMORY_SIZE, which counts all but uploaded files."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    sentence = (
        f"The request's body is longer than {limit:,} bytes, the limit here for all but files: send less, as "
        "a shorter part of a recorded trace."
    )
    return refusal(request, 413, sentence, [])


@api.exception_handler(SuspiciousOperation)
def on_suspicious_request(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
    """One of Django's other refusals."""
    return refusal(request, 400, f"The request is refused: {str(error).rstrip('.')}.", [])


@api.exception_handler(MultiPartParserError)
def on_unreadable_form(request: HttpRequest, error: MultiPartParserError) -> HttpResponse:
    return refusal(request, 400, f"The request's form cannot be read: {str(error).rstrip('.')}.", [])


@api.exception_handler(OverflowError)
@api.exception_handler(DataError)
def on_number_out_of_range(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer SQLite's and PostgreSQL's ways of refusing a number that no column holds, as in
    `?offset=10**30`.
    """
    return refusal(request, 422, "A number or text in the request is larger than the database can hold.", [])


@api.exception_handler(OperationalError)
def on_database_error(request: HttpRequest, error: OperationalError) -> HttpResponse:
    logger.exception("%s %s: the database does not answer", request.method, request.path)
    return refusal(request, 503, "The database does not answer at the moment: try again.", [])


@api.exception_handler(Exception)
def on_defect(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer an error that nobody expected: the log has the trace, the answer only says so."""
    logger.exception("%s %s broke", request.method, request.path)
    sentence = (
        f"{request.method} {request.path} broke: a defect of EdgeLoom, which the server's log describes."
    )
    return refusal(request, 500, sentence, [])
