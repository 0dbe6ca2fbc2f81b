"""Reads the metrics of an exposition."""

import httpx
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]


def read(text: str) -> Samples:
    """Return the value of each sample by its name and its labels' values, in the order of names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def shown(registry: CollectorRegistry) -> Samples:
    return read(generate_latest(registry).decode())


async def scraped(client: httpx.AsyncClient, headers: dict[str, str]) -> Samples:
    """Scrape a server."""
    answer = await client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    return read(answer.text)
