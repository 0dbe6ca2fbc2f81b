"""Every error becomes a problem: what each of Forge's errors means over HTTP."""

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from forge.core.errors import (
    AlreadyReviewed,
    DatabaseUnavailable,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    SchemaMissing,
    StatementRefused,
    UnknownDeadLetter,
    UnknownJob,
    UnknownJobType,
    UnknownSchedule,
)
from forge.http.problem import KINDS, MOST_FAULTS, Fault, Problem, invalid
from forge.http.reread import Outdated

RETRY = {"Retry-After": "1"}
# The first code of each status that a framework raises by itself.
CODES = {kind.status: code for code, kind in reversed(list(KINDS.items()))}

log = logging.getLogger("forge.http")


def install_refusals(api: FastAPI) -> None:
    """Answer every error with a problem."""
    api.add_exception_handler(Problem, _answer)
    api.add_exception_handler(ForgeError, _answer)
    api.add_exception_handler(UnicodeEncodeError, _answer)
    api.add_exception_handler(RequestValidationError, _answer)
    api.add_exception_handler(HTTPException, _answer)


def as_problem(error: BaseException) -> Problem:
    """Say over HTTP what an error means; what is nobody's business goes to the log alone."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return _invalid_request(error.errors())
        case InvalidPayload():
            return Problem("invalid", str(error), errors=error.faults[:MOST_FAULTS])
        case InvalidValue():
            return Problem("invalid", str(error), errors=[Fault("$", str(error))])
        case UnicodeEncodeError():
            return _invalid("a text holds a lone surrogate, which is no character; remove it")
        case UnknownJobType():
            return Problem("unknown_job_type", error.summary)
        case UnknownJob() | UnknownSchedule() | UnknownDeadLetter():
            return Problem("not_found", error.summary)
        case AlreadyReviewed():
            return Problem("conflict", str(error))
        case DatabaseUnavailable():
            log.warning("%s", error)
            return Problem("unavailable", "the database does not answer; try again", headers=RETRY)
        case Outdated():  # logged where it was found, and not at each request
            detail = (
                "the server cannot read its authentication settings, and refuses every token that "
                "depends on them; its log says which file to correct"
            )
            return Problem("unavailable", detail, headers={"Retry-After": "10"})
        case SchemaMissing():
            log.error("%s", error)
            detail = "the database lacks Forge's tables, or has old ones; run `forge migrate`"
            return Problem("unavailable", detail, headers=RETRY)
        case StatementRefused():
            return _refused(error)
        case ClientDisconnect():
            return Problem("bad_request", "the body ended early; send it again")
        case HTTPException():
            return _from_framework(error)
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    return Problem("internal", "something went wrong here; the server's log says what")


def path_of(place: Sequence[Any]) -> str:
    """Write where a fault lies: `$.args.format` in the body, `query.limit` elsewhere."""
    source, *steps = place or ("body",)
    path = "$" if source == "body" else str(source)
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path


async def _answer(request: Request, error: Exception) -> Response:
    return as_problem(error).answer()


def _invalid(detail: str) -> Problem:
    return Problem("invalid", detail, errors=[Fault("$", detail)])


def _invalid_request(found: Sequence[Any]) -> Problem:
    if any(fault["type"] == "json_invalid" for fault in found):
        return Problem("bad_request", "the body is not JSON that can be read; correct it")
    # Only the messages: the values that were sent may be secret.
    # The prefix is pydantic's, before what a check of ours says.
    return invalid(
        Fault(path_of(fault["loc"]), fault["msg"].removeprefix("Value error, ")) for fault in found
    )


def _refused(error: StatementRefused) -> Problem:
    state = str(getattr(error.__cause__, "sqlstate", None) or "")
    if state.startswith("23"):
        log.info("%s", error)
        return Problem("conflict", "the database has something that forbids this; look at it first")
    if state.startswith("22"):
        log.warning("%s", error)
        return _invalid(
            "a value cannot be stored; look for NUL characters and numbers out of range"
        )
    log.error("%s", error, exc_info=error)
    return Problem("internal", "the database refused a statement; the server's log says which")


def _from_framework(error: HTTPException) -> Problem:
    code = CODES.get(error.status_code)
    if code is None:
        code = "bad_request" if error.status_code < 500 else "internal"
    advice = KINDS[code].meaning
    return Problem(code, advice, headers=error.headers)
