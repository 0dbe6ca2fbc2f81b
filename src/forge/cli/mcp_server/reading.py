"""The tools that read."""

from typing import get_args

from forge.cli.mcp_server.parameters import (
    CURSOR,
    DLQ_ID,
    FINGERPRINT,
    JOB_FILTER,
    JOB_ID,
    LETTER_FILTER,
    LIMIT,
    PAGE,
    WINDOW,
    one_of,
    text,
)
from forge.cli.mcp_server.tool import ApiTool
from forge.core.job_statistics import Group

DLQ = "/api/jobs/admin/dlq/"

OVERVIEW = (
    ApiTool(
        name="get_overview",
        title="Overview",
        description="The state of the whole system now: jobs by status, the job that has been due "
        "the longest, slots and workers, dead letters that wait for review, failing schedules and "
        "pauses. A good first call.",
        route="GET /_api/overview",
    ),
    ApiTool(
        name="list_findings",
        title="Findings",
        description="What an operator should know, the most severe first: each finding has a "
        "message, the facts behind it, and what to do. No items: every check passed.",
        route="GET /_api/findings",
    ),
    ApiTool(
        name="get_statistics",
        title="Statistics over time",
        description="Completed, failed, retried and crashed attempts and percentiles of waiting "
        "and running time, by step of a window (default: the last hour).",
        route="GET /_api/statistics",
        properties={
            **WINDOW,
            "step": text(
                "The length of a step, such as 5m, 1h or 1d; by default it fits the window.",
                pattern="^[0-9]+(m|h|d)$",
            ),
        },
    ),
    ApiTool(
        name="get_statistics_by_type",
        title="Statistics by job type",
        description="Totals of a window (default: the last hour) by job type and queue, those with "
        "the most jobs first: rates, failures, waiting and running times. Use it to find the job "
        "types that fail or are slow.",
        route="GET /_api/statistics/by_type",
        properties={
            **WINDOW,
            "group": one_of(get_args(Group), "How totals are added up.", default="type_and_queue"),
        },
    ),
    ApiTool(
        name="list_pauses",
        title="Pauses",
        description="The pauses of job types and queues that are in effect, with their reasons.",
        route="GET /_api/pauses",
    ),
)
JOBS = (
    ApiTool(
        name="list_jobs",
        title="List jobs",
        description="Jobs that match all given arguments, newest first, without their inputs and "
        "outputs (get_job has them). Continue with `next_cursor` while it is there: a page may end "
        "early with `stopped_early`.",
        route="GET /_api/jobs",
        properties={
            **JOB_FILTER,
            "q": text("Text in the input, the last error or the progress message.", maxLength=200),
            "input": {
                "type": "object",
                "maxProperties": 10,
                "additionalProperties": {"type": ["string", "number", "boolean"]},
                "description": "Values in the input by their path.",
                "examples": [{"order_id": 42, "items.0.sku": "A7"}],
            },
            "cursor": CURSOR,
            "limit": LIMIT,
        },
        defaults={"view": "summary", "limit": PAGE},
    ),
    ApiTool(
        name="count_jobs",
        title="Count jobs",
        description="Counts of the jobs that match all given arguments, by status and by type. "
        "`precision` says whether a count is exact.",
        route="GET /_api/jobs/counts",
        properties=JOB_FILTER,
    ),
    ApiTool(
        name="get_job",
        title="Show a job",
        description="Everything about one job: status, input, output, checkpoint, last error, "
        "progress and times. Secrets in it are shown as [redacted].",
        route="GET /_api/jobs/{job_id}",
        properties={"job_id": JOB_ID},
        required=("job_id",),
    ),
    ApiTool(
        name="explain_job",
        title="Why a job is not running",
        description="Why a job is not running: a reason, one sentence, and the facts behind it, "
        "such as its position, the pause that holds it back, or the missing worker.",
        route="GET /_api/jobs/{job_id}/why",
        properties={"job_id": JOB_ID},
        required=("job_id",),
    ),
    ApiTool(
        name="get_job_timeline",
        title="Timeline of a job",
        description="What happened to a job, oldest first: dispatch, attempts, log lines, errors "
        "with their tracebacks, retries, and (for staff) who changed it and why.",
        route="GET /_api/jobs/{job_id}/timeline",
        properties={"job_id": JOB_ID},
        required=("job_id",),
    ),
)
DEAD_LETTERS = (
    ApiTool(
        name="list_dead_letter_groups",
        title="Dead letters by cause",
        description="Jobs that failed for good, grouped by cause (job type, error and place in the "
        "code), the most frequent first, each with a sample. Start a review here.",
        route=f"GET {DLQ}groups/",
        properties={
            **LETTER_FILTER,
            "status": {**LETTER_FILTER["status"], "default": "pending_review"},
            "limit": LIMIT,
        },
        defaults={"limit": PAGE},
    ),
    ApiTool(
        name="list_dead_letters",
        title="List dead letters",
        description="Dead letters that match all given arguments, newest first, without payloads "
        "(get_dead_letter has them).",
        route=f"GET {DLQ}",
        properties={
            **LETTER_FILTER,
            "fingerprint": FINGERPRINT,
            "cursor": CURSOR,
            "limit": LIMIT,
        },
        defaults={"limit": PAGE},
    ),
    ApiTool(
        name="get_dead_letter",
        title="Show a dead letter",
        description="One dead letter with its payload and the error of every attempt. Secrets in "
        "it are shown as [redacted].",
        route=f"GET {DLQ}{{dlq_id}}/",
        properties={"dlq_id": DLQ_ID},
        required=("dlq_id",),
    ),
)
READING = (*OVERVIEW, *JOBS, *DEAD_LETTERS)
