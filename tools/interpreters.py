"""The Pythons of this machine."""

import os
import shutil
import subprocess
from pathlib import Path


def find(version: str) -> str | None:
    """Return the path of a Python such as 3.12 that starts, or None: on PATH, then pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    named = shutil.which(f"python{version}")
    found = [named] if named else []
    found += [str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next(filter(_starts, found), None)


def _starts(command: str) -> bool:
    # pyenv's commands on PATH start for chosen versions only.
    asked = subprocess.run([command, "-c", "import ensurepip, ssl"], capture_output=True)
    return asked.returncode == 0
