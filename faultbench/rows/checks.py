"""Rows that run tests of the suite."""

from faultbench.suite import suite_row

suite_row(
    30,
    "daylight saving time: gaps and folds in five zones",
    "the documented number of runs per day",
    "tests/core/schedules/test_cron.py",
    "tests/core/schedules/test_next_runs.py",
)
suite_row(
    33,
    "NUL, NaN, surrogates, deep nesting, 10 MB, 2^64 in inputs and results",
    "rejected at dispatch; a bad result still ends its job",
    "tests/faults/test_hostile_values.py",
    "tests/core/test_payload_properties.py",
)
suite_row(
    34,
    "exceptions without text, BaseException, CancelledError",
    "recorded; the worker stays alive",
    "tests/faults/test_hostile_values.py::test_every_exception_of_a_handler_is_recorded",
    "tests/worker/test_failures_recorded.py",
)
suite_row(
    37,
    "50 idle workers and one job",
    "at most 10 claim queries, counted by PostgreSQL",
    "tests/faults/test_wakeups.py::test_one_job_does_not_wake_every_idle_worker",
    "tests/faults/test_wakeups.py::test_one_job_does_not_wake_every_process",
)
suite_row(
    38,
    "SQS drops, duplicates and reorders messages, and is down",
    "the same results, later",
    "tests/faults/test_sqs.py::test_a_hostile_queue_does_not_change_the_results",
    "tests/transports/test_outages.py",
)
suite_row(
    44,
    "a WebSocket client is slow or disappears",
    "memory is bounded, other clients are served",
    "tests/http/live/test_readers.py",
)
suite_row(
    46,
    "every route with every role and another tenant",
    "401, 403 or 404 as documented; no row leaks",
    "tests/http/auth/test_access_matrix.py",
    "tests/http/auth/test_row_security_requests.py",
    "tests/store/row_security",
)
suite_row(
    47,
    "hostile strings in all fields",
    "no script, no broken page: text stays text, and the headers forbid scripts",
    "tests/http/middleware/test_problems.py",
    "tests/cli/test_terminal.py",
)
suite_row(
    48,
    "a foreign Origin; a token that is revoked while a socket is open",
    "rejected; closed within 5 s",
    "tests/http/live/test_socket_refusals.py",
    "tests/http/live/test_tokens.py",
    "tests/http/auth/test_key_revocation.py",
)
suite_row(
    49,
    "a secret canary",
    "absent from logs, API, WebSocket and dead letters",
    "tests/http/test_secret_canary.py",
    "tests/telemetry/test_secrets.py",
)
suite_row(
    50,
    "attacks with the API's database role",
    "no DDL, no other tenant's rows, no code as the owner",
    "tests/store/test_roles.py",
    "tests/store/row_security",
    "tests/security",
)
