"""The equivalents of Celery's names, for the errors of code that moves from Celery to Forge."""

from collections.abc import Mapping

# Arguments of @app.task.
ATTRIBUTES: Mapping[str, str] = {
    "acks_late": "every job is acknowledged after it ran; leave it out",
    "autoretry_for": "every exception is retried; name those that are not with app.classify()",
    "base": "wrap attempts with @app.middleware",
    "bind": "every handler receives its context as its first parameter; leave it out",
    "default_retry_delay": "write retry=Retry(backoff=…, max_backoff=…)",
    "ignore_result": "a handler that returns nothing stores nothing; leave it out",
    "max_retries": "write max_attempts, which counts the first attempt too: one more than "
    "max_retries",
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
# Arguments of apply_async().
OPTIONS: Mapping[str, str] = {
    "args": "pass the input as the second argument: one object, not positional arguments",
    "countdown": 'write delay, such as delay="10s"',
    "eta": "write scheduled_at",
    "expires": "write expires_at",
    "kwargs": "pass the input as the second argument: a model or a dict",
    "link": "dispatch the next job at the end of the handler, in ctx.complete_in_transaction()",
    "link_error": "a job that fails for good becomes a dead letter; see app.dead_letters",
    "routing_key": "write queue",
    "task_id": "write idempotency_key; the id of a job is made by Forge",
}
# Methods of a task.
OF_A_JOB: Mapping[str, str] = {
    "apply": "call the job to run it here, or use forge.testing.call()",
    "apply_async": "await {0}.dispatch(input, delay=…), or app.sync.dispatch({0}, input, …) "
    "without an event loop",
    "delay": "await {0}.dispatch(input), or app.sync.dispatch({0}, input) without an event loop",
    "retry": "raise forge.Retryable(…) in the handler, or any other exception",
    "s": "dispatch the next job at the end of the handler; there are no signatures",
    "si": "dispatch the next job at the end of the handler; there are no signatures",
    "signature": "dispatch the next job at the end of the handler; there are no signatures",
}
# Attributes of a bound task's self.
OF_A_CONTEXT: Mapping[str, str] = {
    "request": "the context has job_id, attempt, auth and more itself",
    "retry": "raise forge.Retryable(…), or any other exception; forge.Snooze(…) runs the job later "
    "without using an attempt",
    "update_state": 'call ctx.progress(percent, "message")',
}
# Attributes of a Celery app.
OF_AN_APP: Mapping[str, str] = {
    "AsyncResult": "app.handle(job_id)",
    "autodiscover_tasks": "import the modules of the jobs in the module of the app",
    "conf": "settings are in forge.toml, in FORGE_… variables, or in Forge(Config(…))",
    "control": "app.cancel(), app.pause() and app.workers",
    "send_task": "await app.dispatch(name, input)",
    "task": "write @app.job",
    "worker_main": "`forge worker module:app`, or app.run()",
}


def raise_equivalent(owner: str, name: str, known: Mapping[str, str]) -> None:
    """Raise the error of an attribute that Celery has and Forge does not, if it is one."""
    if (hint := known.get(name)) is not None:
        raise AttributeError(f"{owner} has no {name!r} as in Celery: {hint.format(owner)}")
