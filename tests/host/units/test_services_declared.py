"""Services and relations in playbooks: the three dialects agree, and every mistake is reported at its place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from statecfg import dialects
from statecfg.playbook.services import OPTIONS, ServiceOption
from statecfg.problems import InvalidInput, Problem
from statecfg.run import prepare
from statecfg.run.prepare import Choice, Work
from tests import ROOT
from tests.host.command import statecfg
from tests.unit.run.test_charms import write as program

INVENTORY = """\
hosts: [db1, db2, web1]
groups: {db: {hosts: [db1, db2], vars: {zone: eu}}, web: {hosts: [web1]}}
"""

YAML = """\
- service: db
  hosts: db
  prune: true
  vars: {name: Blog, password: !secret {env: STATECFG_TEST_DB}}
  charm: ../charms/db
  schema:
    title: {type: string, default: My Title, description: What the page says}
    login: {type: secret}
    share: {type: float}
  settings: {title: "{{ name }} 1", login: "{{ password }}", share: 2, port: 81}
  timeout: PT1M30S
  resources:
    - file: /srv/{{ host.name }}
      content: a
- service: web
  hosts: web
- relations:
    - [web:db, db:db]
"""
PYTHON = """\
from statecfg import deploy, relate, secret
from statecfg.resources import file

PASSWORD = secret("STATECFG_TEST_DB", env="STATECFG_TEST_DB")

@deploy(
    hosts="db",
    prune=True,
    vars={"name": "Blog"},
    charm="../charms/db",
    schema={
        "title": {"type": "string", "default": "My Title", "description": "What the page says"},
        "login": {"type": "secret"},
        "share": {"type": "float"},
    },
    settings={"title": "Blog 1", "login": PASSWORD, "share": 2, "port": 81},
    timeout="PT1M30S",
)
def db(host):
    return file(f"/srv/{host.name}", content="a")

@deploy(hosts="web", name="web")
def site():
    pass

relate("web:db", "db:db")
"""
HY = """\
(require statecfg.dialects.hy [defservice])
(import statecfg [relate secret] statecfg.resources [file])

(defservice db "A database." [host]
  {:hosts "db" :prune True :vars {"name" "Blog"} :charm "../charms/db"
   :schema {:title {:type "string" :default "My Title" :description "What the page says"}
            :login {:type "secret"} "share" {"type" "float"}}
   :settings {:title "Blog 1" :login (secret "STATECFG_TEST_DB" :env "STATECFG_TEST_DB") :share 2 :port 81}
   :timeout "PT1M30S"}
  (file f"/srv/{host.name}" {:content "a"}))

(defservice web [] {:hosts "web"})

(relate "web:db" "db:db")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("STATECFG_TEST_DB", "hunter2000")
    tmp_path.chmod(0o755)
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "playbooks").mkdir()
    program(tmp_path / "charms/db/hooks/install")
    program(
        tmp_path / "charms/db/metadata.yaml",
        "name: pg\nprovides: {db: sql, admin: sql}\npeers: {ring: gossip}\n",
        0o644,
    )
    program(
        tmp_path / "charms/db/config.yaml",
        "options:\n  port: {type: int, default: 5432}\n  title: {type: int}\n",
        0o644,
    )
    program(tmp_path / "charms/web/metadata.yaml", "requires: {db: sql, cache: redis}\n", 0o644)
    program(tmp_path / "charms/web/start")
    return tmp_path


def prepared(project: Path, text: str, suffix: str = "yml", **choice) -> Work:
    path = project / f"playbooks/play.{suffix}"
    path.write_text(textwrap.dedent(text))
    return prepare.playbook(path, Choice(**choice))


def refused(project: Path, text: str, suffix: str = "yml", **choice) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        prepared(project, text, suffix, **choice)
    return caught.value.problems


def brief(found: list[Problem]) -> list[str]:
    return [f"{item.code} {item.locations[0].line}" for item in found]


