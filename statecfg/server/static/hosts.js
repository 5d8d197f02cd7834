// The list of hosts, and one host. The state of a host is the worst state of its playbooks and services.

import { listed, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";
import { day, isFiltered, outcome, pages, query, text } from "./filters.js";
import { fold } from "./fold.js";
import { value } from "./report.js";
import { reasons } from "./run.js";
import { drawResponse, runLink, runRow } from "./runs.js";
import { unit } from "./services.js";
import { badge, code, empty, pair, plural, tone, when } from "./words.js";

export const HOSTS = "/statecfg/1.0/hosts";
const PAGE = 50;
const FILTERS = ["find", "playbook", "outcome", "since", "until", "after"];

export const noHosts = () =>
  empty("The store has no hosts yet.", code("statecfg inventory\nstatecfg apply playbooks/hello.yml"), h("p.dim", {}, "A host appears here when a run first contacts it."));

const tags = (host) => (host.tags.length ? h("span.tags", {}, host.tags.map((tag) => h("span.tag", {}, tag))) : null);

export function stateOf(host) {
  if (host.under_way) return [badge("running", "in progress"), runLink(host.under_way)];
  return host.state ? badge(host.state) : h("span.dim", {}, "no run yet");
}

function row(host) {
  const bad = host.state && host.state !== "ok" ? "bad" : "plain";
  return h(
    `article.row.${host.under_way ? "live" : bad}`,
    { "data-key": host.name },
    h("div.lead", {}, h("a.name", { href: to("hosts", host.name) }, host.name), tags(host), h("span.aside", {}, stateOf(host))),
    h(
      "div.facts",
      {},
      h("span", {}, host.system ?? "no facts yet"),
      h("span", {}, "last check-in ", when(host.last_checkin)),
      host.playbooks.length ? h("span", {}, host.playbooks.join(", ")) : h("span.dim", {}, "no playbook"),
      host.last_run ? h("span", {}, "last run ", runLink(host.last_run.run), " ", h(`span.${tone(host.last_run.status)}`, {}, host.last_run.status)) : null,
    ),
  );
}

export function hosts() {
  return [
    h("div.title", {}, h("h1", {}, "Hosts")),
    h("div.filters", {}, text("find", "Find hosts", "name, tag, system"), text("playbook", "Playbook", "playbook"), outcome(), day("since", "last check-in from"), day("until", "to")),
    drawResponse(want(listed(HOSTS, { ...query(FILTERS), limit: PAGE }), "hosts", "runs", "services"), ({ hosts: page, total, matching, next }) => {
      if (!total) return noHosts();
      if (!page.length) return empty("No host matches these filters.");
      return [
        h("p.dim", {}, isFiltered(FILTERS) ? `${matching.toLocaleString()} of ${plural(total, "host")} match.` : plural(total, "host")),
        h("section.list", {}, page.map(row)),
        pages(next, "First hosts", "More hosts"),
      ];
    }),
  ];
}

export function host(name) {
  return drawResponse(want(`${HOSTS}/${encodeURIComponent(name)}`, "hosts", "runs", "hooks", "services"), (record) => [
    h("p.path", {}, h("a", { href: to("hosts") }, "Hosts"), " / ", record.name),
    h("div.title", {}, h("h1", {}, record.name), tags(record), stateOf(record)),
    h(
      "dl.facts",
      {},
      pair("System", record.system ?? h("span.dim", {}, "unknown")),
      pair("Kernel", record.kernel ?? h("span.dim", {}, "unknown")),
      pair("First seen", when(record.registered)),
      pair("Last check-in", when(record.last_checkin)),
      pair("Installed", record.installed ? [record.installed, " ", when(record.installed_at)] : h("span.dim", {}, "nothing")),
      pair("Playbooks", record.playbooks.join(", ") || h("span.dim", {}, "none")),
    ),
    record.states.length ? [h("h2", {}, "State of each playbook"), h("section.list", {}, record.states.map((last) => state(last, record)))] : null,
    record.units.length ? [h("h2", {}, "Units"), h("section.list", {}, record.units.map((own) => h(`div.row.${own.failed ? "bad" : "plain"}`, { "data-key": own.name }, unit(own))))] : null,
    fold(`facts ${name}`, false, h("span", {}, "Facts"), () => tree(record.facts)),
    Object.keys(record.metadata).length ? fold(`metadata ${name}`, true, h("span", {}, "Metadata"), () => tree(record.metadata)) : null,
    h("div.title", {}, h("h2", {}, "Last runs"), h("a", { href: to("runs", "", { host: name }) }, "All runs of this host")),
    record.runs.length ? h("section.list", {}, record.runs.map(runRow)) : h("p.dim", {}, "No runs on this host yet."),
    record.events.length ? [h("h2", {}, "Log of hooks"), h("section.list", {}, record.events.map(event))] : null,
  ]);
}

// Show how the last run of a playbook ended on a host. The host's problems are those of the newest of its worst runs.
function state(last, record) {
  const worst = last === record.states.find((run) => run.status === record.state && run.status !== "ok");
  return h(
    `div.row.flat.${tone(last.status)}`,
    { "data-key": last.playbook || last.run },
    h("div.lead", {}, badge(last.status), h("span.name", {}, last.playbook || "no playbook"), h("span.aside", {}, runLink(last.run, "run ", last.run), when(last.started))),
    worst && record.problems ? [record.problems.error ? h("p.bad", {}, record.problems.error) : null, reasons(record.problems)] : null,
  );
}

function event(entry) {
  return h(
    "article.row.flat",
    {},
    h("div.lead", {}, badge(entry.severity), h("span.name", {}, entry.hook ?? "deleted hook"), when(entry.at)),
    tree(entry.entry),
    entry.detail ? h("pre.box", { tabindex: "0" }, entry.detail) : null,
  );
}

// Show a JSON object as a table. Keys of nested objects are joined with dots.
export function tree(object) {
  const rows = flat(object, "");
  if (!rows.length) return h("p.dim", {}, "empty");
  return h("table.wide", {}, h("tbody", {}, rows.map(([name, content]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value(content))))));
}

function flat(object, prefix) {
  return Object.entries(object ?? {}).flatMap(([name, content]) =>
    content !== null && typeof content === "object" && !Array.isArray(content) && Object.keys(content).length ? flat(content, `${prefix}${name}.`) : [[prefix + name, content]],
  );
}
