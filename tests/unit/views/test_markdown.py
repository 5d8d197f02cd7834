"""The plan as Markdown: folded, escaped, of limited size, and identical for equal plans."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

from statecfg.views import markdown

REPORTS = Path(__file__).parent / "reports"


def plan():
    return json.loads((REPORTS / "plan.json").read_text())


def change(name, diff):
    return {"object": name, "field": "content", "before": "a", "after": "b", "diff": diff}


def node(name, diff="@@ -1 +1 @@\n-a\n+b\n"):
    return {
        "name": f"file:{name}",
        "type": "file",
        "outcome": "changed",
        "changes": [change(name, diff)],
        "actions": [],
    }


def report(nodes, hosts=("web1",)):
    each = {name: {"status": "ok", "layers": [nodes], "summary": {}} for name in hosts}
    return {"format": 1, "run": "r", "mode": "plan", "playbook": "web.yml", "hosts": each}


def test_markdown_begins_with_the_summary_of_the_plan():
    text = markdown.text(plan())
    assert text.startswith("### Plan: 15 to add, 9 to change, 6 to destroy\n")
    assert "a dry run: nothing was changed" in text
    assert "<code>web1, web2, web3</code> (3 hosts)" in text
    assert "known after `package:nginx`" in text
    assert "+    listen 8080;" in text
    assert "could not be reached" in text


def test_markdown_of_the_same_plan_is_identical():
    one, other = plan(), plan()
    other["run"] = "another"
    other["hosts"] = dict(reversed(other["hosts"].items()))
    for host in other["hosts"].values():
        host["peer"] = "192.0.2.1"
    assert markdown.text(one) == markdown.text(other)


def test_markdown_fits_the_limit_and_counts_omitted_resources():
    many = report([node(f"/etc/{i}", "@@ -1 +1 @@\n" + "+line of text\n" * 100) for i in range(300)], ["a", "b"])
    text = markdown.text(many)
    assert len(text) <= markdown.LIMIT
    left = int(re.search(r"Cut at 60,000 characters\*\*: (\d+) resources", text)[1])
    assert left + text.count("**`file:/etc/") == 300
    assert text.count("<details>") == text.count("</details>")


def test_markdown_of_many_hosts_omits_whole_hosts():
    hosts = {f"host{i:05}": {"status": "ok", "layers": [[node(f"/etc/{i}")]], "summary": {}} for i in range(2000)}
    text = markdown.text({**report([]), "hosts": hosts})
    assert len(text) <= markdown.LIMIT
    assert re.search(r"\d+ whole hosts left out", text)


def test_huge_diff_leaves_room_for_other_resources():
    text = markdown.text(report([node("/big", "@@ -1 +1 @@\n" + "+x\n" * 50_000), node("/small")]))
    assert len(text) <= markdown.LIMIT
    assert "more lines left out" in text
    assert "**`file:/small`**" in text


def test_markdown_with_one_huge_line_fits_the_limit():
    assert (
        len(markdown.text(report([node("/big" + "x" * 100_000, "@@ -1 +1 @@\n+" + "y" * 100_000)]))) <= markdown.LIMIT
    )


def test_markdown_keeps_hostile_content_inside_code():
    evil = node("/x</details>`<img src=x>", "@@ -1 +1 @@\n+````\n+</details><script>\n+```\n")
    given = report([evil], ["<b>host`"])
    text = markdown.text(given)
    assert "`````diff" in text
    assert "<code>&lt;b&gt;host`</code>" in text
    outside = re.sub(r"(`{3,})diff\n.*?\n\s*\1", "", text, flags=re.S)
    outside = re.sub(r"(`+).+?\1", "", outside)
    assert "<script" not in outside
    assert "<img" not in outside


def test_markdown_does_not_change_the_report():
    given = plan()
    before = copy.deepcopy(given)
    markdown.text(given)
    assert given == before


def test_markdown_names_each_object_of_a_node_with_several():
    made = {**node("tool-b"), "name": "package:tool-b", "type": "package"}
    made["changes"] = [
        {"object": f"package {name}", "field": "version", "before": None, "after": version}
        for name, version in {"tool-a": "2.0", "tool-b": "1.0"}.items()
    ]
    text = markdown.text(report([made]))
    assert "`package tool-a`\n  - `version` `2.0`\n  - `package tool-b`\n  - `version` `1.0`" in text
    made["changes"] = made["changes"][1:]
    assert "`package tool-b`" not in markdown.text(report([made]))