@pytest.mark.parametrize(("text", "suffix"), [(YAML, "yml"), (PYTHON, "py"), (HY, "hy")])
def test_the_three_dialects_declare_the_same_services(project, text, suffix):
    work = prepared(project, text, suffix)
    db, web = work.services
    assert (db.service.name, db.hosts, db.timeout, db.service.hosts) == ("db", ("db1", "db2"), 90.0, "db")
    assert db.service.charm == project / "charms/db"
    assert db.charm.name == "pg" and db.charm.hooks == ("install",)
    assert db.schema == {
        "port": {"type": "int", "default": 5432, "description": ""},
        "title": {"type": "string", "default": "My Title", "description": "What the page says"},
        "login": {"type": "secret", "default": None, "description": ""},
        "share": {"type": "float", "default": None, "description": ""},
    }
    assert db.settings == {"title": "Blog 1", "share": 2.0, "port": 81}
    assert isinstance(db.settings["share"], float)
    assert db.secrets == {"login": "hunter2000"}
    assert work.secrets == {"STATECFG_TEST_DB": "hunter2000"}
    assert (web.service.name, web.hosts, web.charm, web.settings, web.timeout) == ("web", ("web1",), None, {}, 600.0)
    assert [str(each) for each in work.relations] == ["web:db – db:db", "db:ring"]
    assert [(job.host.name, len(job.definition.layers), job.prune) for job in work.jobs] == [
        ("db1", 1, True),
        ("db2", 1, True),
        ("web1", 0, False),
    ]
    assert "hunter2000" not in repr(work)


def test_a_limit_removes_jobs_but_no_units(project):
    work = prepared(project, YAML, limit="db2")
    assert [job.host.name for job in work.jobs] == ["db2"]
    assert [each.hosts for each in work.services] == [("db1", "db2"), ("web1",)]
    assert len(work.relations) == 2


def test_command_line_variables_win_in_templates_of_settings(project):
    text = "{service: db, hosts: db1, vars: {a: x}, schema: {t: {}}, settings: {t: '{{ a }}'}}"
    assert prepared(project, text).services[0].settings == {"t": "x"}
    assert prepared(project, text, extra={"a": "y"}).services[0].settings == {"t": "y"}


def test_settings_that_depend_on_the_host_are_refused(project):
    text = """\
        service: db
        hosts: db1
        vars: {where: "{{ host.name }}", far: "{{ zone }}", near: "{{ where }}!"}
        schema: {title: {}}
        settings:
          title: "at {{ near }}"
        resources: [{file: "/srv/{{ near }}{{ far }}"}]
    """
    (found,) = refused(project, text)
    assert (found.code, found.locations[0].line) == ("SC0321", 6)
    assert "near" in found.detail


def test_a_playbook_without_services_has_none(project):
    work = prepared(project, "{hosts: web, resources: []}")
    assert (work.services, work.relations) == ((), ())


# Settings


def test_a_number_outside_the_float_range_is_refused():
    """Such numbers come from Python. YAML has none."""
    option = ServiceOption("share", "float")
    assert option.check(10**300) == 1e300
    for value in (10**400, -(10**400), float("inf"), float("nan")):
        with pytest.raises(ValueError, match="it must be a number"):
            option.check(value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["x", '""', "'3'"], ["3", "true", "[a]", "{a: b}", "2.5"]),
        ("int", ["3", "-9223372036854775808"], ["'3'", "true", "2.5", "null"]),
        ("float", ["3", "2.5"], ["'3'", "true", "x"]),
        ("boolean", ["true", "false"], ["'true'", "1"]),
    ],
)
def test_settings_are_checked_against_their_type(project, kind, good, bad):
    for value in good:
        text = f"service: db\nhosts: db1\nschema: {{a: {{type: {kind}}}}}\nsettings:\n  a: {value}\n"
        assert prepared(project, text).services[0].settings["a"] is not None
        assert (
            prepared(project, text.replace("{type", f"{{default: {value}, type").replace("\n  a: ", "\n  a: "))
            is not None
        )
    for value in bad:
        text = f"service: db\nhosts: db1\nschema: {{a: {{type: {kind}}}}}\nsettings:\n  a: {value}\n"
        (found,) = refused(project, text)
        assert (found.code, found.locations[0][1:]) == ("SC0709", (5, 3)), value
        if value != "null":
            text = f"service: db\nhosts: db1\nschema: {{a: {{type: {kind}, default: {value}}}}}\n"
            assert brief(refused(project, text)) == ["SC0707 3"]


