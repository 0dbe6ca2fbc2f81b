"""An SMTP server that keeps the mails it accepts, and refuses mailboxes named nobody."""

import socketserver
import threading
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import Self


class MailServer:
    """Accepts mail on a port of this machine."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _handler_of(self.mails))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(mails: list[EmailMessage]) -> type[socketserver.StreamRequestHandler]:
    class Session(socketserver.StreamRequestHandler):
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
