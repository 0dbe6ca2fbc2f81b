from django.contrib import admin
from django.urls import path
from orders.views import order, order_async

urlpatterns = [
    path("admin/", admin.site.urls),
    path("order/", order),
    path("order-async/", order_async),
]
