// The list of runs.

import { listed, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";
import { day, isFiltered, outcome, pages, query, text } from "./filters.js";
import { badge, code, counts, empty, plural, span, tone, when } from "./words.js";

const PAGE = 50;
const FILTERS = ["host", "playbook", "outcome", "since", "until", "after"];
const WORST_FIRST = ["failed", "unknown", "unreachable", "refused", "locked", "cancelled"];

export const RUNS = "/statecfg/1.0/runs";
export const runLink = (id, ...label) => h("a", { href: to("runs", id) }, label.length ? label : id);
export const hostLink = (name, ...label) => h("a", { href: to("hosts", name) }, label.length ? label : name);

// Draw a response of the server, or show that it is loading or failed.
export function drawResponse(answer, draw) {
  if (answer.value !== undefined && !answer.error) return draw(answer.value);
  if (answer.error) return h("p.card.alarm", {}, answer.error);
  return h("p.dim.loading", {}, "Loading…");
}

export function ending(run) {
  if (run.state !== "ended") return run.state;
  return WORST_FIRST.find((status) => run.statuses[status]) ?? "ok";
}

const finished = (run) => run.count - (run.statuses[""] ?? 0);

export function progress(run) {
  const label = `${finished(run)} of ${plural(run.count, "host")} done`;
  return [h("progress", { max: run.count || 1, value: finished(run), "aria-label": label }), ` ${label}`];
}

function hostsOf(run) {
  const names = run.names.slice(0, 3).join(", ");
  return run.count > 3 ? `${names} and ${(run.count - 3).toLocaleString()} more` : names || "no host";
}

export function runRow(run) {
  const state = ending(run);
  return h(
    `article.row.${tone(state)}`,
    { "data-key": run.id },
    h(
      "div.lead",
      {},
      badge(state),
      h("a.name", { href: to("runs", run.id) }, run.mode, " ", run.playbook || ""),
      h("span.aside", {}, when(run.started), run.ended === null ? null : h("span.dim", {}, `took ${span(run.ended - run.started)}`), h("span.dim", {}, run.who)),
    ),
    h(
      "div.facts",
      {},
      h("span", {}, hostsOf(run)),
      counts(run.summary),
      run.state === "running" ? h("span.live", {}, progress(run)) : null,
      run.trouble.length && run.count > 1 ? h("span.bad", {}, `in trouble: ${run.trouble.slice(0, 3).join(", ")}${run.trouble.length > 3 ? "…" : ""}`) : null,
    ),
  );
}

export const noRuns = () =>
  empty(
    "No runs yet. Start one in a project:",
    code("statecfg plan playbooks/hello.yml\nstatecfg apply playbooks/hello.yml"),
    h("p.dim", {}, "Each apply, prune and destroy appears here while it runs."),
  );

export function runs() {
  return [
    h("div.title", {}, h("h1", {}, "Runs")),
    h("div.filters", {}, text("host", "Host", "host"), text("playbook", "Playbook", "playbook"), outcome(), day("since", "from"), day("until", "to")),
    drawResponse(want(listed(RUNS, { ...query(FILTERS), limit: PAGE }), "runs"), ({ runs: list, next }) => {
      if (!list.length) return isFiltered(FILTERS) ? empty("No run matches these filters.") : noRuns();
      return [h("section.list", {}, list.map(runRow)), pages(next, "Newest runs", "Older runs")];
    }),
  ];
}
