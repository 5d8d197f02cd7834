"""Text that contains a secret reaches the host with the value, or is refused. Masks and tokens never reach it."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import random
import re
import shlex
import textwrap
import urllib.parse
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecfg import templates
from statecfg.graph.opaque import Secret
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.problems import InvalidInput, tokens
from statecfg.problems.positions import SourceLocation
from statecfg.remote.wire.frames import decode_value
from statecfg.resources import command, file, line_in_file
from statecfg.run import prepare
from tests.each import each

VALUE = 'hun\'ter "22" & <co>'


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> Secret:
    """Return the only secret of this process. Messages may name any secret, so there must be only one."""
    monkeypatch.setattr(tokens, "_SECRETS", {})
    return Secret("tok", VALUE)


def content_of(wire: dict[str, Any], blobs: Any = None) -> bytes:
    """Return the content of a wire node."""
    found = decode_value(wire["attrs"]["content"], blobs if blobs is not None else {})
    return found.encode() if isinstance(found, str) else found.read()


def sent(content: Any) -> bytes:
    """Return the content that a host receives."""
    definition = compile_graph(file("/etc/x", content=content), WireContext())
    return content_of(definition.layers[0][0], definition.blobs)


# ruff: noqa: UP031, UP032  # the tests need each way to compose text
def in_base64(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


ARRIVES: list[tuple[Callable[[Secret], Any], str]] = [
    (lambda t: f"pw={t}\n", f"pw={VALUE}\n"),
    (lambda t: "pw=%s\n" % t, f"pw={VALUE}\n"),
    (lambda t: "pw={}\n".format(t), f"pw={VALUE}\n"),
    (lambda t: "pw={p}".format(p=t), f"pw={VALUE}"),
    (lambda t: "pw=" + t, f"pw={VALUE}"),
    (lambda t: t + "\n", f"{VALUE}\n"),
    (lambda t: t + t, VALUE + VALUE),
    (lambda t: f"{t}" + t, VALUE + VALUE),
    (lambda t: "\n".join(["a", str(t), "b"]), f"a\n{VALUE}\nb"),
    (lambda t: t.join(["a", "b"]), f"a{VALUE}b"),
    (lambda t: "pw=@@".replace("@@", str(t)), f"pw={VALUE}"),
    (lambda t: t.replace("hun", "tin"), VALUE.replace("hun", "tin")),
    (lambda t: t.encode(), VALUE),
    (lambda t: t.upper(), VALUE.upper()),
    (lambda t: t[:8], VALUE[:8]),
    (lambda t: t.apply(shlex.quote) + "!", shlex.quote(VALUE) + "!"),
    (lambda t: t.apply(in_base64), in_base64(VALUE)),
    (lambda t: t.apply(lambda text: base64.b64encode(text.encode())), in_base64(VALUE)),
    (lambda t: t.apply(str.encode), VALUE),
    (lambda t: t.apply(Path), VALUE),
    (lambda t: json.dumps({"pw": f"a{t}"}), json.dumps({"pw": f"a{VALUE}"})),
    (lambda t: json.dumps({"pw": f"{t}é"}, ensure_ascii=False), json.dumps({"pw": f"{VALUE}é"}, ensure_ascii=False)),
    (lambda t: "echo " + shlex.quote(f"a {t}"), "echo " + shlex.quote(f"a {VALUE}")),
    (lambda t: html.escape(f"<{t}>"), html.escape(f"<{VALUE}>")),
    (lambda t: textwrap.dedent(f"""\
        a = 1
          pw = {t}
        """), f"a = 1\n  pw = {VALUE}\n"),
    (lambda t: f"é {t} \U0001f600 {t}", f"é {VALUE} \U0001f600 {VALUE}"),
    (lambda t: f"{t}".encode("utf-8", "surrogatepass"), VALUE),
]  # fmt: skip


@each(("compose", "arrives"), ARRIVES, ids=map(str, range(len(ARRIVES))))
def test_text_composed_with_a_secret_arrives(token: Secret, compose: Callable[[Secret], Any], arrives: str) -> None:
    assert sent(compose(token)) == arrives.encode()


def test_text_that_looks_like_a_mask_is_text(token: Secret) -> None:
    assert sent(f"replace <secret {token.name}> by hand") == f"replace <secret {token.name}> by hand".encode()


REFUSED: list[Callable[[Secret], Any]] = [
    lambda t: f"{t!r}",
    lambda t: "%r" % t,
    lambda t: ascii(t),
    lambda t: json.dumps(f"{t!r}"),
    lambda t: f"{t!r}".encode(),
    lambda t: json.dumps(f"{t!r}").encode(),
    lambda t: "{!r}".format(t),
    lambda t: str([t]),
    lambda t: str({"a": t}),
    lambda t: repr(f"{t}"),
    lambda t: ascii(f"{t}"),
    lambda t: f"{t:>40}",
    lambda t: "%.3s" % t,
    lambda t: f"x{t}"[:7],
    lambda t: f"{t}"[0],
    lambda t: f"{t}"[-1],
    lambda t: f"{t}"[9:],
    lambda t: f"{t}".upper(),
    lambda t: f"{t}".lower(),
    lambda t: f"{t}".title(),
    lambda t: f"{t}".capitalize(),
    lambda t: f"{t}".swapcase(),
    lambda t: f"{t}".casefold(),
    lambda t: f"{t}"[::-1],
    lambda t: "".join(sorted(f"{t}")),
    lambda t: f"{t}".split("'")[0],
    lambda t: f"{t}".replace("q", "k"),
    lambda t: textwrap.fill(f"a {t} b", 20),
    lambda t: re.escape(f"{t}"),
    lambda t: re.sub(r"\W", "", f"{t}"),
    lambda t: re.sub(r"[^\x00-\x7f]", "?", f"{t}"),
    lambda t: f"{t}".encode(),
    lambda t: f"{t}".encode("latin-1"),
    lambda t: f"{t}".encode("ascii", "ignore"),
    lambda t: f"{t}".encode("ascii", "ignore").decode(),
    lambda t: f"{t}".encode("ascii", "replace").decode(),
    lambda t: f"{t}".encode("ascii", "backslashreplace").decode(),
    lambda t: f"{t}".encode("ascii", "xmlcharrefreplace").decode(),
    lambda t: f"{t}".encode("ascii", "namereplace").decode(),
    lambda t: f"{t}".encode("unicode_escape"),
    lambda t: f"{t}".encode("utf-8", "surrogatepass")[:30],
    lambda t: f"{t}".encode("utf-16"),
    lambda t: t.encode("utf-16"),
    lambda t: base64.b64encode(f"{t}".encode()),
    lambda t: hashlib.sha256(f"{t}".encode()).hexdigest(),
    lambda t: zlib.compress(f"{t}".encode()),
    lambda t: urllib.parse.quote(f"{t}"),
    lambda t: json.dumps(json.dumps(f"{t}")),
    lambda t: json.dumps({"a": t}),
    lambda t: rows(f"{t}", "b"),
    lambda t: "".join([t]),
    lambda t: "a".replace("a", t),
    lambda t: t[:2],
    lambda t: t.apply(int),
    lambda t: base64.b64encode(t.apply(str.encode)).decode(),
    lambda t: t.apply(lambda text: hashlib.sha256(text.encode()).digest()),
    lambda t: str(t.apply(set)),
    lambda t: b"x" + t,
    lambda t: list(t),
]


def rows(*cells: str) -> str:
    """Return a line of CSV."""
    stream = io.StringIO()
    csv.writer(stream).writerow(cells)
    return stream.getvalue()


@each("compose", REFUSED, ids=map(str, range(len(REFUSED))))
def test_text_that_would_lose_the_secret_is_refused(
    tmp_path: Path, compose: Callable[[Secret], Any], token: Secret
) -> None:
    """The composition raises an error, or the compiler reports its position and the name of the secret."""
    try:
        content = compose(token)
    except (ValueError, TypeError) as error:
        assert "hunter" not in str(error) and VALUE not in str(error)
        return
    with pytest.raises(InvalidInput) as caught:
        sent(content)
    (found,) = caught.value.problems
    assert found.code == "SC0423" and found.locations[0].file == __file__
    assert "tok" in found.detail and VALUE not in str(found)


def test_secrets_inside_a_map_reach_the_host_and_are_hidden(token: Secret) -> None:
    graph = command("x", argv=["env"], env={"A": f"a{token}", "B": "b"})
    (node,) = compile_graph(graph, WireContext()).layers[0]
    assert node["attrs"]["env"] == {"A": f"a{VALUE}", "B": "b"} and node["hides"] == ["env"]


def test_secret_is_compared_by_its_value(token: Secret) -> None:
    assert token == VALUE and token != "x" and token == f"{token}"
    assert token in ["a", VALUE] and "ter" in token and token.startswith("hun") and {VALUE: 1}[token] == 1
    assert sorted([Secret("b", "bbbb"), "aaaa"]) == ["aaaa", "bbbb"]


def test_tokens_are_masked_in_messages(token: Secret) -> None:
    text = f"a {token} {str(token)!r} {str(token)[:6]}"
    masked = tokens.masked(text)
    assert masked.startswith("a <secret tok> ") and not re.search("[\ud800-\udfff]|\\\\ud", masked)
    with pytest.raises(InvalidInput) as caught:
        line_in_file("/etc/x", line=f"a\n{token}")
    assert VALUE not in str(caught.value) and "<secret tok>" in str(caught.value)


def test_each_secret_has_a_token_of_its_own() -> None:
    """Different secrets have different tokens, and equal secrets have the same token."""
    found = {str(Secret("a", f"value-{number}")) for number in range(100)}
    assert len(found) == 100 and str(Secret("a", "value-1")) in found
    assert str(Secret("b", "value-1")) not in found


def test_tokens_cannot_be_guessed() -> None:
    """Each token has 16 random bytes, and they do not come from the generator that programs can seed."""
    random.seed(1)
    first = tokens.new_token()
    random.seed(1)
    drawn = [first, *(tokens.new_token() for _ in range(3000))]
    digits = [[letter for letter in token if letter in tokens.DIGITS] for token in drawn]
    assert len(set(drawn)) == len(drawn)
    assert [len(set(column)) > 240 for column in zip(*digits, strict=True)] == [True] * 16


HEAD = """\
from statecfg import play, secret
from statecfg.resources import command, file, line_in_file, process

