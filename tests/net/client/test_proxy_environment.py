"""Selection of proxies by environment variables."""

from __future__ import annotations

import pytest

from steersman.net.client.proxy_environment import Proxy, ProxyEnvironment

PROXY = Proxy("proxy.example.com", 3128)


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://proxy.example.com:3128", PROXY),
        ("proxy.example.com:3128", PROXY),
        ("proxy.example.com", Proxy("proxy.example.com", 80)),
        ("https://proxy.example.com", Proxy("proxy.example.com", 443, True)),
        ("http://a%40b:c%3Ad@proxy.example.com:3128", Proxy("proxy.example.com", 3128, False, "a@b", "c:d")),
        ("http://[::1]:3128", Proxy("::1", 3128)),
        ("socks5://proxy.example.com", None),
        ("", None),
    ],
)
def test_urls_of_proxies(text: str, proxy: Proxy | None) -> None:
    assert ProxyEnvironment({"HTTPS_PROXY": text}).proxy_for("https", "a.example.com", 443) == proxy


def test_schemes_have_proxies_of_their_own() -> None:
    proxy_environment = ProxyEnvironment({"http_proxy": "proxy.example.com:3128", "HTTPS_PROXY": ""})
    assert proxy_environment.proxy_for("http", "a.example.com", 80) == PROXY
    assert proxy_environment.proxy_for("https", "a.example.com", 443) is None
    cgi = ProxyEnvironment({"http_proxy": "proxy.example.com:3128", "REQUEST_METHOD": "GET"})
    assert cgi.proxy_for("http", "a.example.com", 80) is None


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "direct"),
    [
        ("", "localhost", 443, True),
        ("", "127.0.0.1", 443, True),
        ("", "::1", 443, True),
        ("", "10.0.0.1", 443, False),
        ("*", "10.0.0.1", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.0.0.1", "10.0.0.1", 443, True),
        ("10.0.0.1:8443", "10.0.0.1", 443, False),
        ("10.0.0.1:443", "10.0.0.1", 443, True),
        ("fd00::/8", "fd00::1", 443, True),
        ("[fd00::1]:443", "fd00::1", 443, True),
        ("example.com", "example.com", 443, True),
        ("example.com", "a.example.com", 443, True),
        ("example.com", "badexample.com", 443, False),
        (".example.com", "example.com", 443, False),
        (".example.com", "a.example.com", 443, True),
        ("*.example.com", "a.example.com", 443, True),
        ("Example.COM:443", "A.example.com", 443, True),
        ("example.com:80", "a.example.com", 443, False),
        (" , a.com ,,:80, b.com", "b.com", 443, True),
    ],
)
def test_what_is_reached_directly(exceptions: str, host: str, port: int, *, direct: bool) -> None:
    proxy_environment = ProxyEnvironment({"HTTPS_PROXY": "http://proxy.example.com:3128", "no_proxy": exceptions})
    assert (proxy_environment.proxy_for("https", host, port) is None) is direct