def test_an_unknown_setting_gets_a_suggestion(project):
    text = "service: db\nhosts: db1\ncharm: ../charms/db\nsettings:\n  prot: 81\n"
    (found,) = refused(project, text)
    assert (found.code, found.locations[0].line) == ("SC0708", 5)
    assert found.help == "did you mean `port`? (also valid: title)"


def test_a_setting_without_a_schema_is_refused(project):
    (found,) = refused(project, "{service: db, hosts: db1, settings: {a: b}}")
    assert found.code == "SC0708" and "schema:" in found.help


def test_secrets_are_accepted_only_in_secret_settings(project):
    text = """\
        service: db
        hosts: db1
        vars: {password: !secret {env: STATECFG_TEST_DB}}
        schema: {open: {}, shut: {type: secret}, url: {type: secret}}
        settings:
          open: "{{ password }}"
          shut: plain
    """
    found = refused(project, text)
    assert brief(found) == ["SC0710 6", "SC0710 7"]
    assert "hunter2000" not in str(found)
    assert brief(refused(project, text.replace("{{ password }}", "x{{ password }}y"))) == ["SC0710 6", "SC0710 7"]
    text = text.replace('open: "{{ password }}"', 'url: "sql://{{ password }}@db"').replace("plain", "'{{ password }}'")
    work = prepared(project, text)
    assert work.services[0].secrets == {"url": "sql://hunter2000@db", "shut": "hunter2000"}
    assert work.services[0].settings == {}
    assert work.secrets["url"] == "sql://hunter2000@db"


def test_a_secret_setting_may_not_have_a_default(project):
    assert brief(refused(project, "service: db\nhosts: db1\nschema: {a: {type: secret, default: x}}\n")) == ["SC0710 3"]


def test_validation_does_not_need_the_secrets(project, monkeypatch):
    monkeypatch.delenv("STATECFG_TEST_DB")
    (project / "playbooks/play.yml").write_text(YAML)
    work = prepare.offline(project / "playbooks/play.yml", Choice())
    assert work.missing == ("STATECFG_TEST_DB",)
    assert brief(refused(project, YAML)) == ["SC0420 4"]


def test_settings_too_long_for_a_hook_are_refused(project):
    text = "service: db\nhosts: db1\nschema: {a: {}}\nsettings: {a: %s}\n"
    assert prepared(project, text % ("x" * 64_900)).services
    assert brief(refused(project, text % ("x" * 65_000))) == ["SC0709 4"]


# Mistakes


def test_all_mistakes_are_reported_at_once(project):
    text = """\
        - service: db-1
          hosts: db
        - service: web
          hosts: web
          charm: ../charms/nosuch
          timeout: soon
          schema:
            a: {tipe: string}
            b: {type: strin}
            c: 3
        - service: pg
          hosts: nosuch
          charm: ../charms/db
          settings: {prot: 1}
          sittings: {}
        - relations:
            - [wob:db, pg:db]
            - [web:db, pg:dv]
            - [web:db, pg:dv]
            - [web]
            - [web:db, pg:db, web:x]
            - web:db
            - [pg:admin, pg:db]
        - service: pg
          hosts: db
    """
    found = refused(project, text)
    assert brief(found) == [
        "SC0701 1", "SC0703 5", "SC0605 6", "SC0707 8", "SC0707 9", "SC0707 10", "SC0406 12", "SC0708 14", "SC0311 15",
        "SC0712 17", "SC0713 18", "SC0713 19", "SC0715 19", "SC0711 20", "SC0711 21", "SC0711 22", "SC0711 23",
        "SC0702 24",
    ]  # fmt: skip


CASES = {
    "an unknown service": ("[wob:db, db:db]", "SC0712", "did you mean `web`? (also valid: db)"),
    "an unknown end": ("[web:dv, db:db]", "SC0713", "did you mean `db`? (also valid: cache)"),
    "different interfaces": ("[web:cache, db:db]", "SC0714", "relate ends that have the same interface"),
    "two ends that provide": ("[db2:admin, db:db]", "SC0714", "one of them must provide what the other requires"),
    "a peer relation with two ends": ("[web:db, db:ring]", "SC0714", "write [db:ring] alone"),
    "a single end that is no peer relation": ("[db:db]", "SC0714", "write two ends: one provides, the other requires"),
    "two ends of one service": ("[db:admin, db:db]", "SC0711", "write a peer relation with one end"),
    "an empty list of ends": ("[]", "SC0711", "write two ends, or one end of a service whose units are peers"),
    "an end without a name": ("['web:', db:db]", "SC0711", "write SERVICE:RELATION, such as web:db"),
    "a number as an end": ("[3, db:db]", "SC0711", "write SERVICE:RELATION, such as web:db"),
}


