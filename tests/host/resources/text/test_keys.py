"""Keys of files on a light host: the plan comes true, undo restores the lines, and no secret is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import SECRET, Site, nodes
from tests.lab import Host

FILES = {
    "ini": "; main\n[db]\nhost = db1\n\n[web]\nport=80\n",
    "json": '{\n\t"db": {"host": "db1", "ports": [1, 2]},\n\t"web": 80\n}\n',
    "toml": '# main\nname = "x"\n\n[db]\nhost = "db1" # first\n',
    "yaml": "# main\ndb:\n    host: db1  # first\n    ports:\n    - 1\n    - 2\n    tls: on\nweb: 80\n",
}


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    for form, text in FILES.items():
        found.write(form, text)
    yield found
    found.say("destroy", code=None)


def resources(site: Site, value: str, ports: bool = True) -> str:
    """Return nodes that change one key of each file, add another one, and remove `ports` from two files."""
    text = ""
    for form in FILES:
        path = f"{site.place}/{form}"
        db = "section: db\n    key: {}" if form == "ini" else "key: db.{}"
        for name, what in (("host", f"value: {value}"), ("user", f"value: {value}")):
            text += f"  - {form}_key: {path}\n    {db.format(name)}\n    {what}\n    provides: {form} {name}\n"
        if ports and form in ("json", "yaml"):
            text += f"  - {form}_key: {path}\n    {db.format('ports')}\n    absent: true\n    provides: {form} ports\n"
    return text


EDITED = {
    "ini": "; main\n[db]\nhost = db2\nuser = db2\n\n[web]\nport=80\n",
    "json": '{\n\t"db": {"host": "db2", "user": "db2"},\n\t"web": 80\n}\n',
    "toml": '# main\nname = "x"\n\n[db]\nhost = "db2" # first\nuser = "db2"\n',
    "yaml": "# main\ndb:\n    host: db2  # first\n    tls: on\n    user: db2\nweb: 80\n",
}


def test_keys_of_four_forms_come_true_and_are_undone(site: Site) -> None:
    """Nodes of one layer edit one file one after another; destroy restores it to the byte."""
    planned = site.come_true(resources(site, "db2"))
    assert {node["outcome"] for node in planned.values()} == {"changed"}
    assert {form: site.read(form) for form in FILES} == EDITED
    diff = "".join(change.get("diff", "") for change in planned["yaml host"]["changes"])
    assert "-    host: db1  # first\n+    host: db2  # first\n" in diff
    for form in FILES:
        site.write(form, EDITED[form].replace("db2", "db3", 1).replace("80", "81"))
    planned = site.come_true(resources(site, "db2"))
    assert {node["outcome"] for name, node in planned.items() if name.endswith("host")} == {"changed"}
    site.say("destroy")
    later = {form: text.replace("80", "81") for form, text in FILES.items()}
    assert {form: site.read(form) for form in FILES} == later


def test_undo_keeps_keys_that_others_have_changed(site: Site) -> None:
    site.come_true(resources(site, "db2"))
    site.write("toml", EDITED["toml"].replace('user = "db2"', 'user = "me"'))
    report = site.report("destroy")
    left = [text for layer in report["removals"] for node in layer for text in node.get("leaves", ())]
    assert left == [f"{site.place}/toml: others have changed the key db.user: it stays"]
    assert site.read("toml") == FILES["toml"] + 'user = "me"\n'


def test_secrets_in_keys_are_written_masked_and_undone(site: Site) -> None:
    """Neither the output nor the ledger contains the secret, and undo finds the lines without it."""
    said = [
        site.say(verb, resources(site, '"{{ word }}"', ports=False), *more)
        for verb in ("plan", "apply", "verify")
        for more in ((), ("--json",))
    ]
    assert [site.read(form).count(SECRET) for form in FILES] == [2, 2, 2, 2]
    assert f'    host: "{SECRET}"  # first\n' in site.read("yaml")
    assert {node["outcome"] for node in nodes(site.report("plan")).values()} == {"unchanged"}
    said += [site.say("destroy", f"  - file: {site.place}/other\n    content: x\n")]
    assert SECRET not in "".join(ran.out + ran.err for ran in said)
    assert site.host.run(["grep", "-rl", SECRET, "/var/lib/statecfg"], check=False).stdout == ""
    assert {form: site.read(form) for form in FILES} == FILES
