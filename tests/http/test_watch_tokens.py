"""A watch token opens one job for an hour, and nothing else."""

from uuid import uuid4

import pytest

from forge.http.watch_tokens import LIFETIME, check, make

SECRET = b"a secret of thirty-two characters or more"
NOW = 1_900_000_000.0


def test_it_is_good_for_its_job_for_an_hour() -> None:
    job_id = uuid4()

    token = make(job_id, SECRET, NOW)

    assert check(token, job_id, SECRET, NOW) == NOW + LIFETIME
    assert check(token, job_id, SECRET, NOW + LIFETIME - 1) == NOW + LIFETIME
    assert check(token, job_id, SECRET, NOW + LIFETIME) is None


def test_it_is_good_for_no_other_job_and_with_no_other_secret() -> None:
    job_id = uuid4()

    token = make(job_id, SECRET, NOW)

    assert check(token, uuid4(), SECRET, NOW) is None
    assert check(token, job_id, b"another" + SECRET, NOW) is None


def test_its_end_cannot_be_moved() -> None:
    job_id = uuid4()
    end, signature = make(job_id, SECRET, NOW).split(".")

    assert check(f"{int(end, 16) + 60:x}.{signature}", job_id, SECRET, NOW) is None


@pytest.mark.parametrize(
    "token",
    ["", ".", "x", "7fffffff.", "-1.x", "é.é", "\ud800.\ud800", "0x10.a", f"{'f' * 9000}.a"],
)
def test_what_is_none_is_refused(token: str) -> None:
    assert check(token, uuid4(), SECRET, NOW) is None


def test_it_goes_into_an_address_as_it_is() -> None:
    token = make(uuid4(), SECRET, NOW)

    assert all(character.isalnum() or character in "-_." for character in token)
    assert len(token) < 64
