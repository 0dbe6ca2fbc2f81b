"""A trace spans the dispatching process, the worker and its child processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Project
from tests.faults.kit.process import wait_until

APP = """
from pathlib import Path

import forge
from forge.telemetry.traces import trace
from opentelemetry import trace as opentelemetry
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
spans = Path(__file__).with_name("spans").open("a", buffering=1)
line = lambda span: span.to_json(indent=None) + "\\n"
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=spans, formatter=line)))
opentelemetry.set_tracer_provider(provider)
app = forge.Forge()
trace(app)


@app.job
async def greet(ctx: forge.JobContext, input: dict) -> None: ...


@app.job(isolation="process")
async def greet_alone(ctx: forge.JobContext, input: dict) -> None: ...
"""


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "traced.py").write_text(APP)
    return Project(database_url, tmp_path)


@pytest.mark.parametrize("job_type", ["greet", "greet_alone"])
def test_an_attempt_is_of_the_trace_of_its_dispatch_whichever_processes_they_are_of(
    project: Project, tmp_path: Path, job_type: str
) -> None:
    with project.worker(app="traced:app"):
        ended = project.forge("dispatch", job_type, "{}", "--app", "traced:app")
        assert ended.returncode == 0, ended.stderr

        wait_until(lambda: len(spans(tmp_path)) == 2, 30, "both spans are there")

    exported = spans(tmp_path)
    dispatch, attempt = exported[f"dispatch {job_type}"], exported[f"process {job_type}"]
    assert attempt["parent_id"] == dispatch["context"]["span_id"]
    assert attempt["context"]["trace_id"] == dispatch["context"]["trace_id"]


def spans(folder: Path) -> dict[str, Any]:
    """Return the spans that all processes have ended so far, by their names."""
    found = [json.loads(line) for line in (folder / "spans").read_text().splitlines()]
    return {span["name"]: span for span in found}
