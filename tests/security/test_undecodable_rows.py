"""A row that was written in SQL and cannot be decoded breaks no list: it is shown as undecodable.

Fault 58: PostgreSQL accepts numbers of 131,072 digits and JSON of any depth, Python does not.
"""

from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from pydantic import BaseModel

import forge
from forge import Forge, JobContext, UndecodablePayload
from tests.apps import working
from tests.cli.command import Project
from tests.faults.kit.process import until
from tests.http.admins import DLQ, MANAGER
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import client, events

VALUES = {
    "digits": "jsonb_build_object('a', repeat('9', 100000)::numeric)",
    "depth": "(repeat('[', 5000) || repeat(']', 5000))::jsonb",
    "infinity": "('[' || repeat('9', 400) || '.5]')::jsonb",
}
TIMES = ["-infinity", "4713-01-01 BC", "0001-01-01", "9999-12-31", "20000-01-01", "infinity"]
NAMES = ["first", *VALUES, "tags", "type", *TIMES, "last"]


@pytest.fixture
async def ids(psql: Any) -> dict[str, UUID]:
    """An ordinary job, one of each kind that cannot be read, and another ordinary one."""
    made = {}
    for name in NAMES:
        input, meta = VALUES.get(name, "jsonb_build_object('to', 'ann')"), VALUES.get(name, "null")
        time = f"'{name}'" if name in TIMES else "now()"
        made[name] = await psql.fetchval(
            "insert into forge_jobs (job_type, tags, input, meta, scheduled_at, expires_at) "
            f"values ($1, $2, {input}, {meta}, {time}, {time}) returning id",
            "" if name == "type" else "reading",
            [None, "a"] if name == "tags" else ["a"],
        )
    return made


def expected(name: str) -> list[str]:
    if name == "tags":
        return ["tags"]
    return ["input", "meta"] if name in VALUES else []


async def test_lists_searches_and_details_show_the_row_and_all_others(
    http: httpx.AsyncClient, token: MakeToken, ids: dict[str, UUID]
) -> None:
    headers = token("user")

    listed = await http.get("/_api/jobs", headers=headers)
    searched = await http.get("/_api/jobs", params={"q": "ann"}, headers=headers)

    shown = {job["id"]: job for job in listed.json()["items"]}
    assert {name: shown[str(ids[name])]["undecodable"] for name in NAMES} == {
        name: expected(name) for name in NAMES
    }
    assert shown[str(ids["digits"])]["input"] is None
    assert shown[str(ids["last"])]["input"] == {"to": "ann"}
    found = {job["id"] for job in searched.json()["items"]}
    assert found == {str(ids[name]) for name in NAMES if name not in VALUES}
    for name in NAMES:
        one = await http.get(f"/_api/jobs/{ids[name]}", headers=headers)
        tried = await http.get(f"/_api/jobs/{ids[name]}/attempts", headers=headers)
        assert (one.json()["undecodable"], tried.json()) == (expected(name), {"items": []})


async def test_handles_and_commands_show_the_row_and_all_others(
    app: Forge, ids: dict[str, UUID], database_url: str
) -> None:
    project = Project(database_url)

    records = {name: await app.get(ids[name]) for name in NAMES}
    listed = project.forge("jobs", "list")
    shown = project.forge("jobs", "show", str(ids["digits"]))

    assert {name: list(record.undecodable) for name, record in records.items()} == {
        name: expected(name) for name in NAMES
    }
    assert listed.returncode == 0, listed.stderr
    assert all(str(id) in listed.stdout for id in ids.values())
    assert (shown.returncode, "undecodable" in shown.stdout) == (0, True), shown.stderr


@pytest.mark.parametrize("value", VALUES)
async def test_followers_are_sent_a_job_whose_output_cannot_be_read(
    app: Forge,
    make_server_app: MakeServerApp,
    serve: Serve,
    token: MakeToken,
    psql: Any,
    value: str,
) -> None:
    job_id = await psql.fetchval(
        f"insert into forge_jobs (job_type, input) values ('reading', {VALUES[value]}) returning id"
    )
    await psql.execute(
        "update forge_jobs set status = 'running', lease = 1, worker_id = forge_uuidv7()"
    )
    await psql.execute(f"update forge_jobs set status = 'completed', output = {VALUES[value]}")
    address, headers = await serve(make_server_app(app)), token("user")

    async with client(address, headers) as socket:
        await socket.subscribe(job_id)
        by_socket = await socket.job()
    async with events(address, job_id, headers) as stream:
        by_stream = await stream.job()

    for job in (by_socket, by_stream):
        assert (job["status"], job["output"], job["undecodable"]) == ("completed", None, ["output"])