@pytest.mark.parametrize("case", CASES)
def test_invalid_relations_are_refused_with_a_hint(project, case):
    relation, code, hint = CASES[case]
    text = f"""\
        - {{service: web, hosts: web, charm: ../charms/web}}
        - {{service: db, hosts: db, charm: ../charms/db}}
        - {{service: db2, hosts: db, charm: ../charms/db}}
        - relations:
            - {relation}
    """.replace("- {service: db2", "- {service: db2" if case == "two ends that provide" else "# {")
    (found,) = refused(project, text)
    assert (found.code, found.locations[0].line) == (code, 5)
    assert found.help == hint


@pytest.mark.parametrize(
    "relation", ["[web:db, db:db]", "[db:db, web:db]", "[db:ring]", "[db:ring, db:ring]", "[web:juju-info, x:info]"]
)
def test_valid_relations_are_accepted(project, relation):
    text = f"""\
        - {{service: web, hosts: web, charm: ../charms/web}}
        - {{service: db, hosts: db, charm: ../charms/db}}
        - {{service: x, hosts: db}}
        - relations: [{relation}]
    """
    work = prepared(project, text)
    assert {str(each) for each in work.relations} >= {"db:ring"}
    assert len(work.relations) == (1 if "ring" in relation else 2)


def test_a_relation_repeated_in_another_order_is_refused(project):
    text = (
        "- {service: web, hosts: web}\n- {service: db, hosts: db}\n- relations:\n  - [web:a, db:b]\n  - [db:b, web:a]\n"
    )
    (found,) = refused(project, text)
    assert (found.code, [place.line for place in found.locations]) == ("SC0715", [5, 4])


def test_relations_without_services_are_refused(project):
    assert brief(refused(project, "- relations: [[web:db, db:db]]")) == ["SC0510 1"]
    found = refused(project, "- {hosts: web}\n- relations: [[web:db, db:db]]\n")
    assert [item.code for item in found] == ["SC0712", "SC0712"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("service: db", ["SC0310 1"]),
        ("service: 3\nhosts: db1", ["SC0310 1"]),
        ("service: db\nhosts: db1\nname: x", ["SC0311 3"]),
        ("service: db\nhosts: db1\nsettings: [a]", ["SC0716 3"]),
        ("service: db\nhosts: db1\nschema: x", ["SC0716 3"]),
        ("service: db\nhosts: db1\nschema: {a: {type: string, default: 0755}}\nsettings: {a: b}", ["SC0309 3"]),
        ("service: db\nhosts: db1\nschema: {a: {}}\nsettings: {a: 1:30}", ["SC0309 4"]),
        ("service: db\nhosts: db1\ntimeout: 60", ["SC0605 3"]),
        ("service: db\nhosts: db1\ntimeout: PT0S", ["SC0605 3"]),
        ("service: db\nhosts: db1\ntimeout: P2D", ["SC0605 3"]),
        ("service: db\nhosts: db1\ncharm: ''", ["SC0716 3"]),
        ("- {service: db, hosts: db1}\n- relations: 3", ["SC0310 2"]),
        ("- {service: db, hosts: db1}\n- relations: []\n  hosts: web", ["SC0311 3"]),
        ("- {service: db}\n- relations: [[db:a, db:b]]", ["SC0310 1"]),
    ],
)
def test_values_of_the_wrong_shape_are_refused(project, text, expected):
    assert brief(refused(project, text)) == expected


@pytest.mark.parametrize(
    ("text", "meant"), [("- sevice: db\n  hosts: db1", "service"), ("- relation: []", "relations")]
)
def test_a_misspelled_service_or_relations_key_gets_a_suggestion(project, text, meant):
    assert f"did you mean `{meant}`?" in refused(project, text)[0].help


@pytest.mark.parametrize("name", ["Db", "db-1", "1db", "db_x", "-db", "db-", "d/0", "a" * 101])
def test_invalid_service_names_are_refused(project, name):
    assert brief(refused(project, f"service: '{name}'\nhosts: db1\n")) == ["SC0701 1"]


