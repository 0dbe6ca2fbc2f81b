"""The lifecycle page, generated from the transition table in the code."""

from forge.core.lifecycle import AT_ONCE, LIFECYCLE, MEANINGS, Status, Verb

HEADER = """<!-- Generated from src/forge/core/lifecycle.py by `make format`. -->

# The lifecycle of a job

The database rejects every transition that is not on this page, from any client.

![The statuses of a job as boxes, and the verbs as arrows](../pictures/lifecycle.svg)

An arrow from a dashed frame starts at each status inside it.
"""


def lifecycle_page() -> str:
    return "\n".join([HEADER, *_statuses(), "", *_verbs(), "", *_matrix(), ""])


def _statuses() -> list[str]:
    lines = ["## Statuses", "", "| status | state | meaning |", "|---|---|---|"]
    lines += [f"| `{s}` | `{s.state}` | {MEANINGS[s]} |" for s in Status]
    return lines


def _verbs() -> list[str]:
    lines = ["## Verbs", "", "| verb | from | to |", "|---|---|---|"]
    for verb in Verb:
        by_end: dict[Status, list[str]] = {}
        for (start, known), end in LIFECYCLE.items():
            if known is verb:
                by_end.setdefault(end, []).append(f"`{start}`")
        lines += [f"| {verb} | {', '.join(starts)} | `{end}` |" for end, starts in by_end.items()]
    together = "; ".join(" and ".join(verbs) for verbs in AT_ONCE)
    return [*lines, "", f"One statement can combine: {together}."]


def _matrix() -> list[str]:
    lines = [
        "## Transitions",
        "",
        "| | " + " | ".join(f"`{s}`" for s in Status) + " |",
    ]
    lines.append("|---" * (len(Status) + 1) + "|")
    for start in Status:
        cells = [
            ", ".join(v for v in Verb if LIFECYCLE.get((start, v)) is end) or "·" for end in Status
        ]
        lines.append(f"| `{start}` | " + " | ".join(cells) + " |")
    return lines
