"""Which proxy the environment names for a server."""

from __future__ import annotations

import pytest

from kubesched.k8s.client.target import ProxyUrlError, check_proxy_url, proxy_from_environment

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        pytest.param("https://h", {}, None, id="none"),
        pytest.param("https://h", {"HTTPS_PROXY": PROXY}, PROXY, id="for https"),
        pytest.param("https://h", {"https_proxy": PROXY}, PROXY, id="in small letters"),
        pytest.param("https://h", {"HTTPS_PROXY": PROXY, "https_proxy": "http://x"}, PROXY, id="capitals win"),
        pytest.param("https://h", {"HTTP_PROXY": PROXY}, None, id="one for http is not for https"),
        pytest.param("http://h", {"HTTP_PROXY": PROXY}, PROXY, id="for http"),
        pytest.param("https://h", {"HTTPS_PROXY": "proxy:3128"}, PROXY, id="without a scheme"),
        pytest.param("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None, id="not for localhost"),
        pytest.param("https://127.8.9.1", {"HTTPS_PROXY": PROXY}, None, id="not for loopback"),
        pytest.param("https://[::1]:1", {"HTTPS_PROXY": PROXY}, None, id="not for loopback in IPv6"),
    ],
)
def test_the_proxy_for_a_server(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_from_environment(url, environ) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_exempt"),
    [
        pytest.param("*", "https://h", True, id="everything"),
        pytest.param("a.example, h", "https://h", True, id="a host in a list"),
        pytest.param("example.com", "https://example.com", True, id="the domain itself"),
        pytest.param("example.com", "https://api.example.com", True, id="its subdomains"),
        pytest.param("example.com", "https://notexample.com", False, id="not what only ends alike"),
        pytest.param(".example.com", "https://api.example.com", True, id="a dot: subdomains"),
        pytest.param(".example.com", "https://example.com", False, id="a dot: not the domain itself"),
        pytest.param("*.example.com", "https://api.EXAMPLE.com", True, id="a star is a dot, case does not matter"),
        pytest.param("h:6443", "https://h:6443", True, id="with the same port"),
        pytest.param("h:6443", "https://h", False, id="with another port"),
        pytest.param("h:443", "https://h", True, id="with the scheme's own port"),
        pytest.param("10.0.0.0/8", "https://10.1.2.3", True, id="a block"),
        pytest.param("10.0.0.0/8", "https://11.1.2.3", False, id="outside of the block"),
        pytest.param("10.0.0.0/8", "https://h", False, id="a block says nothing of names"),
        pytest.param("10.0.0.0/x", "https://10.1.2.3", False, id="a block that is none"),
        pytest.param("10.1.2.3", "https://10.1.2.3:6443", True, id="an address"),
        pytest.param("fd00::1", "https://[fd00::1]:6443", True, id="an IPv6 address"),
        pytest.param("[fd00::1]:6443", "https://[fd00::1]:6443", True, id="an IPv6 address with port"),
        pytest.param(",", "https://h", False, id="nothing"),
    ],
)
def test_exempt_from_the_proxy(no_proxy: str, url: str, is_exempt: bool) -> None:
    found = proxy_from_environment(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert found == (None if is_exempt else PROXY)


@pytest.mark.parametrize("url", ["socks5://p:1", "ftp://p", "http://", "http://[::1", "http://p:port", "x"])
def test_a_proxy_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ProxyUrlError):
        check_proxy_url(url)


def test_a_bad_variable_is_named_without_its_password() -> None:
    with pytest.raises(ProxyUrlError, match="environment variable HTTPS_PROXY: SOCKS") as refused:
        proxy_from_environment("https://h", {"HTTPS_PROXY": "socks5://me:s3cret@p:1"})
    assert "s3cret" not in str(refused.value)
