"""openapi-typescript, which other clients may be generated with, reads all of openapi.json."""

import json
from pathlib import Path

from tools.node import run

from tests.surface.pages import CHECKOUT

OPENAPI = CHECKOUT / "docs" / "reference" / "openapi.json"
OPTIONS = {
    "module": "ESNext",
    "moduleResolution": "bundler",
    "target": "ES2022",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noEmit": True,
    "types": [],
}
# Types of a request and of its response, and of a message on the socket.
USAGE = """
import type { components, paths } from './openapi';

type Dispatch = paths['/_api/jobs/{job_type}/dispatch']['post'];
type Body = NonNullable<NonNullable<Dispatch['requestBody']>['content']['application/json']>;

export const body: Body = { args: {}, tags: ['a'] };
export const job: Pick<components['schemas']['LiveJob'], 'status' | 'version'> = {
  status: 'running',
  version: 3,
};
// @ts-expect-error: no such option
export const wrong: Body = { args: {}, colour: 'red' };
"""


def test_its_types_compile(node_packages: None, tmp_path: Path) -> None:
    generated = tmp_path / "openapi.ts"
    (tmp_path / "usage.ts").write_text(USAGE)
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))

    read = run("openapi-typescript", OPENAPI, "-o", generated)
    compiled = run("tsc", "-p", tmp_path)

    assert read.returncode == 0, read.stderr
    assert compiled.returncode == 0, compiled.stdout
    paths = json.loads(OPENAPI.read_text())["paths"]
    assert [path for path in paths if f'"{path}"' not in generated.read_text()] == []
