"""Says hello: a directory with a file, a link, a line in a file, and a page made from a template.

The same definition as hello.hy and hello.yml. Try: statecfg plan playbooks/hello.py -e root=/tmp/elsewhere
"""

from __future__ import annotations

from statecfg import Graph, HostContext, play
from statecfg.resources import directory, file, line_in_file, symlink


@play(hosts="@local", vars={"root": "/tmp/statecfg-hello", "who": "world"})  # noqa: S108  # a place to try things out
def hello(host: HostContext) -> list[Graph]:
    """Declare the directory and what is in it."""
    root = host.vars.root
    home = directory(root, mode="0755")
    greeting = file(f"{root}/greeting.txt", content="Hello from statecfg.\n", mode="0644", requires=[home])
    return [
        greeting,
        symlink(f"{root}/latest", target="greeting.txt", requires=[greeting]),
        line_in_file(f"{root}/settings.ini", line="greeting = enabled", create=True, requires=[home]),
        file(f"{root}/index.html", template="hello.html.j2", vars={"who": host.vars.who}, requires=[home]),
    ]
