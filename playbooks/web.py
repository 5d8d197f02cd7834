"""A web site on nginx: package, user, directory tree, site configuration from a template, and the service.

The same definition as web.hy. The service is restarted when the site's configuration changes, and only then.
"""

from __future__ import annotations

from statecfg import Graph, HostContext, play
from statecfg.resources import directory, file, group, package, service, user


@play(hosts="web", vars={"port": 8080, "server_name": "_", "root": "/srv/www"})
def web(host: HostContext) -> list[Graph]:
    """Declare everything that one web server has."""
    root = host.vars.root
    nginx = package("nginx")
    team = group("deploy")
    deploy = user("deploy", group="deploy", home="/home/deploy", requires=[team], shell="/bin/bash")  # noqa: S604  # a login shell
    home = directory(root, owner="deploy", group="deploy", mode="0755", parents=True, requires=[deploy])
    pages = directory(f"{root}/site", owner="deploy", group="deploy", mode="0755", requires=[home])
    index = file(
        f"{root}/site/index.html",
        template="web-index.html.j2",
        owner="deploy",
        group="deploy",
        mode="0644",
        requires=[pages],
    )
    site = file("/etc/nginx/conf.d/site.conf", template="web-site.conf.j2", mode="0644", requires=[nginx])
    return [service("nginx", running=True, enabled=True, requires=[index], restart_on=[site])]
