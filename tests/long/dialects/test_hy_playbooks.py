"""Playbooks in Hy: positions, keywords, and messages about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.dialects import brackets, load
from statecfg.graph.graph import Graph
from statecfg.playbook.plays import HostContext, Vars, evaluate
from statecfg.problems import InvalidInput, Problem

HEADER = "(require statecfg.dialects.hy *)\n(import statecfg.resources [directory file symlink])\n"


def built(tmp_path: Path, text: str, **variables: object) -> Graph:
    path = tmp_path / "site.hy"
    path.write_text(HEADER + text)
    (play,) = load(path, tmp_path)
    return evaluate(play, HostContext("web1", Vars({**play.vars, **variables})))


def told(tmp_path: Path, text: str) -> Problem:
    """Return the only problem of a playbook. Its third line is the first line of `text`."""
    with pytest.raises(InvalidInput) as caught:
        built(tmp_path, text)
    (found,) = caught.value.problems
    return found


def where(found: Problem) -> tuple[str, int, int | None]:
    place = found.locations[0]
    return Path(place.file).name, place.line, place.column


def test_nodes_know_their_line_and_column(tmp_path: Path) -> None:
    graph = built(tmp_path, '(defplay site [host] {:hosts "all"}\n  (directory "/srv"))')
    position = graph.node.position
    assert (Path(position.file).name, position.line, position.column) == ("site.hy", 4, 3)


def test_attributes_in_a_map_and_as_keywords_are_the_same(tmp_path: Path) -> None:
    one = built(tmp_path, '(defplay s [host] {:hosts "all"} (file "/a" {:content "x" :mode "0644" :tags [:a]}))')
    two = built(tmp_path, '(defplay s [host] {:hosts "all"} (file "/a" :content "x" :mode "0644" :tags [:a]))')
    assert one.node.attrs == two.node.attrs
    assert one.node.options == two.node.options


def test_keywords_find_names_that_hy_mangles(tmp_path: Path) -> None:
    text = '(setv m {:restart-on 1 :block? 2}) (defplay s [host] {:hosts "all"} '
    text += '(directory f"/{(:restart-on m)}{(:block? m)}{(:site-name host.vars)}"))'
    assert built(tmp_path, text, site_name="x").node.provides == "directory:/12x"


def test_play_may_return_several_nodes(tmp_path: Path) -> None:
    graph = built(tmp_path, '(defplay s [host] {:hosts "all"} (gfor n [1 2 3] (directory f"/{n}")))')
    assert len(graph.nodemap) == 3


def test_play_body_may_import_neighbouring_modules(tmp_path: Path) -> None:
    (tmp_path / "beside.hy").write_text("(setv name :there)")
    graph = built(tmp_path, '(defplay s [host] {:hosts "all"} (import beside [name]) (directory f"/{name}"))')
    assert graph.node.provides == "directory:/there"


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ('(defplay s [host] {:hosts "all"}\n  (directory "/x"', "SC0501", (4, 3), "never closed"),
        (
            '(defplay s [host] {:hosts "all"}\n  (directory "/x")\n\n(setv x 1)',
            "SC0501",
            (3, 1),
            "line 6 starts a new form",
        ),
        ('(directory "/x"))', "SC0501", (3, 17), "has no opening bracket"),
        ('(directory ["/x")', "SC0501", (3, 17), "can't close the ["),
        ('(directory "/x)', "SC0501", (3, 12), "string is never closed"),
        ("(defn f [x]\n  (cond 1))", "SC0502", (4, 3), "even number"),
        ("(defplay s [host] (directory 1))", "SC0502", (3, 19), "needs a map with :hosts"),
        ('(defplay s [host] {:hosts "all"})', "SC0502", (3, 10), "no body"),
        ("(node-type x :argument [a])", "SC0502", (3, 14), "has no part :argument"),
        ("(defop w [#* x] 1)", "SC0502", (3, 11), "write the parameter as a name"),
        ("(defmethod chek-node x [n] [])", "SC0502", (3, 12), "no method chek-node"),
        ("(make-validators (env))", "SC0502", (3, 18), "write a validator as"),
        ("(setv site-file 1)\n(print site-flie)", "SC0503", (4, 8), "the name site-flie is not defined (site_flie"),
        ("(defn f [x] x)\n(f 1 2)", "SC0508", (4, 1), "1 positional argument but 2"),
        ("(defn my-f [x] (/ x 0))\n(my-f 1)", "SC0504", (3, 16), "ZeroDivisionError"),
        ("(import sys)\n(sys.exit 3)", "SC0505", (4, 1), "sys.exit 3"),
        ('(input "name? ")', "SC0505", (3, 1), "asks for input"),
        ("(import nosuch.module)", "SC0506", (3, 1), "No module named 'nosuch'"),
        ("(require nosuch.module [x])", "SC0506", (3, 1), "No module named 'nosuch'"),
        ("(import statecfg.resources [fiel])", "SC0106", (3, 1), "`fiel` is not a node type"),
        ('(defplay s [host] {:hots "all"} None)', "SC0512", (3, 1), "no option hots"),
        ("(defplay s [host] {:vars {}} None)", "SC0512", (3, 1), "no :hosts"),
        ('(defplay s [host] {:hosts "all"} "x")', "SC0109", (3, None), "returned str"),
        ('(defplay s [host] {:hosts "all"}\n (directory "/x") None)', "SC0511", (4, 2), "directory:/x is declared"),
        (
            '(defplay s [host] {:hosts "all"}\n (directory (:prot host.vars)))',
            "SC0514",
            (4, 13),
            "variable prot is not",
        ),
        ("(setv x 1)", "SC0510", (1, None), "defines no play"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    tmp_path: Path, text: str, code: str, place: tuple[int, int | None], words: str
) -> None:
    found = told(tmp_path, text)
    assert (found.code, where(found)) == (code, ("site.hy", *place)), found
    assert words in found.detail
    assert "Traceback" not in str(found)
    assert "hyx_" not in str(found)


def test_first_place_is_the_innermost_line_of_the_user(tmp_path: Path) -> None:
    text = '(defn deep [] (int "x"))\n(defplay s [host] {:hosts "all"}\n  (directory "/x")\n  (deep))'
    found = told(tmp_path, text)
    assert [place.line for place in found.locations] == [3, 6]
    assert "building s for web1, after directory:/x" in found.detail
    assert "statecfg/" not in found.detail


def test_misspelled_name_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    assert "`site-file`" in told(tmp_path, "(setv site-file 1)\n(print site-flie)").help


def test_print_in_a_playbook_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built(tmp_path, '(print "loading") (defplay s [host] {:hosts "all"} None)')
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "loading\n")


@pytest.mark.parametrize("text", ["(a [b] {c})", '"(" ; (', "#[[ ( ]] #[x[ ) ]] ]x]", r'"\")" (a)'])
def test_brackets_in_strings_and_comments_do_not_count(text: str) -> None:
    assert brackets.check(text, "x.hy") is None
