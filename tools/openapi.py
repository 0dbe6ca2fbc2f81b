"""The OpenAPI document of a server whose app has no job types."""

import json

from forge import Config, Forge
from forge.http import create_app
from forge.http.openapi.document import document


def openapi_json() -> str:
    return json.dumps(document(create_app(Forge(Config()))), indent=2) + "\n"
