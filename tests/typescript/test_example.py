"""The pages of the example compile, and the Svelte page is that of the specification."""

from pathlib import Path

import pytest
from examples.export_users.build import FRONTEND

from tests.typescript.project import svelte_checked

# The code of the specification: the script and the markup.
SCRIPT = """
import { createExportUsersJob } from '$lib/forge';
import { onDestroy } from 'svelte';

const job = createExportUsersJob();
onDestroy(job.cleanup);

async function startExport() {
    await job.start({ format: 'csv' });
}
"""
MARKUP = """
{#if $job}
    <div class="progress">
        <div class="bar" style="width: {$job.progress_percent}%"></div>
        <span>{$job.progress_message}</span>
    </div>
    {#if $job.status === 'completed'}
        <p>Export complete!</p>
    {:else if $job.status === 'failed'}
        <p class="error">{$job.last_error}</p>
    {/if}
{/if}
"""


def test_the_pages_compile(packages: Path) -> None:
    assert svelte_checked(FRONTEND) == []


@pytest.mark.parametrize("printed", [SCRIPT, MARKUP], ids=["script", "markup"])
def test_the_svelte_page_has_the_code_of_the_specification(printed: str) -> None:
    page = (FRONTEND / "src" / "svelte" / "ExportUsers.svelte").read_text()

    assert _without_indents(printed) in _without_indents(page)


def _without_indents(code: str) -> str:
    return "\n".join(line.strip() for line in code.strip().splitlines())
