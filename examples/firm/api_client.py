"""API clients of the users, each with the user's token."""

import asyncio
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
from examples.firm.people import ANN, BEA, MAX, TOM, Person

FINAL = {"completed", "failed", "dead_letter", "cancelled"}
SECONDS = 60


class ApiClient:
    """Calls the API as one person."""

    def __init__(self, person: Person, http: httpx.AsyncClient) -> None:
        self.person = person
        self._http = http

    async def get(self, path: str, *, expect: int = 200, **params: Any) -> Any:
        """Send a GET request and check its status."""
        return await self._call("GET", path, expect, params=params)

    async def post(self, path: str, body: Any, *, expect: int = 200) -> Any:
        """Send a POST request and check its status."""
        return await self._call("POST", path, expect, json=body)

    async def dispatch(
        self, job_type: str, key: str, args: dict[str, Any], expect: int = 202
    ) -> Any:
        """Dispatch a job for the person's firm: the tenant comes from the token."""
        request = {"args": args, "idempotency_key": key, "correlation_id": str(uuid4())}
        return await self.post(f"/_api/jobs/{job_type}/dispatch", request, expect=expect)

    async def fetch_mail(self, connection_id: int, name: str, **more: Any) -> Any:
        """Dispatch a job that fetches one mail. Repeated calls return the same job."""
        args = {"connection_id": connection_id, "external_message_id": name, **more}
        return await self.dispatch("email_ingestion_fetch", mail_key(connection_id, name), args)

    async def wait_for(self, job_id: str) -> Any:
        """Wait until a job is final."""
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    job = await self.get(f"/_api/jobs/{job_id}")
                    if job["status"] in FINAL:
                        return job
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise RuntimeError(f"Job {job_id} did not end within {SECONDS} s.") from None

    async def _call(self, method: str, path: str, expect: int, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.person.token}"}
        answer = await self._http.request(method, path, headers=headers, **request)
        if answer.status_code != expect:
            raise RuntimeError(
                f"{self.person.name}: {method} {path} returned {answer.status_code}, "
                f"not {expect}: {answer.text}"
            )
        return answer.json()


class ApiClients(NamedTuple):
    """The clients of all users."""

    ann: ApiClient
    max: ApiClient
    bea: ApiClient
    tom: ApiClient

    @classmethod
    def at(cls, http: httpx.AsyncClient) -> "ApiClients":
        return cls(*(ApiClient(person, http) for person in (ANN, MAX, BEA, TOM)))


def mail_key(connection_id: int, name: str) -> str:
    """Return the idempotency key for fetching a mail."""
    return f"email_fetch_conn_{connection_id}_msg_{name}"
