"""Which room answers which address."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("gateway_app.account_urls")),
    path("", include("gateway_app.urls")),
]
