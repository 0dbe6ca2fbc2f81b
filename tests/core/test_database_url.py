"""Database URLs: every parameter of libpq is used or rejected by name."""

from pathlib import Path

import psycopg
import pytest

from forge.core.database_parameters import PARAMETERS, UNSUPPORTED
from forge.core.database_url import (
    ConnectionTarget,
    Host,
    connection_target,
    read_url,
    with_database,
)
from forge.core.errors import ConfigError


def target_of(query: str) -> ConnectionTarget:
    return connection_target(f"postgresql://u@h/db?{query}")


def test_every_parameter_of_libpq_is_used_or_refused() -> None:
    of_libpq = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}

    assert of_libpq <= PARAMETERS.keys() | UNSUPPORTED.keys()
    assert not PARAMETERS.keys() & UNSUPPORTED.keys()


def test_defaults_of_libpq_are_accepted() -> None:
    for each in psycopg.pq.Conninfo.get_defaults():
        if each.compiled and (name := each.keyword.decode()) in PARAMETERS:
            target_of(f"{name}={each.compiled.decode()}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgres://u:p%40ss@h:1/db",
        "postgresql://u@a:1,b:2,c/db?target_session_attrs=read-write",
        "postgresql://u:a#b@h/db",
        "postgresql://[::1]:5433/db",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/db",
        "postgresql:///db?host=/run/postgresql&port=5433&user=u",
        "postgresql://h/db?dbname=other&host=k",
        "postgresql://h/db?ssl=true",
        "postgresql://h/db?options=-c%20geqo%3Doff",
    ],
)
def test_a_url_is_read_as_libpq_reads_it(url: str) -> None:
    of_libpq = {
        each.keyword.decode(): each.val.decode()
        for each in psycopg.pq.Conninfo.parse(url.encode())
        if each.val
    }

    assert {name: value for name, value in read_url(url).items() if value} == of_libpq


def test_each_host_has_its_port() -> None:
    target = connection_target("postgresql://u@a:1,b,[::1]:3/db")

    assert target.hosts == (Host("a", 1), Host("b", 5432), Host("::1", 3))


def test_one_port_in_the_query_serves_all_hosts() -> None:
    target = connection_target("postgresql:///db?host=a,b&port=6000")

    assert target.hosts == (Host("a", 6000), Host("b", 6000))


def test_the_service_and_the_variables_fill_in_what_the_url_leaves_out() -> None:
    env = {"PGHOST": "from-env", "PGCONNECT_TIMEOUT": "7", "PGAPPNAME": "from-env"}

    target = connection_target(
        "postgresql://u@/db?application_name=url", env, {"host": "from-service", "port": "6"}
    )

    assert target.hosts == (Host("from-service", 6),)
    assert target.connect_timeout == 7
    assert target.settings == {"application_name": "url"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("prefer_standby=1", "unknown parameter 'prefer_standby'"),
        ("aplication_name=x", "did you mean application_name"),
        ("search_path=x", "options=-c%20name%3Dvalue"),
        ("hostaddr=10.0.0.1", "does not support hostaddr.*use the address"),
        ("require_auth=scram-sha-256", "does not support require_auth"),
        ("channel_binding=require", "channel_binding.*must be disable or prefer, not 'require'"),
        ("target_session_attrs=write", "target_session_attrs .*must be any or read-write"),
        ("connect_timeout=soon", "connect_timeout .*a whole number of seconds, not 'soon'"),
        ("gssencmode=require", "gssencmode"),
        ("sslrootcert=system", "sslrootcert .*ca-certificates"),
        ("client_encoding=latin1", "client_encoding .*UTF8"),
        ("replication=database", "replication"),
    ],
)
def test_unsupported_parameters_are_rejected_by_name(query: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        target_of(query)


def test_unsupported_protection_in_a_variable_is_rejected() -> None:
    with pytest.raises(ConfigError, match="channel_binding"):
        connection_target("postgresql://h/db", {"PGCHANNELBINDING": "require"})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hush?part=hush@h/db",
        "postgresql://u:hush/x@h/db",
        "postgresql://u:p@h:hush/db",
        "postgresql://u:p@[::1/db",
        "postgresql://u:p@h/db?hush",
    ],
)
def test_nothing_of_a_url_that_cannot_be_read_is_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="database URL is invalid") as refused:
        connection_target(url)

    assert "hush" not in str(refused.value)


def test_lists_of_ports_and_hosts_must_match() -> None:
    with pytest.raises(ConfigError, match="3 hosts and 2 ports"):
        connection_target("postgresql:///db?host=a,b,c&port=1,2")


@pytest.mark.parametrize(
    ("query", "total", "each"),
    [
        ("", 10, 5),
        ("", 3, 2),
        ("", 1, 1),
        ("connect_timeout=1", 10, 2),
        ("connect_timeout=9", 1, 9),
    ],
)
def test_hosts_share_the_time_unless_the_url_gives_each_its_own(
    query: str, total: float, each: float
) -> None:
    target = connection_target(f"postgresql://a,b/db?{query}")

    assert target.timeout_for_each(total) == each


@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        # primary, read-only primary, standby
        ("any", (True, True, True)),
        ("read-write", (True, False, False)),
        ("read-only", (False, True, True)),
        ("primary", (True, True, False)),
        ("standby", (False, False, True)),
        ("prefer-standby", (False, False, True)),
    ],
)
def test_servers_are_chosen_by_their_state(session: str, wanted: tuple[bool, ...]) -> None:
    target = target_of(f"target_session_attrs={session}")

    states = ((False, False), (False, True), (True, True))
    assert wanted == tuple(target.suits(in_recovery=r, is_read_only=o) for r, o in states)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:p@a,b/shop?dbname=shop&port=1", "postgresql://u:p@a,b?port=1"],
)
def test_another_database_of_the_same_server(url: str) -> None:
    assert with_database(url, "other") == "postgresql://u:p@a,b/other?port=1"


def test_the_reference_names_every_parameter() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text()

    for name in (*PARAMETERS, *UNSUPPORTED):
        assert f"`{name}`" in page, name
