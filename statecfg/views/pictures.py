"""Graphs as text, DOT and Mermaid, and the entry point for SVG and PNG. Hosts with the same graph share a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statecfg.views import safe, svg
from statecfg.views.drawing import Drawing
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import plural


def draw(picture_format: str, drawings: Sequence[Drawing]) -> bytes:
    """Return the drawings in a format.

    :param picture_format: "dot", "mermaid", "svg" or "png"
    :raises InvalidInput: for "png", if Pillow is missing or the graph is too large
    """
    if picture_format == "dot":
        return dot(drawings).encode()
    if picture_format == "mermaid":
        return mermaid(drawings).encode()
    if picture_format == "png":
        from statecfg.views import png

        return png.draw(drawings)

    return svg.draw(drawings).encode()


def text_lines(drawings: Sequence[Drawing]) -> Iterator[Line]:
    """Yield the layers of each graph, each node with its source locations and requirements.

    `↻` marks triggers, and `⇠` automatic requirements.
    """
    for number, drawing in enumerate(drawings):
        if number:
            yield BLANK
        shared = plural(len(drawing.hosts), "host") if len(drawing.hosts) > 1 else ""
        yield make(("── ", "dim"), (drawing.title, "bold"), right=shared, rule=True)
        for index, layer in enumerate(drawing.layers, 1):
            yield make((f"  layer {index}", "skip"))
            for node in layer:
                yield make("    ", node["provides"], hang=6, right=node.get("position", ""))
                yield from (
                    make("      ", ("also declared", "dim"), hang=8, right=other) for other in node.get("also") or ()
                )
                triggers = frozenset(node.get("triggers") or ())
                automatic = drawing.automatic.get(node["provides"], {})
                for name in node.get("requires") or ():
                    yield _required(name, name in triggers, automatic.get(name, ""))
        yield make(
            (f"  {plural(sum(map(len, drawing.layers)), 'resource')} in {plural(len(drawing.layers), 'layer')}", "dim")
        )


def _required(name: str, triggers: bool, reason: str) -> Line:
    if reason:
        return make(("      ⇠ ", "dim"), (f"{name}  automatic: {reason}", "dim"), hang=8)
    return make(("      ↻ ", "change") if triggers else ("      ← ", "dim"), (name, "dim"), hang=8)


def dot(drawings: Sequence[Drawing]) -> str:
    """Return the graphs in Graphviz' language, each as a cluster."""
    out = ["digraph statecfg {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fillcolor="#f6f8fa"];']
    for number, drawing in enumerate(drawings):
        out += [f"  subgraph cluster_{number} {{", f"    label={_dotted(drawing.title)};"]
        for layer in drawing.layers:
            out += [f"    {_dotted(f'{number}/' + n['provides'])} [label={_dotted(n['provides'])}];" for n in layer]
        for required, node, triggers, reason in drawing.edges():
            style = ' [color="#bf8700", style=dashed]' if triggers else " [style=dotted]" if reason else ""
            out.append(f"    {_dotted(f'{number}/' + required)} -> {_dotted(f'{number}/' + node)}{style};")
        out.append("  }")
    return "\n".join([*out, "}", ""])


def _dotted(text: str) -> str:
    # A backslash would start one of DOT's escapes, such as \N for the node's name.
    return '"' + safe.line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def mermaid(drawings: Sequence[Drawing]) -> str:
    """Return the graphs in Mermaid's language, each as a subgraph."""
    out = ["flowchart LR"]
    for number, drawing in enumerate(drawings):
        ids = {n["provides"]: f"g{number}n{i}" for i, n in enumerate(n for layer in drawing.layers for n in layer)}
        out.append(f"  subgraph g{number}[{_quoted(drawing.title)}]")
        out += [f"    {ids[name]}[{_quoted(name)}]" for name in ids]
        for required, node, triggers, reason in drawing.edges():
            arrow = "-.->" if triggers else "-. automatic .->" if reason else "-->"
            out.append(f"    {ids[required]} {arrow} {ids[node]}")
        out.append("  end")
    return "\n".join([*out, ""])


def _quoted(text: str) -> str:
    # Mermaid has no backslash escapes. Characters that its grammar or HTML could interpret become numeric entities.
    marks = "".join(c if c.isalnum() or c in " :/._-=,@+" else f"#{ord(c)};" for c in safe.line(text))
    return f'"{marks}"'
