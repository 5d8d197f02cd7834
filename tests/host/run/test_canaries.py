"""Twenty secrets in eight encodings: no secret is anywhere but where the playbook put it, on controller and host.

`CANARIES=table` prints the table of docs/security.md.
"""

from __future__ import annotations

import base64
import html
import json
import os
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from statecfg.remote.graph.names import ResourceEvent
from tests import lab
from tests.host.run.hooked import NOTE, Site
from tests.lab import Host
from tests.lab.fixtures import or_skip

CANARIES = [
    "canary-plain-7f3a91",
    "c4n8",
    "canary with spaces 51",
    "canary'single'quote-2",
    'canary"double"quote-3',
    "canary\\back\\nslash-4",
    "canary%41%20percent-5",
    "canary$HOME`id`$(id)-6",
    "canary&amp<tag>;-7",
    "canäry-ümläut-ß-8",
    "canary-emoji-\U0001f600-9",
    "canary-line-one-10\ncanary-line-two-10\nend",
    "canary\ttab-11",
    "canary/a+b=c?d#e:@-12",
    "9081726354",
    "${canary}{{ x }}{% y %}-14",
    "-----BEGIN CANARY-----\n" + "Q2FuYXJ5" * 12 + "\n-----END CANARY-----",
    "canary-long-" + "0123456789abcdef" * 255,
    "cånåry-" + "é" * 400,
    "  canary-edges-20  ",
]
ENCODINGS = {
    "raw": lambda text: text,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "shell": lambda text: shlex.quote(text)[1:-1] if shlex.quote(text) != text else text,
    "URL": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode().rstrip("=")[:-1],
    "hex": lambda text: text.encode().hex(),
    "HTML": lambda text: html.escape(text),
}
# Prints its secrets in every encoding on stdout and stderr, and exits with the given status.
TELLS = """\
import base64, html, json, os, shlex, sys, urllib.parse
for name in sorted(os.environ):
    if name[:1] == "C" and name[1:].isdigit():
        text = os.environ[name]
        for said in (text, json.dumps(text), repr(text), shlex.quote(text), urllib.parse.quote(text, safe=""),
                     base64.b64encode(text.encode()).decode(), text.encode().hex(), html.escape(text)):
            print(said, flush=True)
            print(said, file=sys.stderr, flush=True)
sys.exit(int(sys.argv[1]))
"""
GIVEN = b"CANARY_GIVEN=1"  # occurs in the environment of each process that receives the secrets


def needles(text: str) -> dict[str, bytes]:
    """Return the forbidden bytes, by encoding; a text of several lines is also represented by its longest line."""
    found = {name: encode(text).encode("utf-8", "surrogatepass") for name, encode in ENCODINGS.items()}
    if "\n" in text:
        found["raw line"] = max(text.split("\n"), key=len).encode()
    return found


NEEDLES = {number: needles(text) for number, text in enumerate(CANARIES)}


def hits(data: bytes) -> set[str]:
    """Return the number and the encoding of each canary in the bytes."""
    return {f"{number} {name}" for number, each in NEEDLES.items() for name, needle in each.items() if needle in data}


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


