"""Graphs as SVG: one self-contained picture, without scripts or links."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import pairwise

from statecfg.views import layout, safe
from statecfg.views.drawing import Drawing
from statecfg.views.layout import Box, Edge, Layout

_FONT = "font-family=\"ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\""


def draw(drawings: Sequence[Drawing]) -> str:
    """Return all drawings in one picture, below each other."""
    placed = [layout.arrange(drawing) for drawing in drawings]
    width = max((one.width for one in placed), default=0)
    height = sum(one.height for one in placed)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" {_FONT}>',
        f"<defs>{_arrow('arrow', layout.FAINT)}{_arrow('trigger', layout.TRIGGER)}</defs>",
        f'<rect width="100%" height="100%" fill="{layout.PAPER}"/>',
    ]
    top = 0.0
    for one in placed:
        out.append(f'<g transform="translate(0 {top:.1f})">')
        out.extend(_graph(one))
        out.append("</g>")
        top += one.height
    return "\n".join([*out, "</svg>", ""])


def _arrow(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{color}"/></marker>'
    )


def _graph(one: Layout) -> Iterator[str]:
    yield _text(layout.MARGIN, 22, one.title, 14, layout.INK, "600")
    yield from (_edge(edge) for edge in one.edges)
    for box in one.boxes:
        yield from _box(box)


def _box(box: Box) -> Iterator[str]:
    fill, line = layout.color_of(box.type)
    yield f"<g><title>{html.escape(safe.line(box.name))}</title>"
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height}" rx="7" '
        f'fill="{fill}" stroke="{line}"/>'
    )
    yield _text(box.x + 12, box.y + 15, box.type, 10, "#57606a")
    yield _text(box.x + 12, box.y + 31, box.label, 12.5, layout.INK, "500") + "</g>"


def _text(x: float, y: float, text: str, size: float, color: str, weight: str = "400") -> str:
    look = f'font-size="{size}" font-weight="{weight}" fill="{color}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{html.escape(text)}</text>'


def _edge(edge: Edge) -> str:
    color, mark = (layout.TRIGGER, "trigger") if edge.triggers else (layout.FAINT, "arrow")
    dashes = ' stroke-dasharray="5 4"' if edge.triggers else ' stroke-dasharray="1.5 3"' if edge.automatic else ""
    look = f'fill="none" stroke="{color}" stroke-width="1.4"{dashes} marker-end="url(#{mark})"'
    return f'<path d="{_path(edge.through)}" {look}/>'


def _path(through: Sequence[Box]) -> str:
    out = ""
    for left, right in pairwise(through):
        x1, y1 = left.x + left.width, left.y + left.height / 2
        x2, y2 = right.x, right.y + right.height / 2
        bend = (x2 - x1) / 2
        out += f"{'M' if not out else ' L'}{x1:.1f} {y1:.1f} "
        out += f"C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return out
