"""The app for `forge` commands: `--app forge.integrations.django.command_app:app`.

It sets up the project of DJANGO_SETTINGS_MODULE, which `manage.py` names.
"""

import django
from django.apps import apps

if not apps.ready:
    django.setup()

from forge.integrations.django.project_app import app

__all__ = ["app"]
