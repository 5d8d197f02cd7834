// Services, their units and relations.

import { want } from "./data.js";
import { h } from "./dom.js";
import { drawAnswer, hostLink } from "./runs.js";
import { badge, code, empty, plural, when } from "./words.js";

export function services() {
  return [
    h("div.title", {}, h("h1", {}, "Services")),
    drawAnswer(want("/statecfg/1.0/services", "services"), ({ services: all, relations }) => {
      if (!all.length) return empty("No services yet.", h("p.dim", {}, "A playbook declares services and their relations. Apply it to create their units."), code("statecfg service --help"));
      const projects = [...new Set(all.map((item) => item.project))];
      return projects.map((project) => [
        projects.length > 1 ? h("h2", {}, project) : null,
        h("section.list", {}, all.filter((item) => item.project === project).map((item) => service(item, relations))),
      ]);
    }),
  ];
}

function service(item, relations) {
  const own = relations.filter((relation) => relation.project === item.project && relation.ends.some(([name]) => name === item.name));
  const ends = (relation) => h("span", {}, relation.ends.map((end) => end.join(":")).join(" ↔ "), relation.dying ? h("span.change", {}, " (being removed)") : null);
  return h(
    `article.row.${item.units.some((member) => member.failed) ? "bad" : "plain"}`,
    { "data-key": `${item.project} ${item.name}` },
    h("div.lead", {}, h("span.name", {}, item.name), h("span.dim", {}, item.playbook), h("span.dim", {}, plural(item.units.length, "unit"))),
    own.length ? h("div.facts", {}, own.map(ends)) : h("p.dim", {}, "no relations"),
    item.units.map((member) => unit(member, hostLink(member.host))),
  );
}

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
