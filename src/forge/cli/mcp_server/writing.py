"""The tools that change something: each needs a reason, and each is audited."""

from forge.cli.mcp_server.parameters import (
    DLQ_ID,
    DRY_RUN,
    FINGERPRINT,
    JOB_ID,
    PATCH,
    REASON,
    TENANT_ID,
    duration,
    text,
    time,
    uuid,
)
from forge.cli.mcp_server.reading import DLQ
from forge.cli.mcp_server.tool import ApiTool
from forge.dead_letters.bulk import HIGHEST_RATE, MAX_CANARIES

# Dead letter routes keep the reason of a review as its notes.
AS_NOTES = {"reason": "notes"}

OF_JOBS = (
    ApiTool(
        name="rerun_job",
        title="Run a job again",
        description="Run a final job (completed, failed, dead_letter or cancelled) again, as a new "
        "job with the same input or a patched one. Its effects happen again. A dead letter is "
        "better reprocessed with reprocess_dead_letter, which also closes its review.",
        route="POST /_api/jobs/{job_id}/rerun",
        properties={"job_id": JOB_ID, "reason": REASON, "patch": PATCH, "dry_run": DRY_RUN},
        required=("job_id", "reason"),
    ),
    ApiTool(
        name="cancel_job",
        title="Cancel a job",
        description="Ask a worker to cancel a job that is not final; what it did so far stays "
        "done. The result names the built-in job that carries it out; get_job shows the outcome.",
        route="POST /_api/jobs/{job_id}/cancel",
        properties={"job_id": JOB_ID, "reason": REASON},
        required=("job_id", "reason"),
        is_destructive=True,
    ),
    ApiTool(
        name="pause_jobs",
        title="Pause a job type or a queue",
        description="Start no job of a type, of a queue, or of a type in a queue, for every "
        "tenant, until the pause ends or resume_jobs removes it. What runs goes on. Prefer an end "
        "(`for` or `until`): without one it lasts until it is removed.",
        route="POST /_api/pauses",
        properties={
            "type": text("The job type; leave it out for every type of the queue."),
            "queue": text("The queue; leave it out for the type in every queue."),
            "for": duration("How long; instead of `until`."),
            "until": time("When it ends; instead of `for`."),
            "reason": REASON,
        },
        required=("reason",),
    ),
    ApiTool(
        name="resume_jobs",
        title="Remove a pause",
        description="Remove a pause: its jobs start within seconds.",
        route="DELETE /_api/pauses/{pause_id}",
        properties={"pause_id": uuid("The `pause_id`, from list_pauses."), "reason": REASON},
        required=("pause_id", "reason"),
    ),
)
OF_DEAD_LETTERS = (
    ApiTool(
        name="reprocess_dead_letter",
        title="Reprocess a dead letter",
        description="Run the job of a dead letter again as a new job, optionally with a patched "
        "payload, and close its review. First make sure that the cause is gone.",
        route=f"POST {DLQ}{{dlq_id}}/reprocess/",
        properties={"dlq_id": DLQ_ID, "reason": REASON, "patch": PATCH, "dry_run": DRY_RUN},
        required=("dlq_id", "reason"),
        sent_as=AS_NOTES,
    ),
    ApiTool(
        name="discard_dead_letter",
        title="Discard a dead letter",
        description="Close the review of a dead letter without running its job again.",
        route=f"POST {DLQ}{{dlq_id}}/discard/",
        properties={"dlq_id": DLQ_ID, "reason": REASON},
        required=("dlq_id", "reason"),
        sent_as=AS_NOTES,
        is_destructive=True,
    ),
    ApiTool(
        name="reprocess_dead_letter_group",
        title="Reprocess a group of dead letters",
        description="Reprocess all dead letters of a group in a worker, at a rate: first a few "
        "canaries, which must complete; it stops when too many fail again. Call it with `dry_run` "
        "first, and tell the user how many there are.",
        route=f"POST {DLQ}reprocess/",
        properties={
            "fingerprint": FINGERPRINT,
            "reason": REASON,
            "rate": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": HIGHEST_RATE,
                "default": 10,
                "description": "Dead letters per second.",
            },
            "canary": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_CANARIES,
                "default": 1,
                "description": "How many run first and must complete.",
            },
            "max_failures": {
                "type": "integer",
                "minimum": 1,
                "default": 5,
                "description": "Stop after this many have failed again.",
            },
            "tenant_id": TENANT_ID,
            "dry_run": DRY_RUN,
        },
        required=("fingerprint", "reason"),
        sent_as=AS_NOTES,
    ),
    ApiTool(
        name="discard_dead_letter_group",
        title="Discard a group of dead letters",
        description="Close the review of all dead letters of a group, without running their jobs "
        "again. Call it with `dry_run` first, and tell the user how many there are.",
        route=f"POST {DLQ}discard/",
        properties={
            "fingerprint": FINGERPRINT,
            "reason": REASON,
            "tenant_id": TENANT_ID,
            "dry_run": DRY_RUN,
        },
        required=("fingerprint", "reason"),
        sent_as=AS_NOTES,
        is_destructive=True,
    ),
)
WRITING = (*OF_JOBS, *OF_DEAD_LETTERS)
