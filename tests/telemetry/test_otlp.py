"""The documented tracing app: its processes send their spans by OTLP to a receiver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.surface.pages import CHECKOUT, blocks
from tests.telemetry.otlp_receiver import Received, Receiver, values

PAGE = CHECKOUT / "docs" / "howto" / "observability.md"
MORE = """

@app.job(retry=forge.Retry(max_attempts=2, max_backoff="1ms"))
def charge(ctx: JobContext, input: dict[str, str]) -> None:
    if ctx.attempt == 1:
        raise ConnectionError(f"refused with password={input['password']}")
"""
NAMES = [
    "dispatch import_orders",
    "process import_orders",
    "dispatch send_receipt",
    "process send_receipt",
]
KINDS = [Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER] * 2
SECRET = "hunter2hunter2"
CORRELATION = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


@pytest.fixture
def project(database_url: str, tmp_path: Path, receiver: Receiver) -> Project:
    (code,) = (block.code for block in blocks(PAGE, "python") if block.file == "traced.py")
    (tmp_path / "traced.py").write_text("import forge\n" + code + MORE)
    project = Project(database_url, tmp_path)
    project.env |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    return project


def test_a_collector_receives_one_tree_from_all_processes(
    project: Project, receiver: Receiver
) -> None:
    project.env["OTEL_SERVICE_NAME"] = "worker"
    with project.worker(app="traced:app") as worker:
        project.env["OTEL_SERVICE_NAME"] = "web"
        job_id = dispatch(project, "import_orders", '{"customer": "ann"}', "--tenant-id", "7",
                          "--correlation-id", CORRELATION)  # fmt: skip
        charged = dispatch(project, "charge", f'{{"password": "{SECRET}"}}')
        wait_until(lambda: len(receiver.named("process send_receipt")) == 1, 60, "the last span")
        wait_until(lambda: len(receiver.named("process charge")) == 2, 60, "both attempts")
        worker.sigterm()
        assert worker.wait(60) == 0, worker.output()

    tree = [each for name in NAMES for each in receiver.named(name)]
    assert [each.name for each in tree] == NAMES
    assert {each.span.trace_id for each in tree} == {tree[0].span.trace_id}
    parents = [b"", *(each.span.span_id for each in tree[:-1])]
    assert [each.span.parent_span_id for each in tree] == parents
    assert [each.service for each in tree] == ["web", "worker", "worker", "worker"]
    assert {each.scope for each in tree} == {"forge"}
    assert [each.span.kind for each in tree] == KINDS
    assert tree[0].attributes == {
        "messaging.system": "forge",
        "messaging.destination.name": "import_orders",
    }
    assert tree[1].attributes == tree[0].attributes | {
        "messaging.operation.type": "process",
        "messaging.message.id": job_id,
        "messaging.message.conversation_id": CORRELATION,
        "forge.attempt": 1,
        "forge.tenant_id": 7,
    }
    check_attempts(receiver.named("process charge"), charged)
    described = [line for line in PAGE.read_text().splitlines() if " TYPE` | " in line]
    assert [name for name in tree[1].attributes if f"`{name}`" not in "".join(described)] == []


def check_attempts(attempts: list[Received], job_id: str) -> None:
    """The first attempt failed, the second did not, and neither tells the secret."""
    failed, completed = sorted(attempts, key=lambda each: each.attributes["forge.attempt"])
    assert [failed.attributes["messaging.message.id"], failed.attributes["forge.attempt"]] == [
        job_id,
        1,
    ]
    assert failed.span.parent_span_id == completed.span.parent_span_id != b""
    assert failed.span.status.code == Status.STATUS_CODE_ERROR
    assert completed.span.status.code == Status.STATUS_CODE_UNSET
    (event,) = failed.span.events
    exception = values(event.attributes)
    assert exception["exception.type"] == "ConnectionError"
    assert "refused with password=" in exception["exception.message"]
    assert SECRET not in str(failed.span)


def dispatch(project: Project, job_type: str, value: str, *options: str) -> str:
    ended = project.forge("dispatch", job_type, value, "--app", "traced:app", *options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
