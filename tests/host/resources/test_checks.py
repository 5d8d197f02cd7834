"""Checks on a booted host: HTTP requests that read and change, and expressions of the playbook."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.resources.programs import http_requests
from tests.host.resources import things
from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

PORT = 8310
SHOP = f"http://127.0.0.1:{PORT}/shop"


@pytest.fixture(scope="module")
def host(booted: Host) -> Host:
    """Return a host with a server of things."""
    things.start(booted, "/srv/things", PORT)
    return booted


@pytest.fixture
def site(host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    host.write("/srv/things/asked", "")
    found = Site(host, tmp_path, f"/srv/{request.node.name}")
    yield found
    found.clean()


def changing(value: int = 1, *more: str) -> str:
    """Return a request that makes the thing `shop` have a value."""
    lines = [
        f"url: {SHOP}",
        "method: PUT",
        f"json: {{value: {value}}}",
        "headers: {Authorization: 'Bearer {{ word }}'}",
        "changes: true",
        f"unless: {{url: {SHOP}, contains: '\"value\": {value}\\b'}}",
        f"undo: {{url: {SHOP}, method: DELETE}}",
        *more,
    ]
    return "  - http_request: shop\n" + "".join(f"    {line}\n" for line in lines)


def test_a_request_changes_once_comes_true_and_is_undone(site: Site) -> None:
    """Plans send only the guard. No report, argument or ledger shows the secret of the header."""
    planned = site.come_true(changing())
    assert [action["op"] for action in planned["http_request:shop"]["actions"]] == ["send"]
    asked = things.asked(site.host, "/srv/things")
    assert asked.count("PUT /shop") == 1
    assert asked.index("PUT /shop") > asked.index("GET /shop")
    things.delete(site.host, PORT, "/shop")
    site.come_true(changing())
    site.come_true(changing(2))
    said = [site.say(verb, "", "--json") for verb in ("plan", "apply", "verify")]
    removed = site.say("destroy", "", "--json")
    assert SECRET not in "".join(ran.out + ran.err for ran in (*said, removed))
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    assert things.asked(site.host, "/srv/things")[-1] == "GET /shop"
    assert "DELETE /shop" in things.asked(site.host, "/srv/things")
    assert site.host.run(["curl", "-s", SHOP]).stdout == "there is no such thing"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/second", "the URL must begin with http:// or https://"),
        ("http://user:first:second@127.0.0.1/", "without a user or a password"),
        ("http://127.0.0.1:second/", "the URL is not valid"),
    ],
)
def test_a_url_that_only_the_host_knows_is_checked_there(url: str, reason: str) -> None:
    """The status is not the one of a response, so a guard with such a URL decides nothing."""
    order = http_requests.order(http_requests.request({"url": url}))
    done = subprocess.run(http_requests.command(), input=order, capture_output=True, check=False)
    assert done.returncode not in (0, http_requests.ANSWERED)
    assert reason in done.stderr.decode() and "second" not in done.stderr.decode()


def test_what_existed_before_the_request_stays(site: Site) -> None:
    site.host.run(["curl", "-fsS", "-X", "PUT", "-H", f"Authorization: Bearer {SECRET}", "-d", '{"value": 1}', SHOP])
    assert site.come_true(changing())["http_request:shop"]["outcome"] == "unchanged"
    assert "the result of the request shop existed before it: it stays" in site.say("destroy").out
    assert "DELETE /shop" not in things.asked(site.host, "/srv/things")
    things.delete(site.host, PORT, "/shop")


def test_an_undo_without_its_secret_keeps_the_request(site: Site) -> None:
    site.say("apply", changing())
    other = f"  - file: {site.place}-other\n    content: a\n"
    kept = site.say("apply", other, "--prune", code=None).out
    assert "the playbook no longer contains the secret that the undo of the request shop needs" in kept
    assert site.host.run(["curl", "-s", SHOP]).stdout == '{"value": 1}'
    site.say("destroy", changing() + other)
    assert site.host.run(["curl", "-s", SHOP]).stdout == "there is no such thing"


def test_a_refused_request_fails_with_the_response(site: Site) -> None:
    node = nodes(site.report("apply", changing().replace("Bearer {{ word }}", "Basic x"), code=1))["http_request:shop"]
    assert node["actions"][0]["reason"] == f"PUT {SHOP}: the response has status 403"


def test_a_request_that_a_node_triggers_is_sent_once(site: Site) -> None:
    def triggered(text: str) -> str:
        request = [
            f"url: http://127.0.0.1:{PORT}/reload",
            "method: PUT",
            "headers: {Authorization: 'Bearer {{ word }}'}",
            "changes: true",
            "when_triggered: true",
            f"restart_on: ['file:{site.place}/f']",
        ]
        directory = f"  - directory: {site.place}\n"
        file = f"  - file: {site.place}/f\n    content: {text}\n    requires: ['directory:{site.place}']\n"
        return directory + file + "  - http_request: reload\n" + "".join(f"    {line}\n" for line in request)

    site.come_true(triggered("one"))
    site.come_true(triggered("one"))
    assert things.asked(site.host, "/srv/things").count("PUT /reload") == 1
    site.come_true(triggered("two"))
    assert things.asked(site.host, "/srv/things").count("PUT /reload") == 2


def test_a_response_is_checked_before_anything_changes_and_known_after_what_changes_first(site: Site) -> None:
    file = f"  - directory: {site.place}\n"
    reading = f"  - http_request: nothing\n    url: http://127.0.0.1:{PORT}/nothing\n"
    failed = nodes(site.report("plan", file + reading, code=1))["http_request:nothing"]
    assert failed["reason"].endswith("/nothing: the response has status 404: there is no such thing")
    site.say("apply", file + reading, code=1)
    assert not site.host.path(site.place).exists()
    expected = f"{reading}    status: [404]\n    contains: ^there is\n    requires: ['directory:{site.place}']\n"
    planned = nodes(site.report("plan", file + expected))["http_request:nothing"]
    assert planned["known_after"] == f"directory:{site.place}"
    applied = nodes(site.report("apply"))["http_request:nothing"]
    assert applied["outcome"] == "unchanged"
    closed = "  - http_request: closed\n    url: http://127.0.0.1:9/\n"
    assert "Connection refused" in nodes(site.report("plan", closed, code=1))["http_request:closed"]["reason"]


def test_a_new_server_with_tls_is_known_after_it_starts(site: Site) -> None:
    """The whole way on a bare host: files, a unit, a wait, and requests over TLS with the own authority."""
    site.host.run(["mkdir", "-p", "/srv/tls"])
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=a", "-addext", "subjectAltName=IP:127.0.0.1"]
    argv += ["-keyout", "/srv/tls/key", "-out", "/srv/tls/cert", *names]
    site.host.run(argv)
    body = "".join(f"      {line}\n" for line in things.SERVER.splitlines())
    url = "https://127.0.0.1:8311"
    server = f"""
  - file: /srv/tls/things.py
    content: |
{body}
  - systemd_unit: tls-things
    sections: {{Service: {{ExecStart: /usr/bin/python3 /srv/tls/things.py 8311 /srv/tls/cert /srv/tls/key}}}}
    requires: ["file:/srv/tls/things.py"]
  - service: tls-things
    running: true
    requires: ["systemd_unit:tls-things"]
  - wait_for: tls-things
    url: {url}/
    status: [404]
    ca: /srv/tls/cert
    interval: 0.1
    requires: ["service:tls-things"]
  - http_request: thing
    url: {url}/thing
    method: PUT
    body: "two\\nlines"
    ca: /srv/tls/cert
    headers: {{Authorization: "Bearer {{{{ word }}}}"}}
    changes: true
    unless: {{url: "{url}/thing", contains: "^lines$"}}
    undo: {{url: "{url}/thing", method: DELETE}}
    requires: ["wait_for:tls-things"]
  - http_request: untrusted
    url: {url}/thing
    verify_certificate: false
    requires: ["http_request:thing"]
"""
    planned = nodes(site.report("plan", server))
    assert planned["wait_for:tls-things"]["outcome"] == "changed"
    assert planned["http_request:thing"]["known_after"] and planned["http_request:untrusted"]["known_after"]
    site.say("apply")
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    untrusted = f"  - http_request: untrusted\n    url: {url}/thing\n"
    reason = nodes(site.report("plan", untrusted, code=1))["http_request:untrusted"]["reason"]
    assert "CERTIFICATE_VERIFY_FAILED" in reason
    site.say("destroy", server)
    assert not site.host.path("/etc/systemd/system/tls-things.service").exists()


def test_a_false_expression_is_an_invalid_playbook(site: Site) -> None:
    expression = "  - assertion: port\n    that: '{{ %d > 1024 }}'\n    message: choose a port above 1024\n"
    assert nodes(site.report("plan", expression % 8080))["assertion:port"]["outcome"] == "unchanged"
    ran = site.say("plan", expression % 80, code=5)
    assert "choose a port above 1024" in ran.out + ran.err
    command = "  - assertion: user\n    command: test $(id -un) = daemon\n    user: daemon\n"
    site.say("plan", command)
    site.say("plan", command.replace("    user: daemon\n", ""), code=1)