class Mail(BaseModel):
    to: str


@forge.job(isolation="process")
def reading_in_process(ctx: JobContext, input: dict[str, Any]) -> None: ...


def add_readers(app: Forge) -> None:
    @app.job
    async def reading(ctx: JobContext, input: dict[str, Any]) -> str:
        return str(input["to"])

    @app.job
    async def reading_model(ctx: JobContext, input: Mail) -> str:
        return input.to

    @app.job
    def reading_in_thread(ctx: JobContext, input: Any) -> None: ...

    @app.job
    async def reading_auth(ctx: JobContext, input: dict[str, Any]) -> Any:
        return ctx.auth


async def test_a_worker_dead_letters_what_it_cannot_read_and_works_on(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, database_url: str
) -> None:
    add_readers(app)
    app.register(reading_in_process)
    kinds = ["reading", "reading_model", "reading_in_thread", "reading_in_process"]
    for kind in kinds:
        for value in VALUES.values():
            await psql.execute(
                f"insert into forge_jobs (job_type, input) values ($1, {value})", kind
            )
    await psql.execute(
        f"insert into forge_jobs (job_type, auth) values ('reading_auth', {VALUES['digits']})"
    )
    buried = len(kinds) * len(VALUES) + 1

    async with working(app):
        ordinary = await app.dispatch("reading", {"to": "ann"})
        assert await ordinary.result(30) == "ann"
        count = "select count(*) from forge_jobs where status = 'dead_letter'"

        async def all_are_buried() -> bool:
            return bool(await psql.fetchval(count) == buried)

        await until(all_are_buried, 30, "all are dead letters")

    rows = await psql.fetch(
        "select attempts, error_class, last_error from forge_jobs where status = 'dead_letter'"
    )
    assert {(row["attempts"], row["error_class"]) for row in rows} == {(1, "non_retryable")}
    assert all("correct it where it was written" in row["last_error"] for row in rows)
    await see_letters(http, token(*MANAGER), Project(database_url), buried)


async def see_letters(
    http: httpx.AsyncClient, headers: dict[str, str], project: Project, count: int
) -> None:
    listed = (await http.get(DLQ, headers=headers)).json()["dlq_items"]
    letter = next(item for item in listed if item["job_type"] == "reading_model")
    groups = await http.get(f"{DLQ}groups/", headers=headers)
    one = await http.get(f"{DLQ}{letter['dlq_id']}/", headers=headers)
    commands = (("dlq", "list"), ("dlq", "show", str(letter["dlq_id"])))

    assert len(listed) == count
    assert groups.status_code == 200
    assert (one.json()["payload"], one.json()["undecodable"]) == (None, ["payload"])
    for command in commands:
        ended = project.forge(*command)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("value", VALUES)
async def test_schedules_show_a_payload_that_cannot_be_read(
    http: httpx.AsyncClient, token: MakeToken, psql: Any, database_url: str, value: str
) -> None:
    id = await psql.fetchval(
        "insert into forge_schedules (type, payload, recent_runs) "
        f"values ('tick', {VALUES[value]}, {VALUES[value]}) returning id"
    )
    await psql.execute("insert into forge_schedules (type, key) values ('tick', 'fine')")
    headers = token("user", *MANAGER)

    listed = await http.get("/_api/schedules", headers=headers)
    one = await http.get(f"/_api/schedules/{id}", headers=headers)
    ended = Project(database_url).forge("schedules", "list")

    assert len(listed.json()["items"]) == 2
    assert one.json()["payload"] is None
    assert one.json()["undecodable"] == ["payload", "recent_runs"]
    assert ended.returncode == 0, ended.stderr


INTERVALS = ["178000000 years", "-178000000 years", "2147483647 days", "-1 hour", "0"]


async def test_a_worker_runs_jobs_with_odd_times_and_works_on(app: Forge, psql: Any) -> None:
    add_readers(app)
    for time in TIMES[:3]:
        await psql.execute(
            "insert into forge_jobs (job_type, input, scheduled_at) "
            f"values ('reading', '{{\"to\": \"ann\"}}', '{time}')"
        )
    for interval in INTERVALS:
        await psql.execute(
            "insert into forge_jobs (job_type, input, timeout, max_attempts) "
            f"values ('reading', '{{\"to\": \"ann\"}}', '{interval}', 1)"
        )

    async with working(app):
        ordinary = await app.dispatch("reading", {"to": "ann"})
        assert await ordinary.result(30) == "ann"
        waiting = "select count(*) from forge_jobs where completed_at is null"

        async def all_have_ended() -> bool:
            return bool(await psql.fetchval(waiting) == 0)

        await until(all_have_ended, 30, "all have ended")


