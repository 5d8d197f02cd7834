"""Problems on a terminal: the line, a mark under the word, and the help."""

from __future__ import annotations

from pathlib import Path

from statecfg.problems import Problem, SourceLocation
from statecfg.views.lines import plain
from statecfg.views.problems import problem_lines


def test_problem_shows_its_line_and_marks_the_word(tmp_path):
    (tmp_path / "web.yml").write_text("resources:\n\t- file: /etc/motd\n\t  moed: x\n")
    wrong = Problem(
        "SC0101",
        "unknown attribute",
        "file has no attribute `moed`",
        "did you mean `mode`?",
        (SourceLocation("web.yml", 3, 4),),
    )
    assert plain(problem_lines([wrong], tmp_path)) == (
        "error[SC0101]: unknown attribute\n"
        "  --> web.yml:3:4\n"
        "    │\n"
        "  3 │       moed: x\n"
        "    │       ^^^^\n"
        "  file has no attribute `moed`\n"
        "  help: did you mean `mode`?\n"
        "\n"
        "1 problem found; no host was changed.\n"
    )


def test_problem_shows_all_places_even_in_missing_files(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    wrong = Problem(
        "SC0110",
        "duplicate name",
        "file:/a twice",
        "",
        (SourceLocation(str(tmp_path / "a.py"), 1), SourceLocation("gone.py", 7)),
    )
    text = plain(problem_lines([wrong], tmp_path))
    assert "--> a.py:1\n" in text
    assert "1 │ x = 1" in text
    assert "and gone.py:7" in text


def test_only_twenty_problems_are_shown_and_the_rest_counted(tmp_path):
    text = plain(problem_lines([Problem("SC0101", "unknown attribute", str(i)) for i in range(45)], tmp_path))
    assert text.count("error[") == 20
    assert "… and 25 more problems" in text
    assert text.endswith("45 problems found; no host was changed.\n")


def test_problem_omits_an_unknown_file_or_line():
    text = plain(problem_lines([Problem("SC0440", "s", "d", "h", (SourceLocation("<unknown>", 0),))], Path("/")))
    assert "-->" not in text
    text = plain(problem_lines([Problem("SC0118", "s", "d", "h", (SourceLocation("/x/site.py", 0),))], Path("/x")))
    assert "  --> site.py\n" in text


def test_long_line_is_shown_around_the_marked_word(tmp_path):
    (tmp_path / "site.py").write_text("x = " + "a" * 200 + " here " + "b" * 200 + "\n")
    text = plain(problem_lines([Problem("SC0001", "s", "d", "h", (SourceLocation("site.py", 1, 206),))], tmp_path))
    source, mark = text.splitlines()[3:5]
    assert max(map(len, (source, mark))) < 80
    assert source[mark.index("^") :][: mark.count("^")] == "here"


def test_positions_in_a_detail_are_relative_to_the_project(tmp_path):
    position = SourceLocation(str(tmp_path / "playbooks/a.yml"), 3, 5)
    wrong = Problem("SC0113", "circular requirements", f"a requires a ({position}), not {tmp_path}/b", "", (position,))
    assert f"\n  a requires a (playbooks/a.yml:3:5), not {tmp_path}/b\n" in plain(problem_lines([wrong], tmp_path))
