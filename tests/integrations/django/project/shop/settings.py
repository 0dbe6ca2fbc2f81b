"""A project with Forge; SHOP_DATABASE is the URL of its database."""

import os
from importlib.util import find_spec
from urllib.parse import parse_qs, urlsplit

_address = urlsplit(os.environ["SHOP_DATABASE"])
_place = parse_qs(_address.query)

SECRET_KEY = "of no use"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "forge.integrations.django",
    "orders",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "forge.integrations.django.TenantMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
STATIC_URL = "static/"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _address.path[1:],
        "USER": _address.username,
        "HOST": _place["host"][0],
        "PORT": _place["port"][0],
        "TEST": {"NAME": f"test_{_address.path[1:]}"},
    }
}
# Fast: the tests create many users.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
FORGE = {
    "worker": {
        "poll_interval": "20ms",
        "heartbeat_interval": "500ms",
        "dead_after": "30s",
        "metrics_port": "off",
    },
}
if os.environ.get("SHOP_WITHOUT_MIGRATIONS"):
    MIGRATION_MODULES = {"forge": None}
TASKS = {"default": {"BACKEND": "forge.integrations.django.ForgeBackend", "QUEUES": []}}
if find_spec("django.tasks") is None:
    INSTALLED_APPS.append("django_tasks")
