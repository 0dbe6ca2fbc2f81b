from django.core.asgi import get_asgi_application

from forge.integrations.django.asgi import mount

application = mount(get_asgi_application(), "/forge")