@pytest.mark.parametrize("name", ["db", "a", "my-db", "db2", "db-2a", "a" * 100])
def test_valid_service_names_are_accepted(project, name):
    assert prepared(project, f"service: {name}\nhosts: db1\n").services[0].service.name == name


def test_mistakes_in_python_point_to_the_declaration(project):
    text = """\
        from statecfg import deploy, relate

        @deploy(hosts="db1", charm=3, schema=[], settings="x", timeout=5, playbook="")
        def db():
            return None

        relate("wob:db", "db:db")
        relate()
    """
    # All of these are reported together, as the program can continue after each.
    assert sorted(brief(refused(project, text, "py"))) == [
        "SC0605 3", "SC0711 8", "SC0712 7", "SC0716 3", "SC0716 3", "SC0716 3", "SC0716 3",
    ]  # fmt: skip


ODD = (
    "3",
    "b'x'",
    "object()",
    "[]",
    "[[3]]",
    "{}",
    "{3: 4}",
    "{'': None}",
    "''",
    "True",
    "'\\0'",
    "print",
    "float('nan')",
)


@pytest.mark.parametrize("part", ["hosts", *(each for each in OPTIONS if each != "hosts")])
def test_unusual_values_never_cause_an_internal_error(project, part):
    for value in ODD:
        given = {"hosts": '"db1"', "schema": "{'a': {}}", part: value}
        text = f"from statecfg import deploy\n\n@deploy({', '.join(f'{key}={item}' for key, item in given.items())})\n"
        path = project / "playbooks/play.py"
        path.write_text(text + "def db():\n    pass\n")
        try:
            work = prepare.playbook(path, Choice())
        except InvalidInput as wrong:
            assert all(item.locations for item in wrong.problems), (part, value)
        else:
            assert work.services[0].service.name == "db", (part, value)


def test_mistakes_in_hy_are_refused(project):
    head = "(require statecfg.dialects.hy [defservice])\n"
    assert brief(refused(project, head + '(defservice db [] {:hots "db1"})', "hy")) == ["SC0512 2", "SC0512 2"]
    for wrong in ('"db" [] {}', "db", "db {}", "db [host]", "db [host] body"):
        assert brief(refused(project, head + f"(defservice {wrong})", "hy")) == ["SC0502 2"], wrong
    found = refused(project, '(defservice db [] {:hosts "db1"})', "hy")
    assert "(require statecfg.dialects.hy [defservice])" in found[0].help


# Plays of another playbook

OTHER = """\
- hosts: nobody
  vars: {who: other, twice: "{{ who }} {{ who }}"}
  resources:
    - file: /srv/{{ host.name }}
      content: "{{ who }}, {{ twice }}, {{ zone | default('none') }}"
- hosts: all
  name: second
  prune: true
  resources: [{file: /srv/second, content: x}]
"""


def contents(work: Work) -> dict[str, dict[str, str]]:
    """Return the contents of files by host and path."""
    return {
        job.host.name: {
            node["attrs"]["path"]: node["attrs"]["content"]["text"] for layer in job.definition.layers for node in layer
        }
        for job in work.jobs
    }


def test_a_service_can_include_the_plays_of_another_playbook(project):
    (project / "playbooks/parts").mkdir()
    (project / "playbooks/parts/other.yml").write_text(OTHER)
    text = "service: db\nhosts: db2\nplaybook: parts/other.yml\nresources: [{file: /srv/own, content: own}]\n"
    work = prepared(project, text)
    shared = {"/srv/own": "own", "/srv/second": "x"}
    assert contents(work) == {"db2": {**shared, "/srv/db2": "other, other other, eu"}}
    assert [job.prune for job in work.jobs] == [True]
    # Variables of the service win over those of the playbook, and command line variables win over both.
    mine = text + "vars: {who: mine}\n"
    assert contents(prepared(project, mine))["db2"]["/srv/db2"] == "mine, mine mine, eu"
    assert contents(prepared(project, mine, extra={"who": "you"}))["db2"]["/srv/db2"] == "you, you you, eu"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("py", 'from statecfg import deploy\n\n@deploy(hosts="web1", playbook="other.yml")\ndef web():\n    pass\n'),
        (
            "hy",
            '(require statecfg.dialects.hy [defservice])\n(defservice web [] {:hosts "web1" :playbook "other.yml"})\n',
        ),
    ],
)
def test_services_in_other_dialects_can_include_a_playbook(project, suffix, text):
    (project / "playbooks/other.yml").write_text(OTHER)
    work = prepared(project, text, suffix)
    assert contents(work) == {"web1": {"/srv/web1": "other, other other, none", "/srv/second": "x"}}


