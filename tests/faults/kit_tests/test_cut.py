"""A cut lets the server commit, but the client gets no answer."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest

from forge.store.embedded import Cluster
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit_tests.letters import INSERT, LOST, words


async def test_a_cut_commits_an_autocommit_statement_without_an_answer(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    cut = proxy.cut_after_commit(matching="INSERT INTO   letters")

    assert await client.fetchval("select 1") == 1
    with pytest.raises(LOST):
        await client.fetchval(INSERT, "once")

    assert cut.happened == 1
    assert await words(direct) == ["once"]


async def test_a_cut_matches_a_prepared_statement(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    prepared = await client.prepare(INSERT)
    other = await client.prepare("select $1::int")
    await prepared.fetchval("before")
    cut = proxy.cut_after_commit(matching="insert into letters")

    assert await other.fetchval(5) == 5
    with pytest.raises(LOST):
        await prepared.fetchval("cut")

    assert cut.happened == 1
    assert await words(direct) == ["before", "cut"]


async def test_a_cut_waits_for_the_commit_of_an_explicit_transaction(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    cut = proxy.cut_after_commit(matching="insert into letters")
    transaction = client.transaction()
    await transaction.start()

    await client.fetchval(INSERT, "first")
    assert await client.fetchval("select count(*) from letters") == 1
    assert cut.happened == 0
    with pytest.raises(LOST):
        await transaction.commit()

    assert cut.happened == 1
    assert await words(direct) == ["first"]


async def test_a_rollback_is_not_cut(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    cut = proxy.cut_after_commit(matching="insert into letters")
    transaction = client.transaction()
    await transaction.start()
    await client.fetchval(INSERT, "first")

    await transaction.rollback()
    assert await client.fetchval("select 1") == 1

    assert cut.happened == 0
    assert await words(direct) == []


async def test_a_failed_statement_is_not_cut(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    await client.fetchval(INSERT, "same")
    cut = proxy.cut_after_commit(matching="insert into letters")

    with pytest.raises(asyncpg.UniqueViolationError):
        await client.fetchval(INSERT, "same")
    with pytest.raises(asyncpg.UniqueViolationError):
        await client.execute("insert into letters (word) values ('same')")

    with pytest.raises(asyncpg.UniqueViolationError):
        await client.executemany(INSERT, [("other",), ("same",)])

    assert cut.happened == 0
    assert await words(direct) == ["same"]


async def test_one_cut_applies_to_one_of_two_open_transactions(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    other = await asyncpg.connect(proxy.url())
    cut = proxy.cut_after_commit(matching="insert into letters", times=1)
    first, second = client.transaction(), other.transaction()
    await first.start()
    await second.start()
    await client.fetchval(INSERT, "first")
    await other.fetchval(INSERT, "second")

    with pytest.raises(LOST):
        await first.commit()
    await second.commit()

    assert (cut.happened, cut.left) == (1, 0)
    assert await words(direct) == ["first", "second"]
    await other.close()


async def test_no_byte_of_a_long_answer_passes_before_a_cut(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    prepared = await client.prepare(
        "insert into letters (word) select n || repeat('a', 1000) from generate_series(1, 5000) n"
        " returning word"
    )
    before = proxy.network.bytes_to_client
    proxy.cut_after_commit(matching="insert into letters")

    with pytest.raises(LOST):
        await prepared.fetch()

    assert proxy.network.bytes_to_client == before
    assert len(await words(direct)) == 5000


async def test_a_batch_and_a_copy_are_cut(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    cut = proxy.cut_after_commit(matching=lambda text: "letters" in text, times=2)

    with pytest.raises(LOST):
        await client.executemany(INSERT, [("a",), ("b",)])
    again = await asyncpg.connect(proxy.url())
    with pytest.raises(LOST):
        await again.copy_records_to_table("letters", records=[(100, "c")], columns=["id", "word"])

    assert cut.happened == 2
    assert await words(direct) == ["a", "b", "c"]


async def test_a_cut_happens_the_requested_number_of_times(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    cut = proxy.cut_after_commit(matching="insert into letters", times=1)
    with pytest.raises(LOST):
        await client.execute("insert into letters (word) values ('first')")

    again = await asyncpg.connect(proxy.url())
    await again.fetchval(INSERT, "second")

    assert (cut.happened, cut.left) == (1, 0)
    assert await words(direct) == ["first", "second"]
    await again.close()


def test_a_proxy_in_a_thread_serves_blocking_code(server: Cluster) -> None:
    with (
        Proxy.in_thread(server.url(tcp=True), seed=7) as proxy,
        psycopg.connect(server.url(tcp=True)) as direct,
    ):
        direct.autocommit = True
        direct.execute("create table numbers (n int)")
        cut = proxy.cut_after_commit(matching="insert into numbers")

        with psycopg.connect(proxy.url()) as client:
            client.execute("insert into numbers values (%s)", (1,))
            with pytest.raises(psycopg.OperationalError):
                client.commit()

        assert cut.happened == 1
        assert direct.execute("select n from numbers").fetchall() == [(1,)]
        direct.execute("drop table numbers")
        proxy.mode = Mode.RESET
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url())


def test_a_delayed_copy_is_cut_at_its_end(server: Cluster) -> None:
    with (
        Proxy.in_thread(server.url(tcp=True)) as proxy,
        psycopg.connect(server.url(tcp=True), autocommit=True) as direct,
    ):
        direct.execute("create table copied (n int)")
        cut = proxy.cut_after_commit(matching="copy copied")

        client = psycopg.connect(proxy.url(), autocommit=True)
        with pytest.raises(psycopg.OperationalError):
            copy_one_row(client)

        assert cut.happened == 1
        assert direct.execute("select n from copied").fetchall() == [(5,)]
        direct.execute("drop table copied")
        client.close()


def test_libpq_may_request_encryption_first(server: Cluster) -> None:
    with Proxy.in_thread(server.url(tcp=True)) as proxy:
        url = proxy.url().replace("sslmode=disable", "sslmode=prefer")
        cut = proxy.cut_after_commit(matching="select 'cut me'")

        with (
            psycopg.connect(url, autocommit=True) as client,
            pytest.raises(psycopg.OperationalError),
        ):
            client.execute("select 'cut me'")

        assert cut.happened == 1


def copy_one_row(client: psycopg.Connection) -> None:
    with client.cursor() as cursor, cursor.copy("copy copied from stdin") as copy:
        copy.write_row((5,))