async def test_a_worker_runs_schedules_with_odd_times_and_works_on(app: Forge, psql: Any) -> None:
    @app.schedule("tick")
    async def tick(ctx: Any) -> None: ...

    for time in TIMES[:3]:
        for interval in (INTERVALS[0], INTERVALS[2]):
            length = f"interval '{interval}'"
            await psql.execute(
                "insert into forge_schedules (type, key, next_run_at, tick_at, every, jitter) "
                f"values ('tick', '{time} {interval}', '{time}', '{time}', {length}, {length})"
            )

    async with working(app):
        waiting = "select count(*) from forge_schedules where last_run_at is null"

        async def all_have_run() -> bool:
            return bool(await psql.fetchval(waiting) == 0)

        await until(all_have_run, 30, "all have run")
        assert await psql.fetchval("select max(consecutive_failures) from forge_schedules") == 0


@pytest.mark.parametrize("runs", ["[1]", "{}", '"text"', '[{"outcome": 7}]', "null"])
async def test_schedules_show_runs_and_times_of_an_odd_shape(
    http: httpx.AsyncClient, token: MakeToken, psql: Any, database_url: str, runs: str
) -> None:
    insert = (
        "insert into forge_schedules (type, key, recent_runs, next_run_at, tick_at, every, jitter) "
        "values ('tick', $1, $2::text::jsonb, $3::text::timestamptz, $3::text::timestamptz, "
        "$4::text::interval, $4::text::interval) returning id"
    )
    ids = [
        await psql.fetchval(insert, f"{time} {interval}", runs, time, interval)
        for time in TIMES
        for interval in (INTERVALS[0], INTERVALS[2])
    ]
    headers, project = token("user", *MANAGER), Project(database_url)

    listed = await http.get("/_api/schedules", headers=headers)
    shown = [await http.get(f"/_api/schedules/{id}", headers=headers) for id in ids]
    commands = [project.forge("schedules", "list"), project.forge("schedules", "list", "--json")]
    commands += [project.forge("schedules", "show", "tick", f"infinity {INTERVALS[0]}")]

    assert len(listed.json()["items"]) == len(ids)
    assert {one.status_code for one in shown} == {200}
    assert {one.json()["recent_runs"] == [] for one in shown} == {True}
    assert [ended.stderr for ended in commands if ended.returncode] == []


REFUSED = {
    VALUES["digits"]: "contains a number with too many digits",
    VALUES["depth"]: "is nested deeper than 64 levels",
    VALUES["infinity"]: "contains a number with too many digits",
    "(repeat('[', 65) || repeat(']', 65))::jsonb": "is nested deeper than 64 levels",
    "repeat('9', 4301)::jsonb": "contains a number with too many digits",
    "to_jsonb(repeat('x', 262143))": "is 262145 bytes of JSON, the limit is 262144",
}
TAKEN = [
    "(repeat('[', 64) || repeat(']', 64))::jsonb",
    "(repeat('{\"a\": [', 32) || repeat(']}', 32))::jsonb",
    "repeat('9', 4300)::jsonb",
    "('0.' || repeat('1', 5000))::jsonb",
    "to_jsonb(repeat('9', 100000))",
    "to_jsonb(repeat('[{\"\\', 20000))",
    "jsonb_build_object(repeat('[\"', 5000), 0.25)",
]


@pytest.mark.parametrize("argument", ["input", "auth", "meta"])
async def test_forge_dispatch_refuses_what_python_refuses(psql: Any, argument: str) -> None:
    await psql.execute("insert into forge_job_types (name) values ('reading')")
    errors = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)

    for value, message in REFUSED.items():
        with pytest.raises(errors, match=message) as why:
            await psql.fetchval(f"select forge_dispatch('reading', {argument} => {value})")
        assert why.value.hint

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_forge_dispatch_takes_what_python_takes(psql: Any, app: Forge) -> None:
    await psql.execute("insert into forge_job_types (name) values ('reading')")

    for value in TAKEN:
        job_id = await psql.fetchval(f"select forge_dispatch('reading', {value})")
        assert (await app.get(job_id)).undecodable == (), value


async def test_the_result_of_a_job_whose_output_cannot_be_read_is_an_error(
    app: Forge, psql: Any
) -> None:
    add_readers(app)
    handle = await app.dispatch("reading", {"to": "ann"})
    await psql.execute(
        "update forge_jobs set status = 'running', lease = 1, worker_id = forge_uuidv7()"
    )
    await psql.execute(f"update forge_jobs set status = 'completed', output = {VALUES['digits']}")

    with pytest.raises(UndecodablePayload, match="the output of reading"):
        await handle.result(30)
    assert (await handle.get()).undecodable == ("output",)
