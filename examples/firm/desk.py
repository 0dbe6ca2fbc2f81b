"""A person's way to the API: what they ask for, with a token of their own, over HTTP."""

import asyncio
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
from examples.firm.people import ANN, BEA, MAX, TOM, Person

FINAL = {"completed", "failed", "dead_letter", "cancelled"}
SECONDS = 60


class Desk:
    """Where somebody works."""

    def __init__(self, person: Person, http: httpx.AsyncClient) -> None:
        self.person = person
        self._http = http

    async def get(self, path: str, *, expect: int = 200, **params: Any) -> Any:
        """Read something, or be told why not."""
        return await self._call("GET", path, expect, params=params)

    async def post(self, path: str, body: Any, *, expect: int = 200) -> Any:
        """Ask for something to be done, or be told why not."""
        return await self._call("POST", path, expect, json=body)

    async def ask(self, job_type: str, key: str, args: dict[str, Any], expect: int = 202) -> Any:
        """Dispatch a job of one's own firm: the tenant is the token's."""
        wish = {"args": args, "idempotency_key": key, "correlation_id": str(uuid4())}
        return await self.post(f"/_api/jobs/{job_type}/dispatch", wish, expect=expect)

    async def ask_for_mail(self, connection_id: int, name: str, **more: Any) -> Any:
        """Ask for one mail; however often that is asked for, it is fetched once."""
        args = {"connection_id": connection_id, "external_message_id": name, **more}
        return await self.ask("email_ingestion_fetch", mail_key(connection_id, name), args)

    async def ended(self, job_id: str) -> Any:
        """Wait for the end of a job."""
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    job = await self.get(f"/_api/jobs/{job_id}")
                    if job["status"] in FINAL:
                        return job
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise RuntimeError(f"waited {SECONDS} s in vain for the end of job {job_id}") from None

    async def _call(self, method: str, path: str, expect: int, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.person.token}"}
        answer = await self._http.request(method, path, headers=headers, **request)
        if answer.status_code != expect:
            raise RuntimeError(
                f"{self.person.name}: {method} {path} was answered with {answer.status_code}, "
                f"not {expect}: {answer.text}"
            )
        return answer.json()


class Desks(NamedTuple):
    """Everybody's."""

    ann: Desk
    max: Desk
    bea: Desk
    tom: Desk

    @classmethod
    def at(cls, http: httpx.AsyncClient) -> "Desks":
        return cls(*(Desk(person, http) for person in (ANN, MAX, BEA, TOM)))


def mail_key(connection_id: int, name: str) -> str:
    """Return the key under which a mail is fetched once."""
    return f"email_fetch_conn_{connection_id}_msg_{name}"
