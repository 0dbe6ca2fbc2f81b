"""Lists, groups and counts over a million dead letters: `python -m benchmarks.dead_letters`."""

import hashlib
import sys
from time import perf_counter

import click
import httpx
import uvloop

from benchmarks.bound import judged
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from forge import Config, Forge
from forge.http import create_app
from forge.store.dead_letters import compact
from forge.store.roles import grant_roles

LIST_MS, STATISTICS_MS = 300, 100
MIDDLE = "select dlq_id from forge_dead_letters order by dlq_id offset $1 limit 1"
LETTER = "select dlq_id from forge_dead_letters where tenant_id = $1 limit 1"
CAUSES, TENANTS = 2_000, 1_000
TENANT = 7
# Requests to the API as forge_api, by an operator and by the manager of one tenant.
ADMIN = "/api/jobs/admin"
QUESTIONS = {
    f"{ADMIN}/dlq/": LIST_MS,
    f"{ADMIN}/dlq/?cursor={{middle}}": LIST_MS,
    f"{ADMIN}/dlq/?status=pending_review&cursor={{middle}}": LIST_MS,
    f"{ADMIN}/dlq/?status=reprocessed": LIST_MS,
    f"{ADMIN}/dlq/?job_type=type_7": LIST_MS,
    f"{ADMIN}/dlq/?category=sync&cursor={{middle}}": LIST_MS,
    f"{ADMIN}/dlq/?error_class=transient&cursor={{middle}}": LIST_MS,
    f"{ADMIN}/dlq/?error_class=transient&job_type=type_7&status=discarded": LIST_MS,
    f"{ADMIN}/dlq/?fingerprint={{fingerprint}}": LIST_MS,
    f"{ADMIN}/dlq/?limit=200": LIST_MS,
    f"{ADMIN}/dlq/{{letter}}/": LIST_MS,
    f"{ADMIN}/dlq/groups/": LIST_MS,
    f"{ADMIN}/dlq/groups/?job_type=type_7&limit=200": LIST_MS,
    f"{ADMIN}/dlq/groups/?status=discarded": LIST_MS,
    f"{ADMIN}/dlq/statistics/": STATISTICS_MS,
    f"{ADMIN}/queue/statistics/": STATISTICS_MS,
}


@click.command()
@click.option("--letters", default=1_000_000, show_default=True)
@click.option("--jobs", default=1_000_000, show_default=True)
def main(letters: int, jobs: int) -> None:
    """Measure response times for a reviewer, with many dead letters and jobs."""
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, letters, jobs))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, letters: int, jobs: int) -> bool:
    async with Forge(database_url=dsn) as app, connected(dsn, 1) as (connection,):
        await app.migrate()
        await connection.execute(sql("fill_dead_letters"), letters, CAUSES, TENANTS)
        await connection.execute(sql("forge_fill_mixed"), jobs)
        await connection.execute("vacuum analyze")
        database = await (await app.session()).database()
        await grant_roles(database)
        await database.run(compact(10 * letters))
        known = {
            "middle": await connection.fetchval(MIDDLE, letters // 2),
            "letter": await connection.fetchval(LETTER, TENANT),
            "fingerprint": hashlib.md5(str(TENANT).encode()).hexdigest(),
        }
    config = Config(auth={"tokens": [_token("all", None), _token("one", TENANT)]})
    async with Forge(config, database_url=dsn.replace("//forge@", "//forge_api@")) as app:
        transport = httpx.ASGITransport(create_app(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as http:
            return all(
                [
                    await _timed(http, path.format(**known), caller, limit)
                    for path, limit in QUESTIONS.items()
                    for caller in ("all", "one")
                ]
            )


def _token(name: str, tenant: int | None) -> dict[str, object]:
    secret = hashlib.sha256(name.encode()).hexdigest()
    token: dict[str, object] = {"name": name, "sha256": secret, "roles": ["staff", "manager"]}
    return token if tenant is None else token | {"tenant_id": tenant}


async def _timed(http: httpx.AsyncClient, path: str, caller: str, limit: int) -> bool:
    took = []
    for _ in range(5):
        began = perf_counter()
        response = await http.get(path, headers={"Authorization": f"Bearer {caller}"})
        response.raise_for_status()
        took.append((perf_counter() - began) * 1000)
    worst = max(took[1:])  # the first request plans the statements
    route = path.removeprefix(ADMIN)[:44]
    return judged(f"{route} by {caller}: worst ms", worst, f"≤ {limit}", f"best {min(took):,.2f}")


if __name__ == "__main__":
    main()
