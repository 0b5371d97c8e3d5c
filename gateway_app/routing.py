"""Addresses of the websockets."""

from django.urls import path

from gateway_app.consumers import GatewayConsumer

websocket_urlpatterns = [path("ws/v1/", GatewayConsumer.as_asgi())]
