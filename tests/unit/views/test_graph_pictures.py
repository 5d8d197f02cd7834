"""Pictures of graphs: they show all nodes and requirements, nothing overlaps, and equal graphs appear only once."""

from __future__ import annotations

import io
import itertools
import random
import xml.etree.ElementTree as ET

from statecfg.views import layout, pictures
from statecfg.views.drawing import Drawing, fold
from statecfg.views.lines import plain
from tests.each import each

SVG = "{http://www.w3.org/2000/svg}"


def node(name, *requires, triggers=()):
    return {
        "provides": name, "type": name.partition(":")[0], "requires": list(requires), "triggers": list(triggers),
        "position": "web.hy:3",
    }  # fmt: skip


LAYERS = [
    [node("package:nginx"), node("user:deploy")],
    [node("file:/etc/nginx.conf", "package:nginx")],
    [node("service:nginx", "package:nginx", "file:/etc/nginx.conf", triggers=["file:/etc/nginx.conf"])],
]


def random_layers(seed):
    rng = random.Random(seed)
    layers, names = [], []
    for depth in range(rng.randint(1, 6)):
        layer = [
            node(
                f"file:/{depth}/{i}/" + "x" * rng.randint(0, 60), *rng.sample(names, min(len(names), rng.randint(0, 4)))
            )
            for i in range(rng.randint(1, 8))
        ]
        layers.append(layer)
        names += [each["provides"] for each in layer]
    return layers


def test_hosts_with_the_same_graph_are_drawn_once():
    drawings = fold([("web1", LAYERS), ("db", [LAYERS[0]]), ("web2", LAYERS)])
    assert [drawing.hosts for drawing in drawings] == [["web1", "web2"], ["db"]]


def test_text_shows_layers_requirements_and_triggers():
    text = plain(pictures.text_lines(fold([("web1", LAYERS)])))
    assert "  layer 3\n    service:nginx  (web.hy:3)\n      ← package:nginx\n      ↻ file:/etc/nginx.conf\n" in text
    assert "4 resources in 3 layers" in text


def test_every_picture_marks_automatic_requirements():
    automatic = {"file:/etc/nginx.conf": {"package:nginx": "its package"}}
    drawings = fold([("web1", LAYERS), ("web2", LAYERS)], {"web1": automatic})
    assert [drawing.hosts for drawing in drawings] == [["web1"], ["web2"]]
    text = plain(pictures.text_lines(drawings[:1]))
    assert "      ⇠ package:nginx  automatic: its package\n" in text
    assert "[style=dotted]" in pictures.dot(drawings) and pictures.dot(drawings).count("dotted") == 1
    assert pictures.mermaid(drawings).count("-. automatic .->") == 1
    assert pictures.draw("svg", drawings).decode().count('stroke-dasharray="1.5 3"') == 1


def test_text_shows_all_declarations_of_a_node():
    layers = [[{**node("package:nginx"), "also": ["db.hy:4", "db.hy:9"]}]]
    text = plain(pictures.text_lines(fold([("web1", layers)])))
    assert "    package:nginx  (web.hy:3)\n      also declared  (db.hy:4)\n      also declared  (db.hy:9)\n" in text


def test_svg_contains_every_node_and_edge():
    drawing = fold([("web1", LAYERS)])
    root = ET.fromstring(pictures.draw("svg", drawing).decode())  # our text
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert sorted(titles) == sorted(n["provides"] for layer in LAYERS for n in layer)
    edges = [element for element in root.iter(f"{SVG}path") if "marker-end" in element.attrib]
    assert len(edges) == 3
    assert sum("stroke-dasharray" in edge.attrib for edge in edges) == 1


def test_svg_is_the_same_for_the_same_graph():
    assert pictures.draw("svg", fold([("a", LAYERS)])) == pictures.draw("svg", fold([("a", LAYERS)]))


@each("seed", range(30))
def test_boxes_never_overlap_and_edges_go_forward(seed):
    placed = layout.arrange(Drawing(["h"], random_layers(seed)))
    for one, other in itertools.combinations(placed.boxes, 2):
        apart = (
            one.x + one.width <= other.x or other.x + other.width <= one.x
            or one.y + one.height <= other.y or other.y + other.height <= one.y
        )  # fmt: skip
        assert apart, (one, other)
    for box in placed.boxes:
        assert box.x >= 0
        assert box.x + box.width <= placed.width
        assert box.y >= 0
        assert box.y + box.height <= placed.height
    for edge in placed.edges:
        for left, right in itertools.pairwise(edge.through):
            assert left.x + left.width < right.x


def test_png_has_the_size_of_the_layout():
    from PIL import Image

    data = pictures.draw("png", fold([("web1", LAYERS)]))
    image = Image.open(io.BytesIO(data))
    placed = layout.arrange(Drawing(["web1"], LAYERS))
    assert image.format == "PNG"
    assert image.size == (round(placed.width * 2), round(placed.height * 2))
    assert len(image.getcolors(1_000_000)) > 20


def test_dot_and_mermaid_name_every_edge():
    drawings = fold([("web1", LAYERS)])
    dot = pictures.draw("dot", drawings).decode()
    assert '"0/package:nginx" -> "0/service:nginx";' in dot
    assert '"0/file:/etc/nginx.conf" -> "0/service:nginx" [color="#bf8700", style=dashed];' in dot
    mermaid = pictures.draw("mermaid", drawings).decode()
    assert 'g0n2["file:/etc/nginx.conf"]' in mermaid
    assert "g0n2 -.-> g0n3" in mermaid
    assert "g0n0 --> g0n3" in mermaid


def test_pictures_escape_hostile_names():
    drawings = fold([("h", [[node('file:/a"]; b\\N<script>')]])])
    assert 'label="file:/a\\"]; b\\\\N<script>"' in pictures.draw("dot", drawings).decode()
    assert "<script>" not in pictures.draw("svg", drawings).decode()
    assert '"]' not in pictures.draw("mermaid", drawings).decode().split("\n")[2].removesuffix('"]')
