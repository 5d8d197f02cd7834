// Runs: the list, and one run with its hosts.

import { want } from "./data.js";
import { h } from "./dom.js";
import { button, field, fold, text } from "./fold.js";
import { report } from "./report.js";
import { badge, code, counts, empty, plural, sign, span, tone, when } from "./words.js";

const FIRST = 30;
const MOST = 1000;
const REASON = 200; // characters of a reason beside a host's name
const OPEN = 3; // hosts in trouble that are open from the beginning

export const runsPath = (limit = FIRST) => `/statecfg/1.0/runs?limit=${limit}`;
export const runPath = (id) => `/statecfg/1.0/runs/${encodeURIComponent(id)}`;
export const runLink = (id, ...label) => h("a", { href: `#/runs/${encodeURIComponent(id)}` }, label.length ? label : id);
export const hostLink = (name, ...label) => h("a", { href: `#/hosts/${encodeURIComponent(name)}` }, label.length ? label : name);

// What a path gives, or what to say as long as it gives nothing.
export function given(found, draw) {
  if (found.value !== undefined && !found.error) return draw(found.value);
  if (found.error) return h("p.card.alarm", {}, found.error);
  return h("p.dim.loading", {}, "Loading…");
}

const WORST = ["failed", "unknown", "unreachable", "refused", "locked", "cancelled"];

export function ending(run) {
  if (run.state !== "ended") return run.state;
  return WORST.find((status) => run.statuses[status]) ?? "ok";
}

export function progress(run) {
  const done = run.count - (run.statuses[""] ?? 0);
  return h("progress", { max: run.count || 1, value: done, "aria-label": `${done} of ${plural(run.count, "host")}` });
}

function about(run) {
  const names = run.names.slice(0, 3).join(", ");
  return run.count > 3 ? `${names} and ${run.count - 3} more` : names || "no host";
}

export function runRow(run) {
  const state = ending(run);
  const done = run.count - (run.statuses[""] ?? 0);
  const took = run.ended === null ? null : h("span.dim", {}, `took ${span(run.ended - run.started)}`);
  return h(
    `article.row.${tone(state)}`,
    { "data-key": run.id },
    h(
      "div.lead",
      {},
      badge(state),
      h("a.name", { href: `#/runs/${encodeURIComponent(run.id)}` }, run.mode, " ", run.playbook || ""),
      h("span.aside", {}, when(run.started), took, h("span.dim", {}, run.who)),
    ),
    h(
      "div.facts",
      {},
      h("span", {}, about(run)),
      counts(run.summary),
      run.state === "running" ? h("span.live", {}, `${done} of ${plural(run.count, "host")} done `, progress(run)) : null,
      run.trouble.length && run.count > 1 ? h("span.bad", {}, `trouble: ${run.trouble.slice(0, 3).join(", ")}${run.trouble.length > 3 ? "…" : ""}`) : null,
    ),
  );
}

const START = ["Nothing was applied from here yet. In a project:", "statecfg plan playbooks/hello.yml\nstatecfg apply playbooks/hello.yml"];

export const noRuns = () => empty(START[0], code(START[1]), h("p.dim", {}, "Each apply, prune and destroy shows up here while it goes on."));

export function runs() {
  const limit = Number(field("runs limit", FIRST));
  return [
    h("div.title", {}, h("h1", {}, "Runs"), text("runs find", "Find runs", "host, playbook, who, id")),
    given(want(runsPath(limit), "runs"), ({ runs: all }) => {
      if (!all.length) return noRuns();
      const words = field("runs find").toLowerCase().split(/\s+/).filter(Boolean);
      const told = (run) => [run.id, run.mode, run.playbook, run.who, ending(run), ...run.names, ...run.trouble].join(" ").toLowerCase();
      const found = all.filter((run) => words.every((word) => told(run).includes(word)));
      return [
        found.length ? h("section.list", {}, found.map(runRow)) : empty("No run here has all of these words.", h("p.dim", {}, "Load older ones, or look for less.")),
        all.length >= limit && limit < MOST ? button("runs limit", Math.min(limit * 3, MOST), "Older runs") : null,
      ];
    }),
  ];
}

export function run(id) {
  return given(want(runPath(id), "runs"), (found) => {
    const state = ending(found);
    const names = Object.keys(found.hosts).sort((one, two) => one.localeCompare(two, undefined, { numeric: true })); // web2 before web10
    const bad = names.filter((name) => !["", "ok"].includes(found.hosts[name].status) || found.hosts[name].bad.length);
    const sorted = [...bad, ...names.filter((name) => !bad.includes(name))];
    const done = found.count - (found.statuses[""] ?? 0);
    return [
      h("p.path", {}, h("a", { href: "#/runs" }, "Runs"), " / ", found.id),
      h("div.title", {}, h("h1", {}, found.mode, " ", found.playbook), badge(state)),
      h(
        "dl.facts",
        {},
        pair("Began", when(found.started)),
        found.ended === null ? null : pair("Took", span(found.ended - found.started)),
        pair("By", found.who),
        pair("Hosts", String(found.count)),
        h("div.wide", {}, h("dt", {}, "Outcome"), h("dd", {}, counts(found.summary))),
      ),
      found.state === "running" ? h("p.note.live", {}, progress(found), ` ${done} of ${plural(found.count, "host")} done. What became of each resource is here when the run ends.`) : null,
      found.state === "cut off" ? cutOff(found) : null,
      h("section.list", {}, sorted.map((name) => hostOf(found, name, bad.indexOf(name) >= 0 && bad.indexOf(name) < OPEN))),
    ];
  });
}

export const pair = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

function cutOff(run) {
  return h(
    "div.note.odd",
    {},
    h("p", {}, h("strong", {}, "This run was cut off: "), "its controller was killed or lost the store. Each host has recorded its progress:"),
    code(`statecfg run-history --run ${run.id}`),
    h("p", {}, "Run apply again to continue. Completed steps are not repeated."),
  );
}

function hostOf(run, name, trouble) {
  const said = run.hosts[name];
  const status = run.state === "cut off" && !said.status ? "cut off" : said.status;
  const waits = run.state === "running" && !said.status;
  const head = [badge(status), h("span.name", {}, name), counts(said.summary), said.error ? h("span.bad", {}, said.error) : null];
  if (run.state !== "ended") return h(`div.row.flat.${tone(status)}`, { "data-key": name }, h("div.lead", {}, head, waits ? h("span.dim", {}, "at work, or waiting for its turn") : null));
  const key = `run ${run.id} ${name}`;
  return fold(
    key,
    trouble || run.count === 1,
    [...head, said.bad.length ? h("div.why", {}, said.bad.slice(0, 3).map(worst)) : null],
    () => given(want(`${runPath(run.id)}/hosts/${encodeURIComponent(name)}`), (full) => [h("p.path", {}, hostLink(name, "About this host")), report(full, key)]),
    `fold.host.${tone(status)}`,
  );
}

const worst = (node) => h(`p.${tone(node.outcome)}`, {}, sign(node.outcome), " ", node.name, node.reason ? h("span.reason", {}, cut(node.reason)) : null);
const cut = (text) => (text.length > REASON ? `${text.slice(0, REASON)}…` : text);
