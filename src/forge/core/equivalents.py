"""The equivalents of other libraries' names, for the errors of code that moves to Forge."""

from collections.abc import Mapping

_ONE_AT_A_TIME = (
    "take a lock of PostgreSQL in the handler, or raise Snooze(…) to wait for another job"
)
_KEPT = "how long jobs are kept is a setting: [retention]"

# Arguments of @app.task of Celery and procrastinate.
ATTRIBUTES: Mapping[str, str] = {
    "acks_late": "every job is acknowledged after it ran; leave it out",
    "autoretry_for": "every exception is retried; name those that are not with app.classify()",
    "base": "wrap attempts with @app.middleware",
    "bind": "every handler receives its context as its first parameter; leave it out",
    "default_retry_delay": "write retry=Retry(backoff=…, max_backoff=…)",
    "ignore_result": "a handler that returns nothing stores nothing; leave it out",
    "lock": _ONE_AT_A_TIME,
    "max_retries": "write max_attempts, which counts the first attempt too: one more than "
    "max_retries",
    "pass_context": "every handler receives its context as its first parameter; leave it out",
    "queueing_lock": "write idempotent, or dispatch with idempotency_key",
    "rate_limit": 'raise Snooze("1m") in the handler to run the job later without using an attempt',
    "reject_on_worker_lost": "jobs of a worker that dies run again; leave it out",
    "retry_backoff": 'write retry=Retry(backoff="exponential")',
    "retry_backoff_max": "write retry=Retry(max_backoff=…)",
    "retry_jitter": "delays have jitter; leave it out",
    "serializer": "inputs are JSON; leave it out",
    "soft_time_limit": "write timeout; a handler that reaches it gets a CancelledError",
    "time_limit": "write timeout",
    "track_started": "every job has started_at; leave it out",
}
# Arguments of Celery's apply_async(), RQ's enqueue() and procrastinate's configure().
OPTIONS: Mapping[str, str] = {
    "at_front": 'write priority="critical"',
    "args": "pass the input as the second argument: one object, not positional arguments",
    "countdown": 'write delay, such as delay="10s"',
    "depends_on": "dispatch the next job at the end of the handler",
    "eta": "write scheduled_at",
    "expires": "write expires_at",
    "failure_ttl": _KEPT,
    "job_id": "write idempotency_key; the id of a job is made by Forge",
    "job_timeout": 'write timeout at the job: @app.job(timeout="10m")',
    "kwargs": "pass the input as the second argument: a model or a dict",
    "link": "dispatch the next job at the end of the handler, in ctx.complete_in_transaction()",
    "link_error": "a job that fails for good becomes a dead letter; see app.dead_letters",
    "lock": _ONE_AT_A_TIME,
    "on_failure": "a job that fails for good becomes a dead letter; see app.dead_letters",
    "on_success": "write it at the end of the handler",
    "queueing_lock": "write idempotency_key",
    "result_ttl": _KEPT,
    "retry": "write retry at the job: @app.job(retry=Retry(…))",
    "routing_key": "write queue",
    "schedule_at": "write scheduled_at",
    "schedule_in": 'write delay, such as delay="10s"',
    "task_id": "write idempotency_key; the id of a job is made by Forge",
    "ttl": "write expires_at",
}
# Methods of a task.
OF_A_JOB: Mapping[str, str] = {
    "apply": "call the job to run it here, or use forge.testing.call()",
    "apply_async": "await {0}.dispatch(input, delay=…), or app.sync.dispatch({0}, input, …) "
    "without an event loop",
    "batch_defer": "await app.dispatch_many({0}, inputs)",
    "configure": "await {0}.dispatch(input, delay=…)",
    "defer": "app.sync.dispatch({0}, input)",
    "defer_async": "await {0}.dispatch(input)",
    "delay": "await {0}.dispatch(input), or app.sync.dispatch({0}, input) without an event loop",
    "retry": "raise forge.Retryable(…) in the handler, or any other exception",
    "s": "dispatch the next job at the end of the handler; there are no signatures",
    "si": "dispatch the next job at the end of the handler; there are no signatures",
    "signature": "dispatch the next job at the end of the handler; there are no signatures",
}
# Attributes of a bound task's self.
OF_A_CONTEXT: Mapping[str, str] = {
    "meta": 'call ctx.progress(percent, "message"), or set ctx.checkpoint',
    "request": "the context has job_id, attempt, auth and more itself",
    "retry": "raise forge.Retryable(…), or any other exception; forge.Snooze(…) runs the job later "
    "without using an attempt",
    "save_meta": 'call ctx.progress(percent, "message"), or set ctx.checkpoint',
    "should_abort": "ctx.cancelled",
    "update_state": 'call ctx.progress(percent, "message")',
}
# Attributes of a Celery app, a procrastinate app and an RQ queue.
OF_AN_APP: Mapping[str, str] = {
    "AsyncResult": "app.handle(job_id)",
    "autodiscover_tasks": "import the modules of the jobs in the module of the app",
    "conf": "settings are in forge.toml, in FORGE_… variables, or in Forge(Config(…))",
    "configure_task": "await app.dispatch(name, input, delay=…)",
    "control": "app.cancel(), app.pause() and app.workers",
    "enqueue": "await app.dispatch(job, input), or app.sync.dispatch(job, input)",
    "enqueue_at": "await app.dispatch(job, input, scheduled_at=…)",
    "enqueue_in": "await app.dispatch(job, input, delay=…)",
    "enqueue_many": "await app.dispatch_many(job, inputs)",
    "job_manager": "app.list_jobs(), app.cancel(job_id) and app.dead_letters",
    "open_async": "async with app",
    "periodic": "write @app.cron",
    "run_worker": "`forge worker module:app`, or app.run()",
    "run_worker_async": "`forge worker module:app`, or app.run()",
    "send_task": "await app.dispatch(name, input)",
    "task": "write @app.job",
    "worker_main": "`forge worker module:app`, or app.run()",
}

# Whose names they are, where they are not Celery's.
PROCRASTINATE = frozenset(
    {"batch_defer", "configure", "configure_task", "defer", "defer_async", "job_manager"}
    | {"open_async", "periodic", "run_worker", "run_worker_async", "should_abort"}
)
RQ = frozenset({"enqueue", "enqueue_at", "enqueue_in", "enqueue_many", "meta", "save_meta"})


def raise_equivalent(owner: str, name: str, known: Mapping[str, str]) -> None:
    """Raise the error of an attribute that another library has and Forge does not, if it is one."""
    if (hint := known.get(name)) is not None:
        raise AttributeError(
            f"{owner} has no {name!r} as in {library_of(name)}: {hint.format(owner)}"
        )


def library_of(name: str) -> str:
    """Return the library that has this name."""
    return "procrastinate" if name in PROCRASTINATE else "RQ" if name in RQ else "Celery"
