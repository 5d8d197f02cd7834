"""The layout of a picture of a graph: layers as columns, few crossings, and long edges around boxes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from statecfg.views import safe
from statecfg.views.drawing import Drawing

BOX_HEIGHT = 40
MARGIN = 24
TITLE = 34
_GAP = 12
_LANE = 10
_BETWEEN = 70
_CHAR = 7.3
_LABEL = 44
_SWEEPS = 6


@dataclass
class Box:
    """A node's box, or (without a `name`) the point where a long edge crosses a column."""

    name: str = ""
    type: str = ""
    label: str = ""
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = _LANE
    order: float = 0


@dataclass
class Edge:
    """A requirement.

    :param through: its boxes and points, from the required node to the requiring one
    :param triggers: whether it is a trigger, which is drawn differently
    :param automatic: whether it is an automatic requirement, which is dotted
    """

    through: list[Box]
    triggers: bool = False
    automatic: bool = False


@dataclass
class Layout:
    """The layout of a graph: title, size, boxes and edges."""

    title: str
    width: float = 0
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def arrange(drawing: Drawing) -> Layout:
    """Return the layout of a drawing in pixels, with its upper left corner at 0, 0."""
    columns, boxes = _boxes(drawing)
    edges = _edges(drawing, columns, boxes)
    _untangle(columns, edges)
    layout = Layout(safe.line(drawing.title), boxes=[box for box, _ in boxes.values()], edges=edges)
    x: float = MARGIN
    for column in columns:
        width = max((box.width for box in column), default=0)
        y: float = TITLE
        for box in column:
            box.x, box.y, box.width = x, y, width
            y += box.height + _GAP
        x += width + _BETWEEN
        layout.height = max(layout.height, y - _GAP + MARGIN)
    _center(columns, layout.height)
    layout.width = max(x - _BETWEEN + MARGIN, 2 * MARGIN + _CHAR * len(layout.title) * 1.2)
    return layout


def _boxes(drawing: Drawing) -> tuple[list[list[Box]], dict[str, tuple[Box, int]]]:
    columns: list[list[Box]] = []
    by_name: dict[str, tuple[Box, int]] = {}
    for number, layer in enumerate(drawing.layers):
        columns.append([])
        for node in layer:
            label = _shortened(safe.line(_argument(node["provides"], node["type"])))
            width = max(len(label), len(node["type"])) * _CHAR + 24
            box = Box(node["provides"], safe.line(node["type"]), label, width=width, height=BOX_HEIGHT)
            columns[-1].append(box)
            by_name[node["provides"]] = box, number
    return columns, by_name


def _argument(name: str, node_type: str) -> str:
    return name.removeprefix(f"{node_type}:") or name


def _shortened(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL // 3]}…{text[-(_LABEL - _LABEL // 3) :]}"


def _edges(drawing: Drawing, columns: list[list[Box]], boxes: dict[str, tuple[Box, int]]) -> list[Edge]:
    edges = []
    for required, name, triggers, reason in drawing.edges():
        (start, first), (end, last) = boxes[required], boxes[name]
        points = [Box() for _ in range(first + 1, last)]
        for number, point in enumerate(points, first + 1):
            columns[number].append(point)
        edges.append(Edge([start, *points, end], triggers, bool(reason)))
    return edges


def _untangle(columns: list[list[Box]], edges: list[Edge]) -> None:
    """Sort each column by the mean position of its neighbors, in alternating directions, for fewer crossings.

    Source: Sugiyama's method.
    """
    before: dict[int, list[Box]] = {}
    after: dict[int, list[Box]] = {}
    for edge in edges:
        for left, right in pairwise(edge.through):
            before.setdefault(id(right), []).append(left)
            after.setdefault(id(left), []).append(right)
    for column in columns:
        _number(column)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        near = before if forth else after
        for column in columns if forth else reversed(columns):
            for box in column:
                others = near.get(id(box))
                box.order = sum(other.order for other in others) / len(others) if others else box.order
            column.sort(key=lambda box: box.order)
            _number(column)


def _number(column: list[Box]) -> None:
    # Positions range from 0 to 1, so that columns of different length can be compared.
    for index, box in enumerate(column):
        box.order = (index + 0.5) / len(column)


def _center(columns: list[list[Box]], height: float) -> None:
    for column in columns:
        if column:
            shift = (height - MARGIN - (column[-1].y + column[-1].height)) / 2
            for box in column:
                box.y += shift


def color_of(node_type: str) -> tuple[str, str]:
    """Return the colors (fill, edge) of a node type. They are the same in every picture."""
    return _PALETTE[sum(map(ord, node_type)) % len(_PALETTE)]


_PALETTE = (
    ("#ddf4ff", "#54aeff"),
    ("#dafbe1", "#4ac26b"),
    ("#fff8c5", "#d4a72c"),
    ("#ffeff7", "#ff80c8"),
    ("#fbefff", "#c297ff"),
    ("#fff1e5", "#fb8f44"),
    ("#ffebe9", "#ff8182"),
    ("#e6f9f7", "#3cb8ab"),
)
INK, FAINT, TRIGGER, PAPER = "#1f2328", "#8c959f", "#bf8700", "#ffffff"
