"""Mail: fetched from a provider, and read as far as the application needs it."""

from email import message_from_bytes
from email.policy import default
from typing import NamedTuple
from urllib.parse import quote

import httpx
from examples.firm.connections import Connection

from forge import NonRetryable


class Mail(NamedTuple):
    """What a mail says."""

    sender: str
    subject: str
    body: str


class MalformedMail(Exception):
    """What the provider sent is no mail; app.py says how that is to be retried."""


async def fetch(http: httpx.AsyncClient, connection: Connection, message_id: str) -> Mail:
    """Fetch one mail, or raise an error that says whether another attempt can mend it."""
    url = f"{connection.url}/messages/{quote(message_id, safe='')}"
    answer = await http.get(url, headers=connection.headers)
    match answer.status_code:
        case 401 | 403:
            raise NonRetryable(f"connection {connection.id} was revoked; connect the mailbox anew")
        case 404 | 410:
            raise NonRetryable(f"message {message_id} is not there any more; discard this")
    # Forge knows what 429, with its Retry-After, and 5xx mean.
    answer.raise_for_status()
    return read(answer.content)


def read(raw: bytes) -> Mail:
    """Read a mail as it came over the wire."""
    try:
        parsed = message_from_bytes(raw, policy=default)
        part = parsed.get_body(("plain", "html"))
        sender = parsed["From"]
        body = None if part is None else part.get_content()
        subject = parsed["Subject"] or "(no subject)"
    except Exception as error:  # whatever strangers' bytes do to a parser, no attempt mends it
        raise MalformedMail(f"it cannot be read: {type(error).__name__}: {error}") from error
    if not sender or body is None:
        raise MalformedMail("there is no sender or no text in it; have it sent again")
    return Mail(_storable(sender), _storable(subject), _storable(body))


def _storable(text: object) -> str:
    """Return text without what PostgreSQL refuses: NUL, and bytes that were no characters."""
    return str(text).replace("\0", "\ufffd").encode("utf-8", "replace").decode()
