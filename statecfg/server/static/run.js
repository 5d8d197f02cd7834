// One run: its hosts and their reports. Hosts with problems come first.

import { listed, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";
import { entityLink, API } from "./entity_links.js";
import { outcome, pages, query, text } from "./filters.js";
import { fold } from "./fold.js";
import { report } from "./report.js";
import { drawResponse, ending, hostLink, progress, RUNS } from "./runs.js";
import { taskLink, TASKS, TITLES } from "./tasks.js";
import { badge, code, counts, cut, empty, pair, sign, span, tone, when } from "./words.js";

const PAGE = 50;
const OPEN = 3; // maximum number of hosts in trouble whose reports are initially open
const FILTERS = ["find", "outcome", "after"];

const path = (id) => `${RUNS}/${encodeURIComponent(id)}`;

export function run(id) {
  return drawResponse(want(listed(path(id), { ...query(FILTERS), limit: PAGE }), "runs"), (record) => {
    const names = Object.keys(record.hosts);
    const troubled = names.filter((name) => hasProblems(record.hosts[name]));
    return [
      h("p.path", {}, h("a", { href: to("runs") }, "Runs"), " / ", record.id),
      h("div.title", {}, h("h1", {}, record.mode, " ", record.playbook), badge(ending(record))),
      facts(record),
      record.state === "running" ? h("p.note.live", {}, progress(record), ". The report of a host appears when the run ends on it.") : null,
      record.state === "cut off" ? cutOff(record) : null,
      record.count > 1 ? h("div.filters", {}, text("find", "Search in this run", "host, resource, reason"), outcome()) : h("div.filters", {}, text("find", "Search in this run", "resource, reason")),
      record.matching < record.count ? h("p.dim", {}, `${record.matching.toLocaleString()} of ${record.count.toLocaleString()} hosts match.`) : null,
      names.length ? h("section.list", {}, names.map((name) => hostOf(record, name, troubled.slice(0, OPEN).includes(name)))) : empty("No host of this run matches."),
      pages(record.next, "First hosts", "More hosts"),
    ];
  });
}

function facts(record) {
  return h(
    "dl.facts",
    {},
    pair("Started", when(record.started)),
    record.ended === null ? null : pair("Took", span(record.ended - record.started)),
    pair("By", record.who),
    pair("Hosts", record.count.toLocaleString()),
    origin(record),
    h("div.wide", {}, h("dt", {}, "Outcome"), h("dd", {}, counts(record.summary))),
  );
}

// Show the entity and the task of a run that a behavior started. The playbook's name then ends with # and the entity's UUID.
function origin(record) {
  const uuid = record.playbook.split("#")[1];
  if (!uuid) return null;
  const [entity] = want(listed(`${API}/entities`, { filter: `id==*:${uuid}` }), "entities").value?.values ?? [];
  const tasks = want(listed(TASKS, { filter: `owner==*:${uuid}` }), "tasks").value?.values ?? [];
  const task = tasks.find(({ details, error }) => `${details ?? ""} ${error?.message ?? ""}`.includes(`run ${record.id}`));
  return [
    pair("Entity", entity ? entityLink(entity.id, entity.name) : h("span.dim", {}, "deleted")),
    task ? pair("Task", taskLink(task.id, TITLES[task.operationName] ?? task.operationName)) : null,
  ];
}

function cutOff(record) {
  return h(
    "div.note.odd",
    {},
    h("p", {}, h("strong", {}, "This run was cut off: "), "its controller was killed or lost the store. Each host has recorded its progress:"),
    code(`statecfg run-history --run ${record.id}`),
    h("p", {}, "Run apply again to continue. It checks every resource again."),
  );
}

const hasProblems = (host) => !["", "ok"].includes(host.status) || host.bad.length > 0 || host.units.length > 0;

function hostOf(record, name, opened) {
  const host = record.hosts[name];
  const status = record.state === "cut off" && !host.status ? "cut off" : host.status;
  const head = [badge(status), h("span.name", {}, name), counts(host.summary), host.error ? h("span.bad", {}, host.error) : null];
  if (!host.status) {
    const waits = record.state === "running";
    return h(`div.row.flat.${tone(status)}`, { "data-key": name }, h("div.lead", {}, head, waits ? h("span.dim", {}, "in progress, or waiting for its turn") : null));
  }
  const key = `run ${record.id} ${name}`;
  const words = query(FILTERS).find.toLowerCase().split(/\s+/).filter((word) => word && !name.toLowerCase().includes(word));
  const full = () => drawResponse(want(`${path(record.id)}/hosts/${encodeURIComponent(name)}`), (all) => [h("p.path", {}, hostLink(name, "About this host")), report(all, key, words)]);
  return fold(key, opened || record.count === 1, [...head, reasons(host)], full, `fold.host.${tone(status)}`);
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
