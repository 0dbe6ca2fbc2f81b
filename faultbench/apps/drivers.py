"""An app for `forge worker` whose jobs use Django's and SQLAlchemy's own connections."""

import os
from typing import Any
from urllib.parse import urlsplit

import django
import sqlalchemy
from django.conf import settings
from django.db import connection

from faultbench.apps.jobs import recorded
from forge import Forge, JobContext

PARTS = urlsplit(os.environ.get("FORGE_DATABASE_URL", "postgresql://localhost/none"))
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": PARTS.path.removeprefix("/"),
            "USER": PARTS.username,
            "HOST": PARTS.hostname,
            "PORT": PARTS.port,
            "CONN_MAX_AGE": None,
            "OPTIONS": {"application_name": "handlers"},
        }
    }
)
django.setup()
app = Forge()
engine = sqlalchemy.create_engine(
    sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=PARTS.username,
        host=PARTS.hostname,
        port=PARTS.port,
        database=PARTS.path.removeprefix("/"),
    ),
    connect_args={"application_name": "handlers"},
)


@app.job(max_attempts=1)
def django_query(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input), connection.cursor() as cursor:
        cursor.execute("select 1")


@app.job(max_attempts=1)
def sqlalchemy_query(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input), engine.connect() as opened:
        opened.execute(sqlalchemy.text("select 1"))
