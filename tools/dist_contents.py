"""What the wheel and the sdist contain, compared with the checkout."""

import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Folders and files of the checkout, and where the wheel has them.
IN_WHEEL = {
    "src/forge": "forge",
    "clients/typescript/src": "forge/cli/generate/client_source",
    "deploy/container/Dockerfile": "forge/cli/project_files/Dockerfile",
}
IN_SDIST = (*IN_WHEEL, "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md")
# Written by hatchling: the metadata, and what the sdist's own build leaves out.
WRITTEN_IN_SDIST = ("PKG-INFO", ".gitignore")
WRITTEN_IN_WHEEL = ("METADATA", "RECORD", "WHEEL", "entry_points.txt")
LICENSES = ("LICENSE", "src/forge/http/dashboard/built/licenses.md")
# Whatever the checkout has: a release without these does not work, or may not be passed on.
NEEDED = (
    "forge/py.typed",
    "forge/sql/migrations/0001_*.sql",
    "forge/sql/jobs/claim.sql",
    "forge/sql/schema.sql",
    "forge/http/dashboard/built/index.html",
    "forge/http/dashboard/built/assets/*.js",
    "forge/http/dashboard/built/assets/*.css",
    "forge/cli/generate/client_source/index.ts",
    "forge/cli/project_files/plain/jobs.py.txt",
    "forge/cli/project_files/Dockerfile",
    "forge/testing/plugin.py",
)
SUFFIXES = {".py", ".sql", ".typed", ".txt", ".html", ".js", ".css", ".svg", ".md", ".ts"}
FOREIGN_FOLDERS = {"tests", "node_modules", "__pycache__"}
ENTRY_POINTS = {
    "console_scripts": {"forge": "forge.cli.main:main", "forge-jobs": "forge.cli.main:main"},
    "pytest11": {"forge": "forge.testing.plugin"},
}


def wheel_problems(wheel: Path) -> list[str]:
    """Return what is wrong with the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name, version, *_ = wheel.name.split("-")
    info = f"{name}-{version}.dist-info"
    expected = {
        f"{target}{path.removeprefix(source)}": content
        for source, target in IN_WHEEL.items()
        for path, content in _files(source).items()
    }
    expected |= {f"{info}/licenses/{path}": (ROOT / path).read_bytes() for path in LICENSES}
    written = {f"{info}/{each}" for each in WRITTEN_IN_WHEEL}
    needed = [pattern for pattern in NEEDED if not any(fnmatch(each, pattern) for each in files)]
    return [
        *_differences(wheel.name, files, expected, written),
        *(f"{wheel.name} has no {pattern}" for pattern in needed),
        *_foreign(wheel.name, [each for each in files if not each.startswith(info)]),
        *_entry_point_problems(wheel.name, files.get(f"{info}/entry_points.txt", b"")),
    ]


def sdist_problems(sdist: Path) -> list[str]:
    """Return what is wrong with the files of an sdist."""
    top = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        files = {
            member.name.removeprefix(f"{top}/"): content.read()
            for member in archive.getmembers()
            if (content := archive.extractfile(member))
        }
    expected = {path: content for each in IN_SDIST for path, content in _files(each).items()}
    packaged = [each for each in files if each.startswith("src/forge/")]
    return [
        *_differences(sdist.name, files, expected, set(WRITTEN_IN_SDIST)),
        *_foreign(sdist.name, packaged),
    ]


def _files(source: str) -> Mapping[str, bytes]:
    """Return the files of the checkout below a path."""
    place = ROOT / source
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in paths
        if "__pycache__" not in path.parts
    }


def _differences(
    archive: str, found: Mapping[str, bytes], expected: Mapping[str, bytes], written: set[str]
) -> Iterator[str]:
    for name in sorted(expected.keys() | written):
        if name not in found:
            yield f"{archive} has no {name}"
        elif name in expected and found[name] != expected[name]:
            yield f"{name} in {archive} differs from the checkout"
    for name in sorted(found.keys() - expected.keys() - written):
        yield f"{archive} has {name}, which does not belong to it"


def _foreign(archive: str, names: list[str]) -> Iterator[str]:
    for name in sorted(names):
        path = Path(name)
        if FOREIGN_FOLDERS & set(path.parts) or path.suffix not in SUFFIXES | {""}:
            yield f"{archive} has {name}, which does not belong into a package"


def _entry_point_problems(archive: str, text: bytes) -> list[str]:
    points = ConfigParser()
    points.read_string(text.decode())
    found = {section: dict(points[section]) for section in points.sections()}
    return [] if found == ENTRY_POINTS else [f"{archive} has the entry points {found}"]
