// One run: its hosts and their reports. Hosts with problems come first.

import { listed, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";
import { entityLink, API } from "./entities.js";
import { outcome, pages, query, text } from "./filters.js";
import { fold } from "./fold.js";
import { report } from "./report.js";
import { ending, given, hostLink, progress, RUNS } from "./runs.js";
import { badge, code, counts, cut, empty, pair, sign, span, tone, when } from "./words.js";

const PAGE = 50;
const OPEN = 3; // maximum number of hosts in trouble whose reports are initially open
const FILTERS = ["find", "outcome", "after"];

const path = (id) => `${RUNS}/${encodeURIComponent(id)}`;

export function run(id) {
  return given(want(listed(path(id), { ...query(FILTERS), limit: PAGE }), "runs"), (found) => {
    const names = Object.keys(found.hosts);
    const troubled = names.filter((name) => hasProblems(found.hosts[name]));
    return [
      h("p.path", {}, h("a", { href: to("runs") }, "Runs"), " / ", found.id),
      h("div.title", {}, h("h1", {}, found.mode, " ", found.playbook), badge(ending(found))),
      facts(found),
      found.state === "running" ? h("p.note.live", {}, progress(found), ". Reports of resources appear when the run ends.") : null,
      found.state === "cut off" ? cutOff(found) : null,
      found.count > 1 ? h("div.filters", {}, text("find", "Search in this run", "host, resource, reason"), outcome()) : h("div.filters", {}, text("find", "Search in this run", "resource, reason")),
      found.matching < found.count ? h("p.dim", {}, `${found.matching.toLocaleString()} of ${found.count.toLocaleString()} hosts match.`) : null,
      names.length ? h("section.list", {}, names.map((name) => hostOf(found, name, troubled.slice(0, OPEN).includes(name)))) : empty("No host of this run matches."),
      pages(found.next, "First hosts", "More hosts"),
    ];
  });
}

function facts(found) {
  return h(
    "dl.facts",
    {},
    pair("Started", when(found.started)),
    found.ended === null ? null : pair("Took", span(found.ended - found.started)),
    pair("By", found.who),
    pair("Hosts", found.count.toLocaleString()),
    entityOf(found.playbook),
    h("div.wide", {}, h("dt", {}, "Outcome"), h("dd", {}, counts(found.summary))),
  );
}

// Show the entity of a run that a behavior started. The playbook's name then ends with # and the entity's UUID.
function entityOf(playbook) {
  const uuid = playbook.split("#")[1];
  if (!uuid) return null;
  const [entity] = want(listed(`${API}/entities`, { filter: `id==*:${uuid}` }), "entities").value?.values ?? [];
  return pair("Entity", entity ? entityLink(entity.id, entity.name) : h("span.dim", {}, "deleted"));
}

function cutOff(found) {
  return h(
    "div.note.odd",
    {},
    h("p", {}, h("strong", {}, "This run was cut off: "), "its controller was killed or lost the store. Each host has recorded its progress:"),
    code(`statecfg run-history --run ${found.id}`),
    h("p", {}, "Run apply again to continue. Completed steps are not repeated."),
  );
}

const hasProblems = (host) => !["", "ok"].includes(host.status) || host.bad.length > 0 || host.units.length > 0;

function hostOf(found, name, opened) {
  const host = found.hosts[name];
  const status = found.state === "cut off" && !host.status ? "cut off" : host.status;
  const head = [badge(status), h("span.name", {}, name), counts(host.summary), host.error ? h("span.bad", {}, host.error) : null];
  if (found.state !== "ended") {
    const waits = found.state === "running" && !host.status;
    return h(`div.row.flat.${tone(status)}`, { "data-key": name }, h("div.lead", {}, head, waits ? h("span.dim", {}, "in progress, or waiting for its turn") : null));
  }
  const key = `run ${found.id} ${name}`;
  const words = query(FILTERS).find.toLowerCase().split(/\s+/).filter((word) => word && !name.toLowerCase().includes(word));
  const full = () => given(want(`${path(found.id)}/hosts/${encodeURIComponent(name)}`), (all) => [h("p.path", {}, hostLink(name, "About this host")), report(all, key, words)]);
  return fold(key, opened || found.count === 1, [...head, reasons(host)], full, `fold.host.${tone(status)}`);
}

export function reasons(host) {
  if (!host.bad.length && !host.units.length) return null;
  return h(
    "div.why",
    {},
    host.bad.slice(0, 3).map((node) => h(`p.${tone(node.outcome)}`, {}, sign(node.outcome), " ", node.name, node.reason ? h("span.reason", {}, cut(node.reason)) : null)),
    host.units.slice(0, 3).map((unit) => h("p.bad", {}, sign("failed"), " ", unit.unit, h("span.reason", {}, cut(unit.error)))),
  );
}
