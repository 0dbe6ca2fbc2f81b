"""Fetch mails from a provider and parse the parts that the application needs."""

from email import message_from_bytes
from email.policy import default
from typing import NamedTuple
from urllib.parse import quote

import httpx
from examples.firm.connections import Connection

from forge import NonRetryable


class Mail(NamedTuple):
    """A parsed mail."""

    sender: str
    subject: str
    body: str


class MalformedMail(Exception):
    """The provider's response is not a mail. app.py sets the error class."""


async def fetch(http: httpx.AsyncClient, connection: Connection, message_id: str) -> Mail:
    """Fetch one mail, or raise an error whose class says whether a retry can help."""
    url = f"{connection.url}/messages/{quote(message_id, safe='')}"
    answer = await http.get(url, headers=connection.headers)
    match answer.status_code:
        case 401 | 403:
            raise NonRetryable(f"Connection {connection.id} was revoked. Reconnect the mailbox.")
        case 404 | 410:
            raise NonRetryable(f"Message {message_id} no longer exists. Discard this job.")
    # Forge classifies 429 (with Retry-After) and 5xx itself.
    answer.raise_for_status()
    return read(answer.content)


def read(raw: bytes) -> Mail:
    """Parse the raw bytes of a mail."""
    try:
        parsed = message_from_bytes(raw, policy=default)
        part = parsed.get_body(("plain", "html"))
        sender = parsed["From"]
        body = None if part is None else part.get_content()
        subject = parsed["Subject"] or "(no subject)"
    except Exception as error:  # retrying cannot fix a parser error on untrusted bytes
        raise MalformedMail(
            f"The mail cannot be parsed: {type(error).__name__}: {error}"
        ) from error
    if not sender or body is None:
        raise MalformedMail("The mail has no sender or no text. Ask for it to be sent again.")
    return Mail(_storable(sender), _storable(subject), _storable(body))


def _storable(text: object) -> str:
    """Replace what PostgreSQL rejects: NUL, and bytes that are not characters."""
    return str(text).replace("\0", "\ufffd").encode("utf-8", "replace").decode()