class Watch:
    """Reads the arguments and environment of every process again and again, including those of hosts."""

    def __init__(self) -> None:
        self.arguments: set[str] = set()
        self.environments: set[str] = set()
        self.samples = self.given = 0
        self._seen: set[tuple[str, bytes]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    self._look(f"/proc/{entry}")
            self.samples += 1
            self._over.wait(0.02)

    def _look(self, place: str) -> None:
        try:
            arguments = _read(f"{place}/cmdline")
            if (place, arguments) in self._seen:
                return
            environment = _read(f"{place}/environ")
        except OSError:
            return  # the process has ended since the listing
        self._seen.add((place, arguments))
        self.arguments |= hits(arguments)
        if GIVEN in environment:
            self.given += 1
        else:
            self.environments |= hits(environment)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with or_skip():
        found = lab.booted_host("canaries")
    found.run(["sh", "-c", "mkdir /var/log/journal && journalctl --flush"])
    yield found
    found.stop()


def playbook(site: Site, version: str) -> None:
    """Write a playbook that puts each canary into a file, a template, a line, and environments."""
    folder = site.root / "secrets"
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(CANARIES):
        path = folder / f"c{number}"
        path.write_bytes(text.encode())
        path.chmod(0o600)
    values = "".join(f"  c{n}: !secret {{file: secrets/c{n}, name: canary{n}}}\n" for n in range(len(CANARIES)))
    env = ", ".join(f'C{n}: "{{{{ c{n} }}}}"' for n in range(len(CANARIES)))
    (site.root / "all.j2").write_text(
        f"{version}\n" + "".join(f"{{{{ c{n} }}}}\n" for n in range(len(CANARIES))) + "{{ [c0, c3] | tojson }}\n"
    )
    content = "".join(f"part {{{{ c{n} }}}} of {version}\\n" for n in range(len(CANARIES)))
    lines = "".join(
        f'- line_in_file: /srv/lines\n  provides: line-{n}\n  line: "l{n} {version} = {{{{ c{n} }}}}"\n'
        f'  match: "^l{n} "\n  requires: [file:/srv/lines]\n'
        for n, text in enumerate(CANARIES)
        if "\n" not in text
    )
    site.playbook(
        f"""\
- file: /srv/tells
  content: {json.dumps(TELLS)}
- file: /srv/content
  content: "{content}"
  mode: "0600"
- file: /srv/template
  template: all.j2
  mode: "0600"
- file: /srv/lines
  mode: "0600"
{lines}
- command: tells
  argv: [python3, /srv/tells, "0"]
  env: {{{env}, CANARY_GIVEN: "1", VERSION: "{version}"}}
  requires: [file:/srv/tells]
- process: /bin/sleep
  user: root
  group: root
  args: ["600"]
  env: {{{env}, CANARY_GIVEN: "1", VERSION: "{version}"}}
- command: fails
  argv: [python3, /srv/tells, "3"]
  env: {{{env}, CANARY_GIVEN: "1"}}
  requires: [command:tells, file:/srv/content, "process:/bin/sleep"]
""",
        f"vars:\n{values}",
    )


def test_secrets_appear_only_in_their_target_files(host: Host, tmp_path: Path) -> None:
    site = Site(tmp_path / "site", [host])
    host.write("/srv/lines", "".join(f"l{n} former\n" for n in range(len(CANARIES))))
    site.hook("notes", dict.fromkeys(ResourceEvent.ALL, NOTE))
    site.hook("there", dict.fromkeys(ResourceEvent.ALL, NOTE), where="host")
    said: dict[str, bytes] = {}

    def run(name: str, *words: str, code: int | None) -> None:
        ran = site.run(*words, code=code)
        said[f"stdout and stderr: {name}"] = (ran.out + ran.err).encode("utf-8", "surrogatepass")

    with Watch() as watch:
        playbook(site, "one")
        run("plan", "plan", "site.yml", "--diff", "-vv", "--out", "saved.plan", code=0)
        reports = ["--json-into", "report.json", "--markdown-into", "report.md"]
        run("apply", "apply", "site.yml", "--yes", "--keep-going", "--diff", "-vv", *reports, code=1)
        playbook(site, "two")
        run("plan again", "plan", "site.yml", "--json", code=0)
        run("apply again", "apply", "site.yml", "--yes", "--keep-going", "--json", code=1)
        run("verify", "verify", "site.yml", "--json", code=None)
        run("history", "run-history", "all", code=None)
        journal = host.run(["journalctl", "--no-pager", "-o", "export"], check=False).stdout.encode()
        upper = host.home / "upper"
        files = {path: path.read_bytes() for path in upper.rglob("*") if path.is_file() and not path.is_symlink()}
        run("destroy", "destroy", "site.yml", "--yes", "-vv", "--diff", code=None)
        run("hook log", "hook", "log", code=0)
    targets = {upper / "srv/content", upper / "srv/template", upper / "srv/lines"}
    for target in targets:
        assert len({hit.split()[0] for hit in hits(files[target])}) >= len(CANARIES) - 3, target
    state = upper / "var/lib/statecfg"
    after = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    table: dict[str, set[str]] = {name: hits(data) for name, data in said.items()}
    local = {path: path.read_bytes() for path in site.root.rglob("*") if path.is_file() and "secrets" not in path.parts}
    parts: Mapping[str, list[bytes]] = {
        "report: JSON": [local[site.root / "report.json"]],
        "report: Markdown": [local[site.root / "report.md"]],
        "saved plan": [local[site.root / "saved.plan"]],
        "store": [data for path, data in local.items() if path.name.startswith("store.db")],
        "hooks here": [data for path, data in local.items() if "hooks" in path.parts],
        "other files of the project": [data for path, data in local.items() if "hooks" not in path.parts],
    }
    for where in ("ledger.db", "ledger.snapshot", "runs", "cache", "before", "hooks", "processes"):
        chosen = [*files.items(), *after.items()]
        inside = [data for path, data in chosen if state in path.parents and where in str(path.relative_to(state))]
        parts = {**parts, f"host: {where}": inside}
    others = [
        data for path, data in files.items() if path not in targets and not path.is_relative_to(upper / "var/log")
    ]
    parts = {**parts, "host: every other file": others, "host: systemd journal": [journal]}
    logs = [data for path, data in files.items() if path.is_relative_to(upper / "var/log")]
    parts = {**parts, "host: /var/log (syslog and the journal's files)": logs}
    for name, found in parts.items():
        table[name] = set().union(*map(hits, found)) if found else set()
    table["arguments of every process, both sides"] = watch.arguments
    table["environment of every other process, both sides"] = watch.environments
    if os.environ.get("CANARIES") == "table":
        for name, found in table.items():
            print(f"| {name} | {sum(map(len, parts.get(name, [said.get(name, b'')]))):,} | {len(found)} |")
        print(f"samples {watch.samples}, processes that were given them {watch.given}")
    assert watch.samples > 5 and watch.given
    # Empty parts would show nothing. The journals of runs are gone: `test_management.py` looks into them.
    assert not [name for name, found in parts.items() if not any(found) and name != "host: runs"]
    assert not {name: sorted(found)[:9] for name, found in table.items() if found}
    shutil.rmtree(site.root / "secrets")
