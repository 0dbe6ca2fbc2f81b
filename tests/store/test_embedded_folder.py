"""A folder that cannot hold a server: the error names it and gives advice."""

from pathlib import Path

import pytest

from forge.store.embedded import ServerNotStarted, open_shared


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()

    with pytest.raises(ServerNotStarted, match=r"taken/postgres: Not a directory\. Run in"):
        open_shared(tmp_path / "taken")


def test_a_file_in_the_place_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "postgres").touch()

    with pytest.raises(ServerNotStarted, match=r"Not a directory\. Move .*postgres away"):
        open_shared(tmp_path)


def test_a_folder_that_holds_no_database(tmp_path: Path) -> None:
    (tmp_path / "postgres" / "data").mkdir(parents=True)

    with pytest.raises(ServerNotStarted, match="is not a PostgreSQL data folder"):
        open_shared(tmp_path)