@play(hosts="@local")
def site(host):
    token = secret("tok", env="STATECFG_TEST_TOKEN")
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that compiles a playbook and returns the nodes for the host by name."""

    def compiled(text: str, name: str = "site.yml", value: str = VALUE) -> dict[str, Any]:
        monkeypatch.setenv("STATECFG_TEST_TOKEN", value)
        (tmp_path / "statecfg.toml").write_text("")
        (tmp_path / name).write_text(textwrap.dedent(text))
        work = prepare.playbook(tmp_path / name, prepare.Choice())
        return {node["provides"]: node for layer in work.jobs[0].definition.layers for node in layer}

    return compiled


def refused(made: Callable[..., Any], text: str, name: str = "site.yml", value: str = VALUE) -> list[tuple[str, int]]:
    """Return the code and the line of each problem. Check that no problem contains the value."""
    with pytest.raises(InvalidInput) as caught:
        made(text, name, value)
    assert value not in str(caught.value)
    return [(found.code, found.locations[0].line) for found in caught.value.problems]


YAML = """\
hosts: "@local"
vars: {token: !secret {env: STATECFG_TEST_TOKEN}}
resources:
"""


def test_yaml_and_jinja_can_compose_text_with_a_secret(made: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "x.j2").write_text(
        "{% set y = token ~ '!' %}{{ y | upper }} {{ [token, 'b'] | join(',') }} {{ cfg | tojson }}"
    )
    nodes = made(
        YAML
        + """\
  - file: /a
    content: "pw={{ token }}\\n"
  - command: env
    argv: [env]
    env: {A: "{{ token | replace('hun', 'tin') }}", B: "{{ 'x' if token == 'nope' else 'y' }}"}
  - file: /t
    template: x.j2
    vars: {cfg: {pw: "{{ token }}"}}
  - file: /same
    content: a
    when: token == "abc'd efgh"
  - file: /other
    content: a
    when: token != "abc'd efgh"
