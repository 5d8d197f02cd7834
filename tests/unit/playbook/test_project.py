"""Projects: their root directory and their settings."""

from __future__ import annotations

import pytest

from statecfg import dialects
from statecfg.playbook import project
from statecfg.problems import InvalidInput
from tests.each import each


def test_find_searches_for_the_project_upward(tmp_path):
    deep = tmp_path / "playbooks" / "more"
    deep.mkdir(parents=True)
    (deep / "web.yml").write_text("")
    assert project.find(deep / "web.yml").root == deep
    (tmp_path / "inventory.yml").write_text("hosts: [web1]")
    found = project.find(deep / "web.yml")
    assert (found.root, found.inventory_file, found.resources) == (tmp_path, tmp_path / "inventory.yml", None)
    assert list(dialects.inventory(found).hosts) == ["web1"]
    assert found.relative(deep / "web.yml") == "playbooks/more/web.yml"
    (tmp_path / "resources").mkdir()
    (tmp_path / "statecfg.toml").write_text('inventory = "hosts/all.yml"\nforks = 4\nlock_timeout = 3\n')
    found = project.find(deep)
    assert (found.inventory_file, found.resources) == (tmp_path / "hosts" / "all.yml", tmp_path / "resources")
    assert (found.settings.forks, found.settings.lock_timeout, found.settings.become) == (4, 3.0, None)


def test_parent_of_the_playbooks_directory_is_the_project(tmp_path):
    (tmp_path / "playbooks").mkdir()
    assert project.find(tmp_path / "playbooks" / "web.yml").root == tmp_path
    assert list(dialects.inventory(project.find(tmp_path)).hosts) == []


@each(
    ("text", "code", "place", "words"),
    [
        ("forks = 4\nfork = 4\n", "SC0411", ":2:1", "did you mean `forks`"),
        ("forks = 0\n", "SC0410", ":1:1", "1 to 1000"),
        ("forks = true\n", "SC0410", ":1:1", "1 to 1000"),
        ('become = "yes"\n', "SC0410", ":1:1", "true or false"),
        ("lock_timeout = nan\n", "SC0410", ":1:1", "0 or more"),
        ("a = 1\nb = \n", "SC0410", ":2:5", "quote text"),
        ("[tools]\nx = 1\n", "SC0411", ":1:1", "available"),
    ],
)
def test_read_settings_refuses_mistakes_with_place_and_help(tmp_path, text, code, place, words):
    path = tmp_path / "statecfg.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        project.read_settings(path)
    first = caught.value.problems[0]
    assert (first.code, str(first.locations[0])) == (code, f"{path}{place}")
    assert words in first.help


def test_read_settings_refuses_a_file_writable_by_others(tmp_path):
    path = tmp_path / "statecfg.toml"
    path.write_text("forks = 4\n")
    path.chmod(0o666)
    with pytest.raises(InvalidInput, match="chmod o-w"):
        project.read_settings(path)
    path.chmod(0o644)
    tmp_path.chmod(0o777)
    with pytest.raises(InvalidInput, match="its directory"):
        project.read_settings(path)
    tmp_path.chmod(0o1777)
    assert project.read_settings(path).forks == 4
