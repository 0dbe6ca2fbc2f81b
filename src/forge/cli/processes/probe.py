"""`python -m forge.cli.processes.probe`: the health check of a container.

Exits with 0 if a worker or a server of this container is alive. Needs no curl in the image.
"""

import os
import sys
import urllib.error
import urllib.request

WORKER, SERVER = "FORGE_WORKER_METRICS_PORT", "FORGE_SERVER_PORT"
TIMEOUT = 2.0


def main() -> int:
    ports = os.environ.get(WORKER, "9090"), os.environ.get(SERVER, "8080")
    for port in ports:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=TIMEOUT):
                return 0
        except urllib.error.HTTPError as error:
            print(error.read().decode(errors="replace").strip(), file=sys.stderr)
            return 1
        except OSError:
            continue
    print(f"nothing listens on {' or '.join(ports)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
