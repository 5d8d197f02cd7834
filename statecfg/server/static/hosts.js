// Hosts: the list, and one host.

import { want } from "./data.js";
import { h } from "./dom.js";
import { field, fold, text } from "./fold.js";
import { value } from "./report.js";
import { given, pair, runLink, runRow } from "./runs.js";
import { badge, code, empty, when } from "./words.js";

export const HOSTS = "/statecfg/1.0/hosts";

export function lastRun(host) {
  if (host.under_way) return [badge("running", "under way"), runLink(host.under_way)];
  if (!host.last_run) return h("span.dim", {}, "no run yet");
  return [badge(host.last_run.status), runLink(host.last_run.run)];
}

export const noHosts = () =>
  empty("The store knows no host yet.", code("statecfg inventory\nstatecfg apply playbooks/hello.yml"), h("p.dim", {}, "A host gets here when a run meets it for the first time."));

const tags = (host) => (host.tags.length ? h("span.tags", {}, host.tags.map((tag) => h("span.tag", {}, tag))) : null);

function row(host) {
  const status = host.under_way ? "running" : host.last_run?.status;
  return h(
    `article.row.${{ running: "live", ok: "plain" }[status] ?? (status ? "bad" : "plain")}`,
    { "data-key": host.name },
    h("div.lead", {}, h("a.name", { href: `#/hosts/${encodeURIComponent(host.name)}` }, host.name), tags(host), h("span.aside", {}, lastRun(host))),
    h("div.facts", {}, h("span", {}, host.system ?? "no facts yet"), h("span", {}, "met ", when(host.last_checkin)), host.playbooks.length ? h("span", {}, host.playbooks.join(", ")) : h("span.dim", {}, "no playbook")),
  );
}

export function hosts() {
  return [
    h("div.title", {}, h("h1", {}, "Hosts"), text("hosts find", "Find hosts", "name, tag, playbook, system")),
    given(want(HOSTS, "hosts", "runs"), ({ hosts: all }) => {
      if (!all.length) return noHosts();
      const words = field("hosts find").toLowerCase().split(/\s+/).filter(Boolean);
      const told = (host) => [host.name, host.system, ...host.tags, ...host.playbooks, host.last_run?.status].join(" ").toLowerCase();
      const found = all.filter((host) => words.every((word) => told(host).includes(word)));
      found.sort((one, two) => one.name.localeCompare(two.name, undefined, { numeric: true })); // web2 before web10
      return found.length ? h("section.list", {}, found.map(row)) : empty("No host has all of these words.");
    }),
  ];
}

export function host(name) {
  return given(want(`${HOSTS}/${encodeURIComponent(name)}`, "hosts", "runs", "hooks"), (found) => [
    h("p.path", {}, h("a", { href: "#/hosts" }, "Hosts"), " / ", found.name),
    h("div.title", {}, h("h1", {}, found.name), tags(found), lastRun(found)),
    h(
      "dl.facts",
      {},
      pair("System", found.system ?? h("span.dim", {}, "not known")),
      pair("Kernel", found.kernel ?? h("span.dim", {}, "not known")),
      pair("First met", when(found.registered)),
      pair("Last check-in", when(found.last_checkin)),
      pair("Installed", found.installed ? [found.installed, " ", when(found.installed_at)] : h("span.dim", {}, "nothing")),
      pair("Playbooks", found.playbooks.join(", ") || h("span.dim", {}, "none")),
    ),
    fold(`facts ${name}`, false, h("span", {}, "Facts"), () => tree(found.facts)),
    Object.keys(found.metadata).length ? fold(`metadata ${name}`, true, h("span", {}, "Metadata"), () => tree(found.metadata)) : null,
    h("h2", {}, "Runs"),
    found.runs.length ? h("section.list", {}, found.runs.map(runRow)) : h("p.dim", {}, "No run has been here yet."),
    found.events.length ? [h("h2", {}, "What hooks said"), h("section.list", {}, found.events.map(said))] : null,
  ]);
}

function said(each) {
  return h(
    "article.row.flat",
    {},
    h("div.lead", {}, badge(each.severity), h("span.name", {}, each.hook ?? "a hook that is gone"), when(each.at)),
    tree(each.entry),
    each.detail ? h("pre.box", { tabindex: "0" }, each.detail) : null,
  );
}

// A JSON object as a table: nested keys joined by dots.
export function tree(object) {
  const rows = flat(object, "");
  if (!rows.length) return h("p.dim", {}, "nothing");
  return h("table.wide", {}, h("tbody", {}, rows.map(([name, given]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value(given))))));
}

function flat(object, lead) {
  return Object.entries(object ?? {}).flatMap(([name, given]) =>
    given !== null && typeof given === "object" && !Array.isArray(given) && Object.keys(given).length ? flat(given, `${lead}${name}.`) : [[lead + name, given]],
  );
}
