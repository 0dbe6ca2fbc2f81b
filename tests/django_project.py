"""The settings and the one page of a small Django project.

All Django tests share it, because a process can load the settings of only one project.
"""

from django.http import HttpRequest, HttpResponse
from django.urls import path

SECRET_KEY = "of no use"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = __name__
USE_TZ = True
TIME_ZONE = "Asia/Tokyo"


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


urlpatterns = [path("hello", hello)]
