"""The diagrams of the documentation, drawn from the tables in the code."""

from collections.abc import Callable

from tools.diagrams.claim_and_ack import claim_and_ack
from tools.diagrams.job_flow import job_flow
from tools.diagrams.layers import layers
from tools.diagrams.lifecycle import lifecycle

PICTURES: dict[str, Callable[[], str]] = {
    "docs/pictures/lifecycle.svg": lifecycle,
    "docs/pictures/layers.svg": layers,
    "docs/pictures/job-flow.svg": job_flow,
    "docs/pictures/claim-and-ack.svg": claim_and_ack,
}
