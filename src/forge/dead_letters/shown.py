"""Lists of dead letters as they are shown: without payloads, and without their secrets."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from forge.core.dead_letter import DeadLetter, DeadLetterGroup
from forge.core.sensitive.redact import REDACTED, redact_key, redact_text
from forge.core.sensitive.shown import shown_message
from forge.definitions.catalog import Catalog, RunStatement
from forge.store import dead_letters


async def shown_letters(
    catalog: Catalog, letters: Sequence[DeadLetter], run: RunStatement
) -> list[DeadLetter]:
    """Return the letters of a list as they are shown."""
    said = await _said(
        catalog, run, [(one.dlq_id, one.job_type, one.error_message) for one in letters]
    )
    return [
        replace(
            letter,
            error_message=said[letter.dlq_id],
            idempotency_key=letter.idempotency_key and redact_key(letter.idempotency_key),
            notes=None if letter.notes is None else redact_text(letter.notes),
        )
        for letter in letters
    ]


async def shown_groups(
    catalog: Catalog, groups: Sequence[DeadLetterGroup], run: RunStatement
) -> list[DeadLetterGroup]:
    """Return groups as they are shown; each shows the error of its sample."""
    said = await _said(
        catalog, run, [(one.sample, one.job_type, one.error_message) for one in groups]
    )
    return [replace(group, error_message=said[group.sample]) for group in groups]


async def _said(
    catalog: Catalog, run: RunStatement, letters: Sequence[tuple[int, str, str | None]]
) -> dict[int, str | None]:
    """Return the error of each letter, by its id, without what its payload keeps secret."""
    payloads: dict[int, Any] = await run(dead_letters.payloads([id for id, _, _ in letters]))
    allowed = await catalog.sensitive_allowed_by_type(job_type for _, job_type, _ in letters)

    def shown() -> dict[int, str | None]:
        return {
            # The payload of an unlisted one was too long to read: its error may quote anything.
            id: shown_message(said, payloads[id], allowed[kind]) if id in payloads else REDACTED
            for id, kind, said in letters
        }

    # A page may read 20 MB of payloads, which would stop a server's event loop for seconds.
    return await asyncio.to_thread(shown)
