"""Roles: parameters, templates, files and node types; where statecfg finds them; and their errors."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg import dialects, include
from statecfg.dialects import fact_names, role_files
from statecfg.playbook import role_path
from statecfg.playbook.plays import HostContext, Vars
from statecfg.problems import InvalidInput, Problem
from statecfg.run import prepare
from statecfg.views import roles as view
from statecfg.views.lines import plain
from tests.each import each

NODE_TYPE = """\
from __future__ import annotations
from statecfg import AbsolutePath, node_type

@node_type
def {name}(path: AbsolutePath) -> None:
    "A {name}."
"""
ROLE = """\
description: A web server.
params:
  root: {type: path, required: true, description: where the sites are}
  port: {type: port, default: 80}
  sites: {type: strings, default: [one]}
  title: {default: "port {{ port }} in {{ zone }}"}
  token: {type: string, secret: true}
vars: {conf: "{{ root }}/conf"}
resources:
  - directory: "{{ root }}"
  - file: "{{ conf }}/{{ item }}"
    template: site.j2
    for_each: sites
  - file: "{{ root }}/static"
    source: static.txt
  - role_banner: "{{ root }}/banner"
  - include: parts/more.yml
    vars: {extra: "{{ title }}"}
"""
CODE = {
    "py": """\
        from statecfg import include
        from statecfg.resources import file

        def role(host):
            yield file(f"/{host.vars.name}", template="name.j2")
            if host.vars.name == "outer":
                yield include("web", root="/inner", token="hunter22")
        """,
    "hy": """\
        (import statecfg [include])
        (import statecfg.resources [file])

        (defn role [host]
          [(file f"/{host.vars.name}" {:template "name.j2"})
           (when (= host.vars.name "outer") (include "web" {:root "/inner" :token "hunter22"}))])
        """,
}
PLAYS = {
    "yml": """\
        hosts: all
        vars: {zone: eu}
        resources:
          - include: web
            vars: {root: /srv, port: 8080, sites: [a, b]}
          - role_banner: /last
            requires: [include:web]
        """,
    "py": """\
        from statecfg import include, play
        from statecfg.resources import role_banner

        @play(hosts="all", vars={"zone": "eu"})
        def web(host):
            web = include("web", root="/srv", port=8080, sites=["a", "b"])
            return [web, role_banner("/last", requires=["include:web"])]
        """,
    "hy": """\
        (require statecfg.dialects.hy [defplay])
        (import statecfg [include])
        (import statecfg.resources [role_banner])

        (defplay web [host] {:hosts "all" :vars {"zone" "eu"}}
          [(include "web" {:root "/srv" :port 8080 :sites ["a" "b"]})
           (role_banner "/last" {:requires ["include:web"]})])
        """,
}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    role = tmp_path / "roles/web"
    put(tmp_path / "inventory.yml", "hosts: [h1]\n")
    put(role / "role.yml", ROLE)
    put(role / "templates/site.j2", "{{ item }} {{ port }} {{ conf }} {{ zone }} {% include 'part.j2' %}")
    put(role / "templates/part.j2", "part of {{ host.name }}")
    put(role / "files/static.txt", "static")
    put(role / "resources/role_banner.py", NODE_TYPE.format(name="role_banner"))
    put(role / "parts/more.yml", '- {file: "{{ root }}/more", template: more.j2}\n')
    put(role / "parts/more.j2", "{{ extra }}")
    return tmp_path


def nodes(project: Path, text: str, suffix: str = "yml") -> dict[str, Any]:
    """Return the nodes of the host by name, in the form that is sent."""
    path = put(project / f"playbooks/site.{suffix}", text)
    (job,) = prepare.playbook(path, prepare.Choice()).jobs
    return {node["provides"]: node for layer in job.definition.layers for node in layer}


def refused(project: Path, text: str, suffix: str = "yml") -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        nodes(project, text, suffix)
    return caught.value.problems


def brief(problems: list[Problem], project: Path) -> list[str]:
    return [f"{item.code} {str(item.locations[0]).removeprefix(f'{project}/')}" for item in problems]


def content(node: Any) -> str:
    text: str = node["attrs"]["content"]["text"]
    return text


@pytest.mark.parametrize("suffix", PLAYS)
def test_role_declares_nodes_with_its_parameters(project: Path, suffix: str) -> None:
    found = nodes(project, PLAYS[suffix], suffix)
    files = {name: content(node) for name, node in found.items() if name.startswith("file:")}
    assert files == {
        "file:/srv/conf/a": "a 8080 /srv/conf eu part of h1",
        "file:/srv/conf/b": "b 8080 /srv/conf eu part of h1",
        "file:/srv/static": "static",
        "file:/srv/more": "port 8080 in eu",
    }
    assert {*found} - {*files} == {"directory:/srv", "role_banner:/srv/banner", "role_banner:/last"}
    assert {*found["role_banner:/last"]["requires"]} == {*found} - {"role_banner:/last"}


@pytest.mark.parametrize("suffix", CODE)
def test_role_in_code_sees_its_parameters_and_includes_roles(project: Path, suffix: str) -> None:
    put(project / "roles/named/role.yml", "params: {name: {type: name, required: true}}\n")
    put(project / f"roles/named/role.{suffix}", CODE[suffix])
    put(project / "roles/named/templates/name.j2", "{{ name }} {{ zone }}")
    text = """\
        hosts: all
        vars: {zone: eu}
        resources:
          - include: named
            vars: {name: "{{ item }}"}
            for_each: [outer, other]
            label: names
          - role_banner: /last
            requires: [loop:names]
        """
    found = nodes(project, text)
    assert content(found["file:/outer"]) == "outer eu" and content(found["file:/other"]) == "other eu"
    assert content(found["file:/inner/conf/one"]) == "one 80 /inner/conf eu part of h1"
    assert {"file:/outer", "file:/other", "file:/inner/more"} <= {*found["role_banner:/last"]["requires"]}


def test_secret_parameter_is_masked(project: Path) -> None:
    put(project / "roles/web/role.yml", ROLE + '  - {file: "{{ root }}/token", content: "t {{ token }}"}\n')
    text = "hosts: all\nvars: {zone: z}\nresources: [{include: web, vars: {root: /srv, token: hunter22}}]\n"
    path = put(project / "site.yml", text)
    work = prepare.playbook(path, prepare.Choice())
    assert work.secrets == {"web.token": "hunter22"}
    (job,) = work.jobs
    (token,) = (n for layer in job.definition.layers for n in layer if n["provides"] == "file:/srv/token")
    assert token["hides"] == ["content"]


def test_mistakes_are_reported_at_once_with_places_and_the_role(project: Path) -> None:
    put(project / "roles/broken/role.yml", "resources:\n  - file: /b\n    contnt: x\n  - {file: /c, template: no.j2}\n")
    problems = refused(
        project,
        """\
        hosts: all
        vars: {zone: eu}
        resources:
          - include: web
            vars: {prot: 8080, port: high}
          - include: wbe
          - include: broken
          - include: web
            vars: {root: relative, token: abc}
        """,
    )
    assert sorted(brief(problems, project)) == [
        "SC0101 roles/broken/role.yml:3:5",
        "SC0118 roles/broken/role.yml:4:6",
        "SC0324 playbooks/site.yml:6:5",
        "SC0326 playbooks/site.yml:4:5",
        "SC0326 playbooks/site.yml:5:12",
        "SC0327 playbooks/site.yml:5:24",
        "SC0327 playbooks/site.yml:9:12",
        "SC0327 playbooks/site.yml:9:28",
    ]
    by_line = {item.locations[0][1:]: item for item in problems if item.code != "SC0327"}
    assert by_line[4, 5].detail == "the role web requires the parameter `root`"
    assert by_line[4, 5].help == "root: where the sites are"
    assert by_line[5, 12].help.startswith("did you mean `port`")
    assert by_line[6, 5].help.startswith("did you mean `web`")
    assert all("the role broken" in item.detail for item in problems if "broken" in item.locations[0].file)
    assert not any("abc" in str(item) for item in problems)


def test_mistakes_in_python_have_the_place_of_the_call(project: Path) -> None:
    text = """\
        from statecfg import include, play

        @play(hosts="all", vars={"zone": "eu"})
        def web(host):
            return [
                include("web", prot=1),
                include("wbe"),
            ]
        """
    assert brief(refused(project, text, "py"), project) == [
        "SC0326 playbooks/site.py:6:9",
        "SC0326 playbooks/site.py:6:9",
        "SC0324 playbooks/site.py:7:9",
    ]


def test_include_outside_a_play_is_an_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        include("web")
    assert [(item.code, item.locations[0].file) for item in caught.value.problems] == [("SC0512", __file__)]


@each(
    ("text", "expected"),
    [
        ("parms: {}\n", "SC0311 1:1 a role has no key `parms`"),
        ("params: {a-b: {}}\n", "SC0308 1:10 `a-b` is not a valid name of a parameter"),
        ("params: {loop: {}}\n", "SC0308 1:10 `loop` is not"),
        ("params: {a: 1}\n", "SC0310 1:13 the parameter `a` must be a map"),
        ("params: {a: {typ: port}}\n", "SC0311 1:14 the parameter `a` has no key `typ`"),
        ("params: {a: {type: prot}}\n", "SC0325 1:14 the parameter `a` of the role bad: unknown type prot"),
        ("params: {a: {required: maybe}}\n", "SC0325 1:14 the parameter `a` of the role bad: `required` must be true"),
        (
            "params: {a: {required: true, default: 1}}\n",
            "SC0325 1:30 the parameter `a` of the role bad: it is required",
        ),
        ("params: {a: {type: port, default: x}}\n", "SC0325 1:26 the parameter `a` of the role bad: the default"),
        ("params: {a: {choices: 1}}\n", "SC0325 1:14 the parameter `a` of the role bad: `choices` must be a list"),
        ("params: {a: {default: 1, choices: [2, 3]}}\n", "SC0325 1:14 the parameter `a` of the role bad: the default"),
        ("params: {a: {}}\nvars: {a: 1}\n", "SC0325 1:10 `a` of the role bad is a parameter and a variable"),
        ("resources: 1\n", "SC0310 1:12 `resources:` must be a list"),
    ],
)
def test_mistake_in_a_definition_has_a_place(project: Path, text: str, expected: str) -> None:
    put(project / "roles/bad/role.yml", text)
    (found,) = refused(project, "hosts: all\nresources: [{include: bad}]\n")
    code, place, start = expected.split(" ", 2)
    assert found.code == code and str(found.locations[0]).endswith(f"roles/bad/role.yml:{place}")
    assert found.detail.startswith(start)


def test_code_without_the_function_is_an_error(project: Path) -> None:
    put(project / "roles/bad/role.py", "def rolle(host): ...\n")
    (found,) = refused(project, "hosts: all\nresources: [{include: bad}]\n")
    assert (found.code, found.detail) == ("SC0325", "role.py defines no function `role`")


def test_choices_and_types_limit_values(project: Path) -> None:
    put(
        project / "roles/few/role.yml",
        "params: {mode: {choices: [fast, slow]}, list: {type: strings}, count: {type: integer}}\n",
    )
    text = "hosts: all\nresources: [{include: few, vars: {mode: slwo, list: [1], count: true}}]\n"
    details = [item.detail for item in refused(project, text)]
    assert len(details) == 3 and "'slwo' is not one of 'fast', 'slow'" in details[0]


def test_values_reach_nodes_as_they_were_written(project: Path) -> None:
    params = "{mode: {type: mode, default: '0640'}, root: {type: path}, list: {type: list, default: [1, {a: '2'}]}}"
    resources = '[{file: "{{ root }}", mode: "{{ mode }}", content: "{{ list | tojson }}"}]'
    put(project / "roles/types/role.yml", f"params: {params}\nresources: {resources}\n")
    found = nodes(project, "hosts: all\nresources: [{include: types, vars: {root: /x}}]\n")["file:/x"]
    assert found["attrs"]["mode"] == 0o640 and content(found) == '[1, {"a": "2"}]'


def test_roles_that_include_each_other_are_an_error(project: Path) -> None:
    put(project / "roles/a/role.yml", "resources: [{include: b}]\n")
    put(project / "roles/b/role.yml", "resources: [{include: a}]\n")
    (found,) = refused(project, "hosts: all\nresources: [{include: a}]\n")
    assert (found.code, found.detail.partition(" (")[0]) == ("SC0317", "a → b → a")


def test_one_role_with_different_results_for_a_file_is_an_error(project: Path) -> None:
    put(project / "roles/one/role.yml", "params: {x: {}}\nresources: [{file: /one, template: x.j2}]\n")
    put(project / "roles/one/templates/x.j2", "{{ x }}")
    text = "hosts: all\nresources: [{{include: one, vars: {{x: 1}}}}, {{include: one, vars: {{x: {} }}}}]\n"
    assert content(nodes(project, text.format(1))["file:/one"]) == "1"
    (found,) = refused(project, text.format(2))
    assert found.code == "SC0110"


def test_a_role_does_not_see_the_variables_of_an_include_or_loop(project: Path) -> None:
    put(project / "roles/blind/role.yml", 'resources: [{file: "/{{ item }}", content: x}]\n')
    (found,) = refused(project, "hosts: all\nresources: [{include: blind, for_each: [a]}]\n")
    assert found.code == "SC0321" and "(in the role blind)" in found.detail


def test_roles_path_comes_after_the_project(project: Path) -> None:
    put(project / "statecfg.toml", 'roles_path = "shared:../other"\n')
    put(project / "shared/web/role.yml", "resources: []\n")
    put(project / "shared/base/role.yml", "resources: [{file: /base, source: base.txt}]\n")
    put(project / "shared/base/files/base.txt", "base")
    found = nodes(project, "hosts: all\nresources: [{include: base}]\n")
    assert content(found["file:/base"]) == "base"
    assert [(item.name, item.origin) for item in role_path.in_directories(str(project))] == [
        ("web", "roles/"),
        ("base", "shared"),
    ]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a directory of installed packages with the package `acme`."""
    folder = tmp_path / "site-packages"
    put(folder / "acme/__init__.py", "raise RuntimeError('must not be imported')\n")
    put(folder / "acme_roles/__init__.py", "raise RuntimeError('must not be imported')\n")
    put(folder / "acme_roles/db/role.yml", "resources: [{file: /db, content: db}, {acme_thing: /x}]\n")
    put(folder / "acme_roles/db/resources/acme_thing.py", NODE_TYPE.format(name="acme_thing"))
    put(folder / "acme_types/acme_other.py", NODE_TYPE.format(name="acme_other"))
    put(folder / "acme-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    points = "[statecfg.roles]\ndb = acme_roles.db\n[statecfg.resources]\nacme = acme_types\n"
    put(folder / "acme-1.2.dist-info/entry_points.txt", points)
    monkeypatch.syspath_prepend(str(folder))
    role_path._points.cache_clear()
    yield folder
    role_path._points.cache_clear()
    for name in [name for name in sys.modules if name.startswith("acme")]:
        del sys.modules[name]


def test_roles_and_node_types_of_installed_packages_are_found(project: Path, packages: Path) -> None:
    found = nodes(project, "hosts: all\nresources: [{include: db}, {acme_other: /o}]\n")
    assert {*found} == {"file:/db", "acme_thing:/x", "acme_other:/o"}
    text = "from statecfg import play\nfrom statecfg.resources import acme_other\n\n"
    text += "@play(hosts='all')\ndef site(host):\n    return acme_other('/o')\n"
    assert {*nodes(project, text, "py")} == {"acme_other:/o"}
    roles = role_files.described(str(project), [])
    assert [(role.name, role.origin) for role in roles] == [("db", "package acme 1.2"), ("web", "roles/")]


def test_facts_of_roles_of_installed_packages_are_found_in_advance(project: Path, packages: Path) -> None:
    put(packages / "acme_roles/db/role.yml", "resources: [{file: /db, template: db.j2}]\n")
    put(packages / "acme_roles/db/templates/db.j2", "{{ host.facts.memory }}")
    put(project / "play.yml", "hosts: all\nresources: [{include: db}]\n")
    assert fact_names.mentioned(str(project / "play.yml"), str(project), ()) == ({"memory"}, False)


def test_wrong_entry_point_names_its_package(project: Path, packages: Path) -> None:
    put(packages / "acme-1.2.dist-info/entry_points.txt", "[statecfg.roles]\ndb = acme_roles\n")
    role_path._points.cache_clear()
    (found,) = refused(project, "hosts: all\nresources: [{include: db}]\n")
    assert found.code == "SC0325" and "package acme 1.2" in found.help


def test_page_of_a_role_has_all_parameters(project: Path) -> None:
    (role,) = role_files.described(str(project), ["web"])
    page = view.page(role)
    assert page.startswith(
        "# web\n\nA web server.\n\n```yaml\nresources:\n  - include: web\n    vars:\n      root: …\n```\n"
    )
    assert "| `root` | path | **required** | where the sites are |\n| `port` | port | `80` | |\n" in page
    assert "| `token` | string, secret | | |\n" in page and '| `sites` | strings | `["one"]` | |\n' in page
    text = plain(view.role_lines(role))
    assert "  port   port, default 80\n" in text and "  token  string, secret, optional\n" in text
    assert "web" in plain(view.table_lines([role])) and "no roles" in plain(view.table_lines([]))


def test_variable_of_the_command_line_that_only_a_role_reads_is_used(project: Path) -> None:
    path = put(project / "site.yml", "hosts: all\nresources: [{include: web, vars: {root: /srv}}]\n")
    choice = prepare.Choice(extra={"zone": "z"}, given=frozenset({"zone"}))
    (job,) = prepare.playbook(path, choice).jobs
    assert "file:/srv/conf/one" in [node["provides"] for layer in job.definition.layers for node in layer]


def test_a_play_can_be_called_without_a_run(project: Path) -> None:
    put(project / "roles/named/role.py", CODE["py"])
    path = put(project / "site.yml", "hosts: all\nvars: {name: x}\nresources: [{include: named}]\n")
    (play,) = dialects.load(path, project)
    variables = play.variables({}, {}, HostContext("h1"))
    host = HostContext("h1", Vars(variables))
    assert [graph.node.provides for graph in play(host)] == ["file:/x"]
