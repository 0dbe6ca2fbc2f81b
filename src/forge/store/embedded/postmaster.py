"""What a running server says about itself in `postmaster.pid`."""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

READY = "ready"
# The first message of many clients, "do you speak TLS?", which is answered by one byte.
SSL_REQUEST = struct.pack("!II", 8, 80877103)


@dataclass(frozen=True)
class Postmaster:
    """The lines of `postmaster.pid`."""

    pid: int
    port: int
    socket_folder: Path
    address: str
    status: str

    @classmethod
    def read(cls, data: Path) -> "Postmaster | None":
        """What the file says, or None when there is none or it is still being written."""
        try:
            lines = (data / "postmaster.pid").read_text().splitlines()
            pid, _folder, _started, port, socket_folder, address, _memory, status = lines[:8]
            return cls(int(pid), int(port), Path(socket_folder), address.strip(), status.strip())
        except (OSError, ValueError):
            return None

    def answers(self) -> bool:
        """Whether it is ready and takes connections; a file left by a crash only says it is."""
        if self.status != READY:
            return False
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect(str(self.socket_folder / f".s.PGSQL.{self.port}"))
                # A dying server still gets connections from the system; only a live one answers.
                connection.sendall(SSL_REQUEST)
                return connection.recv(1) != b""
            except OSError:
                return False
