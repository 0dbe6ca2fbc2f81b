"""The place of an error: the innermost function of the user's own code that it came through."""

import os
import sysconfig
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType

# What others wrote: the standard library, installed packages, and Forge itself.
_PATHS = sysconfig.get_paths()
_FOLDERS = {_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_OTHERS = (*(f"{folder}{os.sep}" for folder in {*_FOLDERS, str(Path(__file__).parent)}), "<frozen")


def place_of(error: BaseException) -> str:
    """Return `module:function`, which no edit above it changes; empty where nothing is known."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    own = [frame for frame in frames if not _is_others(frame.f_code)]
    chosen = own or frames
    return _named(chosen[-1]) if chosen else ""


def _is_others(code: CodeType) -> bool:
    return code.co_filename.startswith(_OTHERS)


def _named(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str) or module == "__main__":
        module = Path(frame.f_code.co_filename).stem
    return f"{module}:{frame.f_code.co_qualname}"
