// Services, their units and relations.

import { listed, param, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";
import { choice, isFiltered, pages, query, text } from "./filters.js";
import { part } from "./fold.js";
import { drawResponse, hostLink, runLink } from "./runs.js";
import { badge, code, empty, plural, when } from "./words.js";

const PAGE = 50; // units
const RELATIONS = 5; // relations of a service that are shown at first
const FILTERS = ["find", "host", "state", "after"];
const STATES = ["new", "installed", "started", "stopped", "install_error", "configure_error", "start_error", "stop_error", "charm_upgrade_error"];

const noServices = () =>
  empty("No services yet.", h("p.dim", {}, "A playbook declares services and their relations. Apply it to create their units."), code("statecfg service --help"));

export function services() {
  return [
    h("div.title", {}, h("h1", {}, "Services")),
    h(
      "div.filters",
      {},
      text("find", "Find services and units", "service, unit"),
      text("host", "Host", "host"),
      choice("state", "State", [["", "All states"], ["trouble", "In trouble"], ...STATES.map((name) => [name, name])]),
    ),
    drawResponse(want(listed("/statecfg/1.0/services", { ...query(FILTERS), limit: PAGE }), "services"), (answer) => {
      const { services: page, total, matching, next } = answer;
      if (!page.length) return isFiltered(FILTERS) || param("after") ? empty("No service or unit matches these filters.") : noServices();
      return [
        h("p.dim", {}, isFiltered(FILTERS) ? `${matching.toLocaleString()} of ${plural(total, "unit")} match.` : plural(total, "unit")),
        byProject(answer),
        pages(next, "First units", "More units"),
      ];
    }),
  ];
}

function byProject({ project: own, services: page, relations }) {
  const projects = [...new Set(page.map((item) => item.project))];
  return projects.map((project) => [
    projects.length > 1 || project !== own ? h("h2", {}, project) : null,
    h("section.list", {}, page.filter((item) => item.project === project).map((item) => service(item, relations, project === own))),
  ]);
}

// Show a service with those of its units that are on the page. The store has hosts and runs only of its `own` project.
function service(item, relations, own) {
  const key = `${item.project} ${item.name}`;
  const ends = relations.filter((relation) => relation.project === item.project && relation.ends.some(([name]) => name === item.name));
  const some = item.units.length < item.count ? `${item.units.length.toLocaleString()} of ` : "";
  return h(
    `article.row.${item.failed ? "bad" : "plain"}`,
    { "data-key": key },
    h(
      "div.lead",
      {},
      h("span.name", {}, item.name),
      own ? runsOf(item) : h("span.dim", {}, item.playbook),
      h("span.dim", {}, some, plural(item.count, "unit")),
      item.failed ? h("span.bad", {}, `${item.failed.toLocaleString()} in trouble`) : null,
      item.alive ? null : h("span.change", {}, "destroyed"),
    ),
    ends.length ? h("div.facts", {}, part(`relations ${key}`, ends, (ending) => relation(ending, item.name), RELATIONS)) : h("p.dim", {}, "no relations"),
    item.units.map((member) =>
      h(`div.unit${member.failed ? ".cause" : ""}`, { "data-key": member.name }, unit(member, own ? hostLink(member.host) : h("span", {}, member.host)), own && member.failed_in.length ? failedIn(member) : null),
    ),
  );
}

// Return a link to the runs of a service's playbook, whose name begins with the project.
function runsOf({ project, playbook }) {
  const path = playbook.startsWith(`${project}/`) ? playbook.slice(project.length + 1) : playbook;
  return h("a", { href: to("runs", "", { playbook: path }), title: "runs of this playbook" }, playbook);
}

function relation({ ends, dying }, name) {
  const links = ends.map(([other, role], number) => [number ? " ↔ " : "", other === name ? other : h("a", { href: to("services", "", { find: other }) }, other), `:${role}`]);
  return h("span", {}, links, dying ? h("span.change", {}, " (being removed)") : null);
}

const failedIn = (member) => h("p.dim", {}, "failed in ", member.failed_in.map((id, number) => [number ? ", " : "", runLink(id, "run ", id)]));

// Show a unit, with the reason if it failed.
export function unit(item, host = null) {
  return [
    h(
      "div.lead",
      { "data-key": item.name },
      badge(item.state),
      h("span.name", {}, item.name),
      host,
      item.leader ? h("span.tag", {}, "leader") : null,
      item.dying ? h("span.change", {}, "being removed") : null,
      item.status ? h("span", {}, item.status, item.message ? `: ${item.message}` : "") : null,
      item.ports.length ? h("span.dim", {}, `open ports: ${item.ports.join(", ")}`) : null,
      h("span.aside", {}, when(item.since, "")),
    ),
    item.why ? h("p.bad", {}, item.why) : null,
    Object.entries(item.relation_errors).map(([id, why]) => h("p.bad", {}, `${id}: ${why}`)),
  ];
}