""",
        value="abc'd efgh",
    )
    assert content_of(nodes["file:/a"]) == b"pw=abc'd efgh\n"
    assert nodes["command:env"]["attrs"]["env"] == {"A": "abc'd efgh", "B": "y"}
    text = content_of(nodes["file:/t"]).decode()
    assert text == 'ABC\'D EFGH! abc\'d efgh,b {"pw": "abc\\u0027d efgh"}'
    assert "file:/same" in nodes and "file:/other" not in nodes
    assert nodes["file:/t"]["hides"] == ["content"]


def test_hy_can_compose_text_with_a_secret(made: Callable[..., Any]) -> None:
    nodes = made(
        """\
        (require statecfg.dialects.hy [defplay])
        (import statecfg [secret] statecfg.resources [file])
        (defplay site [host] {:hosts "@local"}
          (setv t (secret "tok" :env "STATECFG_TEST_TOKEN"))
          [(file "/a" {:content f"pw={t}\\n"})
           (file "/b" {:content (.format "pw={}" t)})
           (file "/c" {:content (+ "pw=" t)})])
        """,
        "site.hy",
    )
    for name, text in (("/a", f"pw={VALUE}\n"), ("/b", f"pw={VALUE}"), ("/c", f"pw={VALUE}")):
        assert content_of(nodes["file:" + name]) == text.encode()


PLACES = [
    ('  - file: "/etc/{{ token }}"\n    content: a\n', 4),
    ("  - command: !secret {env: STATECFG_TEST_TOKEN}\n    argv: [x]\n", 4),
    ('  - command: a\n    argv: [x]\n    creates: "/{{ token }}"\n', 6),
    ('  - command: a\n    argv: [x]\n    cwd: "{{ token }}"\n', 6),
    ('  - file: /a\n    content: a\n    provides: "x-{{ token }}"\n', 6),
    ('  - file: /a\n    content: a\n    tags: ["{{ token }}"]\n', 6),
    ('  - file: /a\n    content: a\n    requires: ["file:{{ token }}"]\n', 6),
    ('  - file: /a\n    source: "{{ token }}"\n', 5),
    ('  - command: a\n    argv: [x, "{{ token }}"]\n', 5),
    ('  - package: nginx\n    version: "{{ token }}"\n', 5),
    ('  - user: ann\n    comment: "{{ token }}"\n', 5),
    ('  - user: ann\n    groups: [adm, "{{ token }}"]\n', 5),
    ('  - file: /a\n    content: a\n    backup: ".{{ token }}"\n', 6),
]


@each(("entry", "line"), PLACES, ids=range(len(PLACES)))
def test_secret_in_a_name_or_path_is_refused_with_its_place(made: Callable[..., Any], entry: str, line: int) -> None:
    (found,) = refused(made, YAML + entry, value="/plain/value")
    assert found[0] in ("SC0425", "SC0202") and found[1] == line


@each(
    "expression",
    [
        'file(f"/etc/{token}", content="a")',
        'file("/etc/x", content="a", provides=f"{token}")',
        'file("/etc/x", content="a", tags=[token])',
        'command("a", argv=["x"], env={f"{token}": "b"})',
        'process("/bin/sleep", {"user": "root", "group": "root", "env": {}, "args": [token]})',
    ],
)
def test_secret_in_a_name_is_refused_in_python(made: Callable[..., Any], expression: str) -> None:
    (found,) = refused(made, f"{HEAD}    return {expression}\n", "site.py")
    assert found[1] == 7


def test_host_pattern_with_a_secret_is_refused(made: Callable[..., Any]) -> None:
    text = "from statecfg import play, secret\n@play(hosts=f\"a-{secret('t', env='STATECFG_TEST_TOKEN')}\")"
    text += "\ndef x(host): ...\n"
    assert refused(made, text, "site.py") == [("SC0425", 2)]


CONNECTION = ["address", "port", "user", "key", "jump", "become", "become_user", "python", "transport"]


@pytest.mark.parametrize("setting", CONNECTION)
def test_secret_in_a_connection_setting_is_refused_with_its_place(
    made: Callable[..., Any], tmp_path: Path, setting: str
) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(f"hosts:\n  web1:\n    {setting}: !secret {{env: STATECFG_TEST_TOKEN}}\n")
    with pytest.raises(InvalidInput) as caught:
        made("hosts: web1\nresources: []\n", value="192.0.2.7")
    (found,) = caught.value.problems
    assert (found.code, found.locations[0].file, found.locations[0].line) == ("SC0405", str(inventory), 3)
    assert f"`{setting}`" in found.detail and "192.0.2.7" not in str(found)


@pytest.mark.parametrize(
    ("hosts", "code"),
    [
        ("!secret {env: STATECFG_TEST_TOKEN}", "SC0310"),
        ("[web1, !secret {env: STATECFG_TEST_TOKEN}]", "SC0310"),
        ('"web{{ token }}"', "SC0406"),
        ('[web1, "{{ token }}"]', "SC0406"),
    ],
)
def test_yaml_host_pattern_with_a_secret_is_refused_with_its_place(
    made: Callable[..., Any], tmp_path: Path, hosts: str, code: str
) -> None:
    (tmp_path / "inventory.yml").write_text("hosts: [web1, web2]\n")
    text = f"vars: {{token: !secret {{env: STATECFG_TEST_TOKEN}}}}\nhosts: {hosts}\nresources: []\n"
    assert refused(made, text) == [(code, 2)]


def test_messages_mask_secrets_inside_attribute_values(made: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(YAML + '  - file: /a\n    content: a\n    owner: "{{ token }} x"\n    mode: "{{ token }}"\n')
    text = str(caught.value)
    assert VALUE not in text and "`owner`" in text and "`mode`" in text and "<secret STATECFG_TEST_TOKEN> x" in text


def test_error_in_user_code_does_not_show_the_secret(made: Callable[..., Any]) -> None:
    for body in ('raise ValueError(f"bad {token}")', "raise ValueError(token.reveal())", 'int(token.reveal() + "x")'):
        assert refused(made, f"{HEAD}    {body}\n", "site.py") == [("SC0504", 7)]
    assert refused(made, f"{HEAD}    raise SystemExit(token.reveal())\n", "site.py", "plain-value") == [("SC0505", 7)]


@each(
    ("body", "said"),
    [
        ("raise ValueError(token)", "ValueError: <secret tok>"),
        ('raise KeyError(f"a {token}")', "a <secret "),
        ('x = "".join([token])', "(secrets here: tok)"),
        ('x = b"x" + token', "(secrets here: tok)"),
        ("x = list(token)", "(secrets here: tok)"),
        ('x = "%d" % token', "(secrets here: tok)"),
    ],
)
def test_error_in_user_code_names_the_secret_and_its_place(made: Callable[..., Any], body: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(f"{HEAD}    {body}\n", "site.py")
    text = str(caught.value)
    assert said in text and "site.py:7" in text and VALUE not in text
    assert not tokens.IN_BYTES.search(re.sub("<secret [^>]*>", "", text).encode("utf-8", "surrogatepass"))


def test_lost_token_is_reported_with_its_place(made: Callable[..., Any]) -> None:
    for body in ('x = f"{token:>9}"', 'x = f"{token}".encode()', "x = token[:2]"):
        assert refused(made, f"{HEAD}    {body}\n", "site.py") == [("SC0423", 7)]


def test_process_accepts_secrets_in_its_environment(made: Callable[..., Any]) -> None:
    attrs = '{"user": "root", "group": "root", "args": ["1"], "env": {"A": token, "B": f"x{token}"}}'
    body = f'return process("/bin/sleep", {attrs})'
    (node,) = made(f"{HEAD}    {body}\n", "site.py").values()
    assert node["attrs"]["env"] == {"A": VALUE, "B": f"x{VALUE}"} and node["hides"] == ["env"]


@each("number", ["{{ pin | int }}", "{{ pin | float }}", "{{ pin | int + 1 }}"])
def test_templates_refuse_to_convert_a_secret_to_a_number(number: str) -> None:
    """Reports can't mask the number, or a value that a template computes from it."""
    pin = Secret("pin", "48151623")
    with pytest.raises(InvalidInput) as caught:
        templates.evaluate(number, {"pin": pin}, SourceLocation("site.yml", 1))
    (found,) = caught.value.problems
    assert "converts the secret pin to a number" in found.detail
    assert "48151623" not in str(caught.value)
