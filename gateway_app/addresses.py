"""Addresses of servers as text."""


def http_url(host: str, port: int) -> str:
    """Where the server at `host` answers; an IPv6 address stands in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
