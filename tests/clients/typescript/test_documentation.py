"""The reference of the client: its code compiles, and it names everything that is exported."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from tools.node import CLIENT, run

from tests.surface.pages import CHECKOUT, Block, blocks

PAGE = CHECKOUT / "docs" / "reference" / "typescript.md"
README = CLIENT / "README.md"
SOURCE = CLIENT / "src"
OPTIONS = {
    "target": "ES2022",
    "module": "ESNext",
    "moduleResolution": "bundler",
    "lib": ["ES2023", "DOM", "DOM.Iterable"],
    "jsx": "react-jsx",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noEmit": True,
    "skipLibCheck": True,
    "types": [],
}


def test_code_of_the_documentation_compiles(application: Path, tmp_path: Path) -> None:
    examples = [block for page in (PAGE, README) for block in blocks(page, "ts", "tsx")]
    for block in examples:
        (tmp_path / _file_of(block)).write_text(block.code)
    modules = tmp_path / "node_modules"
    (modules / "@types").mkdir(parents=True)
    (modules / "@forge-jobs").symlink_to(application / "node_modules" / "@forge-jobs")
    (modules / "@types" / "react").symlink_to(CLIENT / "node_modules" / "@types" / "react")
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))

    ended = run("tsc", "-p", tmp_path)

    assert len(examples) > 6
    assert ended.returncode == 0, ended.stdout


def _file_of(block: Block) -> str:
    return f"{block.page.stem.lower()}_{block.line}.{block.language}"


def test_every_exported_value_is_documented() -> None:
    index = (SOURCE / "index.ts").read_text()
    exported = re.findall(r"^export \{(.*?)\}", index, re.MULTILINE | re.DOTALL)
    values = [name for name in re.findall(r"(type )?(\w+)", " ".join(exported)) if not name[0]]

    assert len(values) == 4
    assert _missing(name for _, name in values) == []


@pytest.mark.parametrize(
    ("file", "interface"),
    [
        ("tracker.ts", "JobTracker"),
        ("tracker.ts", "TrackerOptions"),
        ("jobs.ts", "StartOptions"),
        ("http.ts", "ClientOptions"),
        ("errors.ts", "ForgeError"),
        ("client.ts", "ForgeClient"),
        ("react.ts", "TrackerHook"),
        ("store.ts", "Readable"),
    ],
)
def test_every_member_is_documented(file: str, interface: str) -> None:
    members = _members(file, interface)

    assert members
    assert _missing(members) == []


def test_every_code_of_the_client_is_documented_and_exists() -> None:
    table = PAGE.read_text().partition("Besides the [codes of the server]")[2].partition("## ")[0]
    documented = {
        code
        for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", cell)
    }

    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.ts"))
    described = source.partition("one of the client:")[2].partition("*/")[0]
    assert documented == set(re.findall(r"`(\w+)`", described))
    for code in documented - {"job_failed", "job_cancelled"}:
        assert f"'{code}'" in source.replace("*/", "", 1), code


def test_every_state_of_a_connection_is_documented() -> None:
    (states,) = re.findall(
        r"type ConnectionState = (.*);", (SOURCE / "live" / "job.ts").read_text()
    )

    assert _missing(re.findall(r"'(\w+)'", states)) == []


def _members(file: str, name: str) -> list[str]:
    """Return the public members of an interface or a class."""
    text = (SOURCE / file).read_text()
    (body,) = re.findall(
        rf"(?:interface|class) {name}\b.*?\{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"^  (?:declare )?(?:readonly )?(\w+)\??[(:<]", body, re.MULTILINE)
    return [
        member for member in dict.fromkeys(found) if member not in ("constructor", "connection")
    ]


def _missing(names: Iterable[str]) -> list[str]:
    """Return the names that the page does not show as code."""
    code = " ".join(re.findall(r"`([^`\n]+)`", PAGE.read_text()))
    return [name for name in names if not re.search(rf"\b{name}\b", code)]
