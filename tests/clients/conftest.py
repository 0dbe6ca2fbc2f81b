"""Node and the packages of the TypeScript client."""

import pytest
from tools.node import PackagesMissing, install


@pytest.fixture(scope="session")
def node_packages() -> None:
    """Install the npm packages of clients/typescript; without a registry, the test is skipped."""
    try:
        install()
    except PackagesMissing as missing:
        pytest.skip(str(missing))
