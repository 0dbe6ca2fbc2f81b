"""`payload_version`: set as an option or inside the payload, and stored."""

from typing import Any

import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, JobContext, JobFailed
from tests.apps import Work
from tests.jobs.payload_rules.ways import ENVELOPE, OPTIONS, WAYS, dispatch, register_types

PAYLOAD: dict[str, Any] = {"order_id": 5}


class Order(BaseModel):
    order_id: int


@pytest.fixture(params=[None, "sync"], ids=["no category", "a category"])
async def fetch(request: pytest.FixtureRequest, app: Forge) -> Forge:
    @app.job(name="fetch", category=request.param, max_attempts=1)
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
        raise ValueError("it fails")

    await register_types(app)
    return app


async def versions(psql: Any) -> list[str]:
    return [
        row["payload_version"]
        for row in await psql.fetch(
            "select payload_version from forge_jobs order by created_at, id"
        )
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_a_version_is_set_as_an_option_or_inside_the_payload(
    fetch: Forge, database_url: str, psql: Any, way: str
) -> None:
    for n, (inside, options) in enumerate(
        [
            ({}, {}),
            ({"payload_version": "2.0"}, {}),
            ({}, {"payload_version": "3.0"}),
            ({"payload_version": "4.0"}, {"payload_version": "4.0"}),
        ]
    ):
        payload = PAYLOAD | ENVELOPE | {"idempotency_key": f"k{n}"} | inside
        await dispatch(way, fetch, database_url, payload, **options)

    assert await versions(psql) == ["1.0", "2.0", "3.0", "4.0"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("inside", "options"),
    [("2.0", {"payload_version": "3.0"}), ("x" * 33, {}), (" ", {})],
    ids=["differ", "too long", "blank"],
)
async def test_an_invalid_version_is_rejected(
    fetch: Forge, database_url: str, psql: Any, way: str, inside: str, options: dict[str, str]
) -> None:
    payload = PAYLOAD | ENVELOPE | {"payload_version": inside}

    with pytest.raises(InvalidPayload, match="payload_version"):
        await dispatch(way, fetch, database_url, payload, **options)

    assert await versions(psql) == []


async def test_each_of_many_has_its_own_version(fetch: Forge, psql: Any) -> None:
    inputs = [
        PAYLOAD | ENVELOPE | {"idempotency_key": f"k{n}", "payload_version": f"{n}.0"}
        for n in range(3)
    ]

    await fetch.dispatch_many("fetch", inputs)

    assert sorted(await versions(psql)) == ["0.0", "1.0", "2.0"]


async def test_each_of_many_with_keys_has_its_own_version(app: Forge, psql: Any) -> None:
    @app.job(idempotent="input.n")
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await app.dispatch_many("fetch", [{"n": n, "payload_version": f"{n}.0"} for n in range(3)])

    assert sorted(await versions(psql)) == ["0.0", "1.0", "2.0"]


async def test_a_version_that_the_model_drops_is_kept(app: Forge, psql: Any) -> None:
    @app.job(name="fetch", category="sync")
    async def fetch(ctx: JobContext, input: Order) -> None: ...

    handle = await fetch.dispatch(PAYLOAD | {"payload_version": "2.0"}, **OPTIONS)

    job = await handle.get()
    assert (job.payload_version, job.input["payload_version"]) == ("2.0", "2.0")


@pytest.mark.parametrize("edit", [{}, {"payload_version": "3.0"}], ids=["kept", "edited"])
@pytest.mark.parametrize("given", ["as an option", "inside"])
async def test_reprocessing_an_edited_payload_keeps_its_version_unless_edited(
    fetch: Forge, work: Work, psql: Any, given: str, edit: dict[str, str]
) -> None:
    inside = {"payload_version": "2.0"} if given == "inside" else {}
    options: Any = {"payload_version": "2.0"} if given == "as an option" else {}
    await work(fetch)
    handle = await fetch.dispatch("fetch", PAYLOAD | inside, **OPTIONS, **options)
    with pytest.raises(JobFailed):
        await handle.result(20)
    (letter,) = (await fetch.dead_letters.list()).items

    new = await fetch.dead_letters.reprocess(letter.dlq_id, payload={"order_id": 6} | edit)

    job = await fetch.handle(new.new_job_id).get()
    expected = edit.get("payload_version", "2.0")
    assert job.payload_version == expected
    assert job.input.get("payload_version", expected) == expected
    assert ("payload_version" in job.input) is (given == "inside" or bool(edit))
