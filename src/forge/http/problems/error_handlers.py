"""Converts every error to a problem."""

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
    UnknownPause,
    UnknownSchedule,
    UnknownWorker,
)
from forge.http.auth.watched_file import FileUnreadable
from forge.http.problems.problem import MAX_FAULTS, PROBLEM_TYPES, Fault, Problem, invalid

RETRY = {"Retry-After": "1"}
# The first code of each status, for errors that the framework raises.
CODE_BY_STATUS = {found.status: code for code, found in reversed(list(PROBLEM_TYPES.items()))}

log = logging.getLogger("forge.http")


def install_error_handlers(api: FastAPI) -> None:
    """Respond to every error with a problem."""
    api.add_exception_handler(Problem, _answer)
    api.add_exception_handler(ForgeError, _answer)
    api.add_exception_handler(UnicodeEncodeError, _answer)
    api.add_exception_handler(RequestValidationError, _answer)
    api.add_exception_handler(HTTPException, _answer)


def as_problem(error: BaseException) -> Problem:
    """Return an error as a problem; internal details only go to the log."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return _invalid_request(error.errors())
        case InvalidPayload():
            return Problem("invalid", str(error), errors=error.faults[:MAX_FAULTS])
        case InvalidValue():
            return Problem("invalid", str(error), errors=[Fault("$", str(error))])
        case UnicodeEncodeError():
            return _invalid("a text contains a lone surrogate; remove it")
        case UnknownJobType():
            return Problem("unknown_job_type", error.summary)
        case (
            UnknownJob()
            | UnknownSchedule()
            | UnknownDeadLetter()
            | UnknownPause()
            | UnknownWorker()
        ):
            return Problem("not_found", error.summary)
        case AlreadyReviewed():
            return Problem("conflict", str(error))
        case DatabaseUnavailable():
            log.warning("%s", error)
            return Problem("unavailable", "the database is unavailable; try again", headers=RETRY)
        case FileUnreadable():  # logged by WatchedFile, not at each request
            detail = (
                "the server cannot read its authentication settings and rejects the tokens in "
                "them; its log names the file to correct"
            )
            return Problem("unavailable", detail, headers={"Retry-After": "10"})
        case SchemaMissing():
            log.error("%s", error)
            detail = "Forge's tables are missing or outdated; run `forge migrate`"
            return Problem("unavailable", detail, headers=RETRY)
        case StatementRefused():
            return _from_database(error)
        case ClientDisconnect():
            return Problem("bad_request", "the body is incomplete; send it again")
        case HTTPException():
            return _from_framework(error)
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    return Problem("internal", "internal error; the server's log has the details")


def path_of(location: Sequence[Any]) -> str:
    """Return the path of a fault: `$.args.format` in the body, else such as `query.limit`."""
    source, *steps = location or ("body",)
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
        return Problem("bad_request", "the body is not valid JSON")
    # Only the messages: the values may be secret. The prefix is pydantic's.
    return invalid(
        Fault(path_of(fault["loc"]), fault["msg"].removeprefix("Value error, ")) for fault in found
    )


def _from_database(error: StatementRefused) -> Problem:
    state = str(getattr(error.__cause__, "sqlstate", None) or "")
    if state.startswith("23"):
        log.info("%s", error)
        return Problem("conflict", "this conflicts with existing rows")
    if state.startswith("22"):
        log.warning("%s", error)
        return _invalid(
            "a value cannot be stored; check for NUL characters and numbers out of range"
        )
    log.error("%s", error, exc_info=error)
    return Problem(
        "internal", "the database rejected a statement; the server's log has the details"
    )


def _from_framework(error: HTTPException) -> Problem:
    code = CODE_BY_STATUS.get(error.status_code)
    if code is None:
        code = "bad_request" if error.status_code < 500 else "internal"
    advice = PROBLEM_TYPES[code].meaning
    return Problem(code, advice, headers=error.headers)
