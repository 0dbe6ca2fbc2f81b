"""The previous version, unpacked."""

import zipfile
from pathlib import Path

import pytest

(WHEEL,) = (Path(__file__).parent / "previous").glob("*.whl")


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to put on PYTHONPATH: `forge` is then the previous version."""
    folder = tmp_path_factory.mktemp("previous")
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extractall(folder)
    return folder
