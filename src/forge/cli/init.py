"""`forge init`: writes a small project whose jobs run and whose test passes."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from forge.cli.options import json_option, traceback_option
from forge.cli.output import say
from forge.core.errors import ForgeError

FILES = Path(__file__).parent / "project_files"
# In the wheel, or in a checkout.
DOCKERFILES = (
    FILES / "Dockerfile",
    Path(__file__).parents[3] / "deploy" / "container" / "Dockerfile",
)
SUFFIX = ".txt"
TESTS = {"plain": "pytest", "fastapi": "pytest", "django": "python manage.py test"}
RUNS = {
    "plain": "forge dev",
    "fastapi": "forge dev                       # and in another terminal: uvicorn web:web",
    "django": "python manage.py migrate && python manage.py forge dev",
}


class FilesExist(ForgeError):
    """The folder has files that would be overwritten."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--django", "kind", flag_value="django", help="A Django project.")
@click.option("--fastapi", "kind", flag_value="fastapi", help="A FastAPI application.")
@click.option("--docker", is_flag=True, help="Write a Dockerfile, too.")
@json_option
@traceback_option
def init(folder: Path, kind: str | None, docker: bool, as_json: bool) -> None:
    """Write a small project to FOLDER: jobs, settings, and a test that passes.

    No file is overwritten.
    """
    kind = kind or "plain"
    files = dict(_files(kind, docker=docker))
    written = write(folder, files)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "kind": kind, "files": written}))
        return
    say(f"Wrote {len(written)} files to {folder}: {', '.join(written)}")
    say("\nContinue with:\n")
    if folder != Path("."):
        say(f"  cd {folder}")
    for command in ("pip install -r requirements.txt", TESTS[kind], RUNS[kind]):
        say(f"  {command}")


def write(folder: Path, files: dict[str, str]) -> list[str]:
    """Write files to a folder and return their names, or none of them if one exists already."""
    if known := [name for name in files if (folder / name).exists()]:
        raise FilesExist(
            f"{folder} has {', '.join(known)} already, and nothing is overwritten; choose another "
            "folder: forge init FOLDER"
        )
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ForgeError(
            f"cannot write {error.filename}: {error.strerror}; correct its permissions, or choose "
            "another folder"
        ) from None
    return sorted(files)


def _files(kind: str, *, docker: bool) -> Iterator[tuple[str, str]]:
    for path in sorted((FILES / kind).rglob(f"*{SUFFIX}")):
        yield _name(path, FILES / kind), path.read_text("utf-8")
    yield ".gitignore", (FILES / "gitignore.txt").read_text("utf-8")
    if docker:
        found = next(path for path in DOCKERFILES if path.exists())
        yield "Dockerfile", found.read_text("utf-8")
        yield ".dockerignore", (FILES / "dockerignore.txt").read_text("utf-8")


def _name(path: Path, folder: Path) -> str:
    """Return the name of a file in the project, whose source has a suffix against linters."""
    return path.relative_to(folder).as_posix().removesuffix(SUFFIX)
