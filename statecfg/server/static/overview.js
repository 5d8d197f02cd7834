// The first look: what goes on now, what is in trouble and why, and what happened last.

import { administrator, want } from "./data.js";
import { h } from "./dom.js";
import { overviewOfEntities } from "./entities.js";
import { HOSTS, noHosts } from "./hosts.js";
import { given, hostLink, noRuns, runLink, runPath, runRow, runsPath } from "./runs.js";
import { badge, empty, plural, sign, tone, when } from "./words.js";

const LAST = 8;
const LOOKED_AT = 6; // runs that are asked why

export function overview() {
  if (!administrator) {
    const told = overviewOfEntities();
    return [h("h1", {}, "Entities and tasks"), told.some(Boolean) ? told : empty("There is nothing here that you may see yet.", h("p.dim", {}, "Entities that are yours, or that you were given access to, show up here."))];
  }
  return [
    given(want(runsPath(), "runs"), ({ runs }) => {
      const going = runs.filter((run) => run.state === "running");
      return going.length ? [h("h2", {}, "Under way"), h("section.list", {}, going.map(runRow))] : null;
    }),
    given(want(HOSTS, "hosts", "runs"), ({ hosts }) => inTrouble(hosts)),
    overviewOfEntities(),
    given(want(runsPath(), "runs"), ({ runs }) => {
      const ended = runs.filter((run) => run.state !== "running").slice(0, LAST);
      return [h("h2", {}, "Last runs"), ended.length ? [h("section.list", {}, ended.map(runRow)), h("p", {}, h("a", { href: "#/runs" }, "All runs"))] : noRuns()];
    }),
  ];
}

function inTrouble(hosts) {
  if (!hosts.length) return [h("h1", {}, "Hosts"), noHosts()];
  const bad = hosts.filter((host) => host.last_run && host.last_run.status !== "ok");
  if (!bad.length) {
    return h("div.note.good.calm", {}, h("h1", {}, "All is well"), h("p", {}, `The last run of each of ${plural(hosts.length, "host")} ended well.`));
  }
  bad.sort((one, other) => other.last_run.started - one.last_run.started);
  const ids = [...new Set(bad.map((host) => host.last_run.run))].slice(0, LOOKED_AT);
  const told = new Map(ids.map((id) => [id, want(runPath(id), "runs")]));
  return [
    h("h1", {}, `${plural(bad.length, "host")} in trouble`, h("span.dim", {}, ` of ${hosts.length}`)),
    h("section.list", {}, bad.slice(0, 20).map((host) => troubled(host, told.get(host.last_run.run)?.value?.hosts?.[host.name]))),
    bad.length > 20 ? h("p", {}, h("a", { href: "#/hosts" }, `and ${bad.length - 20} more`)) : null,
  ];
}

// What failed, where, and why.
function troubled(host, said) {
  return h(
    "article.row.bad",
    { "data-key": host.name },
    h("div.lead", {}, badge(host.last_run.status), hostLink(host.name, h("span.name", {}, host.name)), h("span.aside", {}, runLink(host.last_run.run, "run ", host.last_run.run), when(host.last_run.started))),
    said?.error ? h("p.bad", {}, said.error) : null,
    (said?.bad ?? []).slice(0, 3).map((node) =>
      h("div.cause", {}, h("p", {}, h(`span.${tone(node.outcome)}`, {}, sign(node.outcome), " "), h("span.name", {}, node.name), h("span.place", {}, node.position)), h("p", {}, node.reason)),
    ),
    said && said.bad.length > 3 ? h("p.dim", {}, `and ${said.bad.length - 3 + said.more} more`) : null,
    (said?.hooks ?? []).slice(0, 3).map((hook) => h("p.bad", {}, `hook ${hook.hook}, ${hook.event}: ${hook.error ?? hook.status}`)),
  );
}
