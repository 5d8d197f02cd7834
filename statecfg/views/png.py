"""Graphs as PNG, for programs that can't show SVG. Needs Pillow, which the extra "png" installs."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, problem
from statecfg.problems.positions import NOWHERE
from statecfg.views import layout
from statecfg.views.drawing import Drawing
from statecfg.views.layout import Box, Edge, Layout

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

# Twice the size of the SVG, so that the picture is sharp on screens with high resolution.
_SCALE = 2
_STEPS = 24
_LARGEST = 16_000


def draw(drawings: Sequence[Drawing]) -> bytes:
    """Return all drawings in one picture, below each other.

    :raises InvalidInput: if Pillow is missing or the picture would be too large
    """
    try:
        from PIL import Image
        from PIL import ImageDraw as drawer
    except ImportError:
        raise _cannot(
            "PNG pictures need the library Pillow", "pip install 'statecfg[png]', or make an SVG: -o FILE.svg"
        ) from None
    placed = [layout.arrange(drawing) for drawing in drawings]
    width = round(_SCALE * max((one.width for one in placed), default=1))
    height = round(_SCALE * sum(one.height for one in placed)) or 1
    if max(width, height) > _LARGEST:
        raise _cannot(f"a PNG of {width}×{height} pixels is more than programs can show", "make an SVG")
    image = Image.new("RGB", (width, height), layout.PAPER)
    pen, top = drawer.Draw(image), 0.0
    for one in placed:
        _graph(pen, one, top)
        top += one.height
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _cannot(detail: str, help_text: str) -> InvalidInput:
    return InvalidInput([problem("SC0440", detail, help_text, NOWHERE)])


def _graph(pen: ImageDraw, one: Layout, top: float) -> None:
    _text(pen, layout.MARGIN, top + 9, one.title, 14, layout.INK)
    for edge in one.edges:
        _edge(pen, edge, top)
    for box in one.boxes:
        fill, line = layout.color_of(box.type)
        corners = [_SCALE * v for v in (box.x, top + box.y, box.x + box.width, top + box.y + box.height)]
        pen.rounded_rectangle(corners, radius=7 * _SCALE, fill=fill, outline=line, width=_SCALE)
        _text(pen, box.x + 12, top + box.y + 6, box.type, 10, "#57606a")
        _text(pen, box.x + 12, top + box.y + 19, box.label, 12, layout.INK)


def _text(pen: ImageDraw, x: float, y: float, text: str, size: int, color: str) -> None:
    from PIL import ImageFont

    font: Any = ImageFont.load_default(size * _SCALE)
    pen.text((x * _SCALE, y * _SCALE), text, fill=color, font=font)


def _edge(pen: ImageDraw, edge: Edge, top: float) -> None:
    color = layout.TRIGGER if edge.triggers else layout.FAINT
    points = [(_SCALE * x, _SCALE * (top + y)) for x, y in _curve(edge.through)]
    dashes = (5.0, 4.0) if edge.triggers else (1.5, 3.0) if edge.automatic else None
    for one, two in pairwise(points) if dashes is None else _dashed(points, *dashes):
        pen.line([one, two], fill=color, width=_SCALE + 1)
    (x1, y1), (x2, y2) = points[-3], points[-1]
    angle = math.atan2(y2 - y1, x2 - x1)
    wings = [
        (x2 - 7 * _SCALE * math.cos(angle + turn), y2 - 7 * _SCALE * math.sin(angle + turn)) for turn in (0.4, -0.4)
    ]
    pen.polygon([(x2, y2), *wings], fill=color)


def _dashed(
    points: Sequence[tuple[float, float]], on: float, off: float
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the visible pieces of a dashed line, with the same dashes as in the SVG."""
    drawn, left = True, on * _SCALE
    for one, two in pairwise(points):
        while (length := math.dist(one, two)) > 0:
            part = min(left, length) / length
            end = (one[0] + (two[0] - one[0]) * part, one[1] + (two[1] - one[1]) * part) if part < 1 else two
            if drawn:
                yield one, end
            left -= part * length
            one = end
            if left <= 1e-9:
                drawn = not drawn
                left = (on if drawn else off) * _SCALE


def _curve(through: Sequence[Box]) -> Iterator[tuple[float, float]]:
    """Yield points on the same curves as in the SVG (cubic Béziers)."""
    for left, right in pairwise(through):
        x1, y1 = left.x + left.width, left.y + left.height / 2
        x2, y2 = right.x, right.y + right.height / 2
        middle = (x1 + x2) / 2
        for step in range(_STEPS + 1):
            t = step / _STEPS
            x = (1 - t) ** 3 * x1 + 3 * (1 - t) ** 2 * t * middle + 3 * (1 - t) * t**2 * middle + t**3 * x2
            yield x, (1 - t) ** 3 * y1 + 3 * (1 - t) ** 2 * t * y1 + 3 * (1 - t) * t**2 * y2 + t**3 * y2