def test_a_service_can_include_a_playbook_of_another_dialect(project):
    (project / "playbooks/other.py").write_text(
        "from statecfg import play\nfrom statecfg.resources import file\n\n"
        "@play(hosts='nobody', vars={'who': 'other'})\ndef it(host):\n"
        "    return file('/srv/x', content=host.vars.who)\n"
    )
    text = "service: db\nhosts: db2\nplaybook: other.py\nvars: {who: '{{ host.name }}'}\n"
    assert contents(prepared(project, text)) == {"db2": {"/srv/x": "db2"}}


def test_playbooks_that_cannot_be_included_are_refused(project):
    text = "service: db\nhosts: db1\nplaybook: %s\n"
    assert brief(refused(project, text % "play.yml")) == ["SC0317 3"]
    assert brief(refused(project, text % "nosuch.yml")) == ["SC0118 3"]
    assert brief(refused(project, text % "3")) == ["SC0716 3"]
    (project / "playbooks/other.txt").write_text("")
    assert [item.code for item in refused(project, text % "other.txt")] == ["SC0515"]
    (project / "playbooks/other.yml").write_text("- {service: web, hosts: web}\n- relations: [[web:a, web:b]]\n")
    (found,) = refused(project, text % "other.yml")
    assert (found.code, [f"{Path(place.file).name}:{place.line}" for place in found.locations]) == (
        "SC0716",
        ["play.yml:3", "other.yml:1", "other.yml:2"],
    )
    (project / "playbooks/other.yml").write_text("hosts: web\nresources:\n  - pakage: x\n")
    (found,) = refused(project, text % "other.yml")
    assert (found.code, Path(found.locations[0].file).name) == ("SC0106", "other.yml")


# The command line


def test_validate_counts_resources_services_and_relations(project):
    (project / "playbooks/play.yml").write_text(YAML)
    answer = statecfg("validate", "playbooks/play.yml", cwd=project)
    assert answer.out == "✓ playbooks/play.yml: 2 resources on 3 hosts, 2 services, 2 relations, no problems found\n"


def test_the_example_playbook_is_valid(tmp_path):
    (tmp_path / "hosts.yml").write_text("hosts: [db1, web1]\ngroups: {db: {hosts: [db1]}, web: {hosts: [web1]}}\n")
    work = prepare.playbook(ROOT / "playbooks/services.yml", Choice(inventory=tmp_path / "hosts.yml"))
    db, web = work.services
    assert db.settings == {"port": 5433}
    assert web.settings == {"directory": "/srv/site-config", "greeting": "Good evening"}
    assert [str(each) for each in work.relations] == ["web:database – db:db"]


def test_the_graph_shows_hosts_without_resources(project):
    (project / "playbooks/play.yml").write_text(YAML)
    answer = statecfg("graph", "playbooks/play.yml", cwd=project)
    assert "── web1" in answer.out and "file:/srv/db1" in answer.out


def test_a_playbook_is_read_only_once(project):
    """This also holds if hooks reshape the graphs, because a playbook in Python may have side effects."""
    path = project / "playbooks/play.py"
    path.write_text(PYTHON + f"\nwith open({str(project / 'reads')!r}, 'a') as stream:\n    stream.write('x')\n")

    class Unchanged:
        unsure = ()

        def concerns(self, host):
            return ("a hook",)

        def reshape(self, host, playbook, graph, variables, secrets):
            return graph

    prepare.playbook(path, Choice(), Unchanged())
    assert (project / "reads").read_text() == "x"


def test_load_returns_only_the_plays(project):
    path = project / "playbooks/play.yml"
    path.write_text(YAML)
    assert [(each.name, each.service is not None) for each in dialects.load(path)] == [("db", True), ("web", True)]
