"""Addresses of HTTP hooks: a URI, a reference, or both. statecfg resolves them like Scoby."""

from __future__ import annotations

import pytest

from statecfg.hooks.http.address import AddressError, resolve
from statecfg.hooks.registration.model import HttpHook, Reference
from tests.each import each

SERVICE = Reference("Service", "hook", "demo", "v1")
BASE = "http://hook.demo.svc.cluster.local"
HOSTS = {"web1": "192.0.2.7", "six": "2001:db8::1"}


@each(
    ("uri", "ref", "url"),
    [
        ("http://hooks.example/v1", None, "http://hooks.example/v1"),
        ("https://hooks.example:8443/v1?a=1", None, "https://hooks.example:8443/v1?a=1"),
        (None, SERVICE, BASE),
        ("/path", SERVICE, f"{BASE}/path"),
        ("https://", SERVICE, "https://hook.demo.svc.cluster.local"),
        ("//:8090", SERVICE, f"{BASE}:8090"),
        ("//?a=1&b=2", SERVICE, f"{BASE}?a=1&b=2"),
        ("http://:8080/v1", SERVICE, f"{BASE}:8080/v1"),
        ("http://:8080/v1", Reference("Host", "web1"), "http://192.0.2.7:8080/v1"),
        ("//:8080", Reference("Host", "six"), "http://[2001:db8::1]:8080"),
    ],
)
def test_resolve_builds_a_url_from_uri_and_reference(uri: str | None, ref: Reference | None, url: str) -> None:
    assert resolve(HttpHook(uri, ref), HOSTS) == url


@each(
    ("uri", "ref", "text"),
    [
        (None, None, "ref or uri should be informed"),
        (
            "http://hooks.example",
            SERVICE,
            'URI should not contain a host while also informing a Reference: "http://hooks.example"',
        ),
        (None, Reference("Host", "web2"), 'hosts "web2" not found'),
        (None, Reference("Broker", "b", "demo", "eventing.example/v1"), 'object does not inform "status.address.url"'),
        (None, Reference("Service", "b", "demo", "other/v1"), 'object does not inform "status.address.url"'),
    ],
)
def test_resolve_reports_missing_addresses_as_scoby_does(uri: str | None, ref: Reference | None, text: str) -> None:
    with pytest.raises(AddressError) as failed:
        resolve(HttpHook(uri, ref), HOSTS)
    assert str(failed.value) == text


def test_environment_variable_sets_the_cluster_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_DOMAIN", "corp.example")
    assert resolve(HttpHook("/v1", SERVICE), {}) == "http://hook.demo.svc.corp.example/v1"
