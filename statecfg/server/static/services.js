// Services, their units and relations.

import { want } from "./data.js";
import { h } from "./dom.js";
import { given, hostLink } from "./runs.js";
import { badge, code, empty, plural, when } from "./words.js";

export function services() {
  return [
    h("div.title", {}, h("h1", {}, "Services")),
    given(want("/statecfg/1.0/services", "services"), ({ services: all, relations }) => {
      if (!all.length) return empty("No services yet.", h("p.dim", {}, "A playbook declares services and their relations. Apply it to create their units."), code("statecfg service --help"));
      const projects = [...new Set(all.map((each) => each.project))];
      return projects.map((project) => [
        projects.length > 1 ? h("h2", {}, project) : null,
        h("section.list", {}, all.filter((each) => each.project === project).map((each) => service(each, relations))),
      ]);
    }),
  ];
}

function service(found, relations) {
  const own = relations.filter((each) => each.project === found.project && each.ends.some(([name]) => name === found.name));
  const ends = (each) => h("span", {}, each.ends.map(([name, relation]) => `${name}:${relation}`).join(" ↔ "), each.dying ? h("span.change", {}, " (being removed)") : null);
  return h(
    `article.row.${found.units.some((each) => each.failed) ? "bad" : "plain"}`,
    { "data-key": `${found.project} ${found.name}` },
    h("div.lead", {}, h("span.name", {}, found.name), h("span.dim", {}, found.playbook), h("span.dim", {}, plural(found.units.length, "unit"))),
    own.length ? h("div.facts", {}, own.map(ends)) : h("p.dim", {}, "no relations"),
    found.units.map((each) => unit(each, hostLink(each.host))),
  );
}

// Show a unit, with the reason if it failed.
export function unit(each, host = null) {
  return [
    h(
      "div.lead",
      { "data-key": each.name },
      badge(each.state),
      h("span.name", {}, each.name),
      host,
      each.leader ? h("span.tag", {}, "leader") : null,
      each.dying ? h("span.change", {}, "being removed") : null,
      each.status ? h("span", {}, each.status, each.message ? `: ${each.message}` : "") : null,
      each.ports.length ? h("span.dim", {}, `open ports: ${each.ports.join(", ")}`) : null,
      h("span.aside", {}, when(each.since, "")),
    ),
    each.why ? h("p.bad", {}, each.why) : null,
    Object.entries(each.relation_errors).map(([id, why]) => h("p.bad", {}, `${id}: ${why}`)),
  ];
}
