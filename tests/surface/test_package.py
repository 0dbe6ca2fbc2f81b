"""The package on PyPI: license, project URLs, and a README whose links work there."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tools.dist_contents import wheel_problems

from tests.cli.command import APPS
from tests.surface.pages import CHECKOUT, HOSTED


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_the_package_names_and_contains_its_license(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    (file,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))

    assert metadata["License-Expression"] == "MIT"
    assert wheel.read(file).decode() == (CHECKOUT / "LICENSE").read_text()
    assert wheel.read(file).startswith(b"MIT License")


def test_the_package_passes_on_the_licenses_of_bundled_code(wheel: zipfile.ZipFile) -> None:
    (file,) = (
        name for name in wheel.namelist() if re.search("dist-info/licenses/.*licenses.md", name)
    )
    named = re.findall(r"^## (\S+) - ", wheel.read(file).decode(), re.MULTILINE)

    assert {"svelte", "uplot"} <= set(named)


def test_the_package_has_the_files_of_the_checkout_and_no_others(wheel: zipfile.ZipFile) -> None:
    assert wheel_problems(Path(str(wheel.filename))) == []


def test_missing_changed_and_foreign_files_of_a_package_are_named(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    broken = tmp_path / Path(str(wheel.filename)).name
    with zipfile.ZipFile(broken, "w") as copy:
        for name in wheel.namelist():
            if name not in ("forge/py.typed", "forge/sql/jobs/claim.sql"):
                text = wheel.read(name).replace(b"forge.testing.plugin", b"forge.nothing")
                copy.writestr(name, text)
        copy.writestr("forge/tests/test_app.py", "")
        copy.writestr("forge/app.pyc", "")

    problems = "\n".join(wheel_problems(broken))
    assert f"{broken.name} has no forge/py.typed" in problems
    assert f"{broken.name} has no forge/sql/jobs/claim.sql" in problems
    assert "forge/tests/test_app.py, which does not belong" in problems
    assert "forge/app.pyc, which does not belong" in problems
    assert "has the entry points" in problems


def test_the_project_urls_are_set(metadata: Message) -> None:
    urls = dict(value.split(", ", 1) for value in metadata.get_all("Project-URL", []))

    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert all(url.startswith("https://github.com/forge-jobs/forge") for url in urls.values())
    for url in urls.values():
        if url.startswith(HOSTED):
            assert (CHECKOUT / url.removeprefix(HOSTED)).is_file()


def test_the_classifiers_name_maturity_audience_and_every_supported_python(
    metadata: Message,
) -> None:
    classifiers = metadata.get_all("Classifier", [])
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    least = project["requires-python"].removeprefix(">=")

    assert f"Programming Language :: Python :: {least}" in classifiers
    assert "Typing :: Typed" in classifiers
    assert any(each.startswith("Development Status :: ") for each in classifiers)
    assert any(each.startswith("Intended Audience :: ") for each in classifiers)
    # PyPI rejects license classifiers together with a license expression.
    assert not any(each.startswith("License :: ") for each in classifiers)


def test_the_package_registers_its_commands_and_its_pytest_plugin(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    points = ConfigParser()
    points.read_string(wheel.read(name).decode())

    assert dict(points["pytest11"]) == {"forge": "forge.testing.plugin"}
    assert set(points["console_scripts"].values()) == {"forge.cli.main:main"}
    # The second is what `uvx forge-jobs` starts.
    assert set(points["console_scripts"]) == {"forge", "forge-jobs"}


def test_the_kit_is_imported_without_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import forge.testing, forge.testing.sync"

    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def test_the_links_of_the_readme_work_on_pypi(metadata: Message) -> None:
    readme = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)

    assert len(targets) > 30
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_package_names_no_private_registry() -> None:
    named = re.findall(r"https?://([^/\s\"]+)", Path(CHECKOUT / "pyproject.toml").read_text())

    assert set(named) == {"github.com"}


def test_the_package_generates_typescript_with_the_source_of_the_client(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    wheel.extractall(tmp_path / "installed")
    command = [sys.executable, "-m", "forge.cli.main", "generate", "typescript", str(tmp_path)]

    subprocess.run(
        [*command, "--app", "shop:app"],
        cwd=APPS,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        check=True,
        capture_output=True,
    )

    source = CHECKOUT / "clients" / "typescript" / "src"
    modules = {path.relative_to(source) for path in source.rglob("*.ts")}
    copied = {path.relative_to(tmp_path / "client") for path in tmp_path.glob("client/**/*.ts")}
    assert copied == modules
    assert len(modules) > 5
