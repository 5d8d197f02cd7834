// The overview: runs in progress, hosts in trouble with the reasons, entities and tasks, and the last runs.

import { listed, to } from "./address.js";
import { administrator, want } from "./data.js";
import { h } from "./dom.js";
import { overviewOfEntities } from "./entities.js";
import { HOSTS, noHosts } from "./hosts.js";
import { drawResponse, hostLink, noRuns, runLink, runRow, RUNS } from "./runs.js";
import { badge, empty, plural, sign, tone, when } from "./words.js";

const LAST = 8; // maximum number of last runs
const TROUBLED = 20; // maximum number of hosts in trouble

export function overview() {
  if (!administrator) return forUsers();
  const runs = want(listed(RUNS, { limit: 30 }), "runs");
  return [
    drawResponse(runs, (list) => {
      const going = list.runs.filter((run) => run.state === "running");
      return going.length ? [h("h2", {}, "In progress"), h("section.list", {}, going.map(runRow))] : null;
    }),
    drawResponse(want(listed(HOSTS, { outcome: "trouble", reasons: "true", limit: TROUBLED }), "hosts", "runs", "services"), inTrouble),
    overviewOfEntities(),
    drawResponse(runs, (list) => {
      const ended = list.runs.filter((run) => run.state !== "running").slice(0, LAST);
      return [h("h2", {}, "Last runs"), ended.length ? [h("section.list", {}, ended.map(runRow)), h("p", {}, h("a", { href: to("runs") }, "All runs"))] : noRuns()];
    }),
  ];
}

function forUsers() {
  const entities = overviewOfEntities();
  const none = empty("You have no entities yet.", h("p.dim", {}, "Your entities, and entities that other users shared with you, appear here."));
  return [h("h1", {}, "Entities and tasks"), entities.some(Boolean) ? entities : none];
}

function inTrouble({ hosts, total, matching, states }) {
  if (!total) return [h("h1", {}, "Hosts"), noHosts()];
  if (!matching) {
    const waiting = states[""] ? ` ${plural(states[""], "host")} had no run yet.` : "";
    return h("div.note.good.calm", {}, h("h1", {}, "No problems"), h("p", {}, `All playbooks and services of ${plural(total - (states[""] ?? 0), "host")} succeeded.${waiting}`));
  }
  return [
    h("h1", {}, `${plural(matching, "host")} in trouble`, h("span.dim", {}, ` of ${total.toLocaleString()}`)),
    h("section.list", {}, hosts.map(troubled)),
    matching > hosts.length ? h("p", {}, h("a", { href: to("hosts", "", { outcome: "trouble" }) }, `All ${matching.toLocaleString()} hosts in trouble`)) : null,
  ];
}

// Show what failed on a host, where and why.
function troubled(host) {
  const last = host.states.find((run) => run.status === host.state);
  const { error = "", bad = [], more = 0, hooks = [] } = host.problems ?? {};
  return h(
    "article.row.bad",
    { "data-key": host.name },
    h("div.lead", {}, badge(host.state), hostLink(host.name, h("span.name", {}, host.name)), last ? h("span.aside", {}, runLink(last.run, "run ", last.run), when(last.started)) : null),
    error ? h("p.bad", {}, error) : null,
    bad.slice(0, 3).map((node) =>
      h("div.cause", {}, h("p", {}, h(`span.${tone(node.outcome)}`, {}, sign(node.outcome), " "), h("span.name", {}, node.name), h("span.place", {}, node.position)), h("p", {}, node.reason)),
    ),
    bad.length > 3 ? h("p.dim", {}, `and ${bad.length - 3 + more} more`) : null,
    host.units.filter((unit) => unit.failed).map((unit) => h("div.cause", {}, h("p", {}, h("span.name", {}, unit.name), " ", unit.state), h("p", {}, unit.why || Object.values(unit.relation_errors).join("; ")))),
    hooks.slice(0, 3).map((hook) => h("p.bad", {}, `hook ${hook.hook}, ${hook.event}: ${hook.error ?? hook.status}`)),
  );
}
