"""Loads the settings of tests.django_project in the process of the tests."""

import os
import time

import django


def set_up_django() -> None:
    """Set up Django, and take back that it sets the time zone of the process.

    The commands that later tests start would inherit it.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_project")
    zone = os.environ.pop("TZ", None)
    django.setup()
    os.environ.pop("TZ", None)
    if zone is not None:
        os.environ["TZ"] = zone
    time.tzset()
