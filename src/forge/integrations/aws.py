"""AWS for handlers (extra `aws`): boto3 clients whose calls are measured."""

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from forge.core.errors import ConfigError
from forge.core.events import Events, ExternalCall

if TYPE_CHECKING:
    from forge.app import Forge

# The parameter that names the target of a call, by service, for the metric's label.
TARGETS = {"s3": "Bucket", "sqs": "QueueUrl", "cloudfront": "DistributionId"}


def client(app: "Forge", service: str, **options: Any) -> Any:
    """Return a boto3 client whose calls feed the app's metrics; `options` are those of boto3.

    boto3 blocks: use it in handlers that are plain functions, or with `asyncio.to_thread`.
    """
    try:
        import boto3
    except ImportError as error:
        raise ConfigError(
            'AWS needs boto3; install it with `pip install "forge-jobs[aws]"`'
        ) from error
    # A new session: boto3's default session is not thread-safe, clients are.
    made = boto3.session.Session().client(service, **options)
    measure(made, app.events)
    return made


def measure(client: Any, events: Events) -> None:
    """Emit an event for each call of a boto3 client, including its retries."""
    service = client.meta.service_model.service_name
    hooks = _Hooks(service, events)
    client.meta.events.register(f"before-parameter-build.{service}", hooks.began)
    client.meta.events.register(f"after-call.{service}", hooks.answered)
    client.meta.events.register(f"after-call-error.{service}", hooks.failed)


class _Hooks:
    """Hooks that boto3 calls around each request; `context` belongs to one call."""

    def __init__(self, service: str, events: Events) -> None:
        self._service = service
        self._events = events

    def began(self, params: Mapping[str, Any], model: Any, context: Any, **_: Any) -> None:
        target = params.get(TARGETS.get(self._service, ""))
        context[_KEY] = (model.name, target, perf_counter())

    def answered(self, http_response: Any, parsed: Any, context: Any, **_: Any) -> None:
        is_error = http_response.status_code >= 300
        self._emit(context, _error_code(parsed, http_response.status_code) if is_error else None)

    def failed(self, exception: BaseException, context: Any, **_: Any) -> None:
        self._emit(context, type(exception).__name__)

    def _emit(self, context: Any, error_code: str | None) -> None:
        operation, target, began = context[_KEY]
        self._events.emit(
            ExternalCall(self._service, operation, target, perf_counter() - began, error_code)
        )


_KEY = "forge_call"


def _error_code(parsed: Mapping[str, Any], status: int) -> str:
    return str(parsed.get("Error", {}).get("Code") or status)
