// Entities that the signed-in user may see.

import { listed, param, to } from "./address.js";
import { administrator, role, want } from "./data.js";
import { actions, newEntity } from "./edit.js";
import { h } from "./dom.js";
import { API, entityLink, numbered, quoted, stateOf, types } from "./entity_links.js";
import { choice, day, days, text } from "./filters.js";
import { fold } from "./fold.js";
import { tree } from "./hosts.js";
import { drawResponse, runRow, RUNS } from "./runs.js";
import { task, TASKS } from "./tasks.js";
import { badge, code, empty, pair, tone, when } from "./words.js";

const PAGE = 25;
const SHOWN = 5;
const DAY = 86_400_000; // milliseconds
const STATES = ["PRE_CREATED", "RESOLVED", "RESOLUTION_ERROR", "IN_DELETION"];

const typeName = (id) => (id ?? "").split(":").slice(3).join(" ");

export function entities() {
  const type = param("type");
  const conditions = days("lastModificationDate");
  if (param("state")) conditions.push(`state==${param("state")}`);
  if (param("find").trim()) conditions.push(`name==*${quoted(param("find").trim())}*`);
  const path = type ? `${API}/entities/types/${type.split(":").slice(3).map(encodeURIComponent).join("/")}` : `${API}/entities`;
  const known = types();
  const query = { filter: conditions.join(";"), page: param("page", "1"), pageSize: PAGE, sortDesc: "lastModificationDate" };
  return [
    h("div.title", {}, h("h1", {}, "Entities"), role === "viewer" ? null : newEntity()),
    h(
      "div.filters",
      {},
      choice("type", "Type", [["", "All types"], ...known.map(({ id, name, version }) => [id, `${name} ${version}`])]),
      choice("state", "State", [["", "All states"], ...STATES.map((state) => [state, state])]),
      text("find", "Find entities", "name"),
      day("since", "changed from"),
      day("until", "to"),
    ),
    drawResponse(want(listed(path, query), "entities"), (page) => {
      if (!page.resultTotal && conditions.length) return empty("No entity matches these filters.");
      if (!page.resultTotal && !known.length) {
        return empty("There are no types yet, so there are no entities.", code("statecfg entity type create --help"), h("p.dim", {}, "You can also use the API. /openapi.json describes it."));
      }
      if (!page.resultTotal) return empty("There are no entities that you may see.", code("statecfg entity create TYPE NAME --set KEY=VALUE"));
      return [h("section.list", {}, page.values.map(row)), numbered(page)];
    }),
  ];
}

function row(entity) {
  const state = stateOf(entity);
  return h(
    `article.row.${tone(state) === "bad" ? "bad" : "plain"}`,
    { "data-key": entity.id },
    h("div.lead", {}, badge(state), entityLink(entity.id, h("span.name", {}, entity.name)), h("span.dim", {}, typeName(entity.entityType))),
    h("div.facts", {}, h("span", {}, entity.owner?.name), h("span", {}, "changed ", when(entity.lastModificationDate))),
    entity.message ? h("p.bad", {}, entity.message) : null,
  );
}

export function entity(id) {
  const tasks = want(listed(TASKS, { filter: `owner==${quoted(id)}`, pageSize: PAGE }), "tasks").value?.values ?? [];
  return drawResponse(want(`${API}/entities/${encodeURIComponent(id)}`, "entities"), (record) => [
    h("p.path", {}, h("a", { href: to("entities") }, "Entities"), " / ", record.id),
    h("div.title", {}, h("h1", {}, record.name), badge(stateOf(record))),
    record.message ? h("div.note.bad", {}, record.message) : null,
    h("dl.facts", {}, pair("Type", typeName(record.entityType)), pair("Owner", record.owner?.name), pair("Created", when(record.creationDate)), pair("Changed", when(record.lastModificationDate))),
    actions(record),
    h("h2", {}, "Content"),
    tree(record.entity),
    fold(`content ${id}`, false, h("span", {}, "As JSON"), () => h("pre.box", { tabindex: "0" }, JSON.stringify(record.entity, null, 2))),
    tasks.length ? [h("h2", {}, "Tasks"), h("section.list", {}, tasks.map(task))] : null,
    administrator ? runsOf(id) : null,
  ]);
}

// Show the runs of playbooks that behaviors applied for an entity.
function runsOf(id) {
  const runs = want(listed(RUNS, { playbook: `*#${id.split(":").pop()}`, limit: SHOWN }), "runs").value?.runs ?? [];
  return runs.length ? [h("h2", {}, "Runs"), h("section.list", {}, runs.map(runRow))] : null;
}

export function overviewOfEntities() {
  const broken = want(listed(`${API}/entities`, { filter: "state==RESOLUTION_ERROR", pageSize: SHOWN }), "entities").value;
  const failed = want(listed(TASKS, { filter: "status==error", pageSize: SHOWN }), "tasks").value;
  const running = want(listed(TASKS, { filter: "status==running", pageSize: SHOWN }), "tasks").value;
  const all = want(listed(`${API}/entities`, { pageSize: 1 }), "entities").value;
  const today = (failed?.values ?? []).filter((item) => Date.now() - new Date(item.endTime ?? item.startTime) < DAY);
  return [
    running?.values.length ? [h("h2", {}, "Tasks in progress"), h("section.list", {}, running.values.map(task))] : null,
    broken?.values.length ? [h("h2", {}, "Entities with errors", broken.resultTotal > SHOWN ? h("span.dim", {}, ` ${broken.resultTotal}`) : null), h("section.list", {}, broken.values.map(row))] : null,
    today.length ? [h("h2", {}, "Tasks that failed today"), h("section.list", {}, today.map(task))] : null,
    all?.resultTotal ? h("p", {}, h("a", { href: to("entities") }, `${all.resultTotal.toLocaleString()} entities`), " · ", h("a", { href: to("tasks") }, "tasks")) : null,
  ];
}
