"""An SMTP server that keeps the mails it accepts, and refuses mailboxes named nobody."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from socketserver import StreamRequestHandler, ThreadingTCPServer


@contextmanager
def mail_server() -> Iterator[tuple[str, list[EmailMessage]]]:
    """Accept mail on a port of this machine; yield its address, and what it has accepted."""
    mails: list[EmailMessage] = []
    with ThreadingTCPServer(("127.0.0.1", 0), _handler_of(mails)) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", mails
        server.shutdown()


def _handler_of(mails: list[EmailMessage]) -> type[StreamRequestHandler]:
    class Session(StreamRequestHandler):
        def handle(self) -> None:
            self._answer("220 ready")
            while line := self.rfile.readline():
                match line.upper().split(b" ")[0].strip():
                    case b"RCPT" if b"<nobody@" in line:
                        self._answer("550 no such mailbox")
                    case b"DATA":
                        self._answer("354 go on")
                        mails.append(message_from_bytes(self._read_mail(), policy=default))
                        self._answer("250 accepted")
                    case b"QUIT":
                        self._answer("221 bye")
                        return
                    case _:
                        self._answer("250 OK")

        def _read_mail(self) -> bytes:
            lines = iter(self.rfile.readline, b".\r\n")
            return b"".join(line.removeprefix(b".") for line in lines)

        def _answer(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    return Session
