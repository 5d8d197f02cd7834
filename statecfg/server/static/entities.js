// Entities and tasks, as far as who is signed in may see them.

import { want } from "./data.js";
import { h } from "./dom.js";
import { button, choice, field, fold, text } from "./fold.js";
import { tree } from "./hosts.js";
import { given, pair } from "./runs.js";
import { badge, code, empty, tone, when } from "./words.js";

const API = "/cloudapi/1.0.0";
const PAGE = 25;
const STATES = ["PRE_CREATED", "RESOLVED", "RESOLUTION_ERROR", "IN_DELETION"];
const SHOWN = 5;

const listed = (path, query) => `${path}?${new URLSearchParams(Object.entries(query).filter(([, given]) => given !== ""))}`;
// A text in a filter: what means something there stands behind a backslash.
const quoted = (text) => text.replace(/[\\;,()]/g, "\\$&");

export const entityLink = (id, ...label) => h("a", { href: `#/entities/${encodeURIComponent(id)}` }, label.length ? label : id);
const typeName = (id) => (id ?? "").split(":").slice(3).join(" ");

export function entities() {
  const type = field("entities type");
  const conditions = [];
  if (field("entities state")) conditions.push(`state==${field("entities state")}`);
  if (field("entities find").trim()) conditions.push(`name==*${quoted(field("entities find").trim())}*`);
  const page = Number(field("entities page", 1));
  const path = type ? `${API}/entities/types/${type.split(":").slice(3).map(encodeURIComponent).join("/")}` : `${API}/entities`;
  const types = want(listed(`${API}/entityTypes`, { pageSize: 128 }), "entities").value?.values ?? [];
  return [
    h("div.title", {}, h("h1", {}, "Entities")),
    h(
      "div.filters",
      {},
      choice("entities type", "Type", [["", "All types"], ...types.map((each) => [each.id, `${each.name} ${each.version}`])]),
      choice("entities state", "State", [["", "All states"], ...STATES.map((state) => [state, state])]),
      text("entities find", "Find entities", "name"),
    ),
    given(want(listed(path, { filter: conditions.join(";"), page, pageSize: PAGE, sortDesc: "lastModificationDate" }), "entities"), (found) => {
      if (!found.resultTotal && conditions.length) return empty("No entity is like that.");
      if (!found.resultTotal && !types.length) {
        return empty("There are no types yet, so no entities.", code("statecfg entity type create --help"), h("p.dim", {}, "Or by the API: /openapi.json describes it."));
      }
      if (!found.resultTotal) return empty("There is no entity here that you may see.", code("statecfg entity create TYPE NAME --set KEY=VALUE"));
      return [h("section.list", {}, found.values.map(row)), pages(found, "entities page")];
    }),
  ];
}

const stateOf = (entity) => entity.entityState ?? entity.state;

function row(entity) {
  const state = stateOf(entity);
  return h(
    `article.row.${tone(state) === "bad" ? "bad" : "plain"}`,
    { "data-key": entity.id },
    h("div.lead", {}, badge(state), entityLink(entity.id, h("span.name", {}, entity.name)), h("span.dim", {}, typeName(entity.entityType))),
    h("div.facts", {}, h("span", {}, entity.owner?.name), "changed ", when(entity.lastModificationDate)),
    entity.message ? h("p.bad", {}, entity.message) : null,
  );
}

function pages(found, key) {
  if (found.pageCount < 2) return null;
  return h(
    "p.pages",
    {},
    found.page > 1 ? button(key, found.page - 1, "Newer") : null,
    h("span.dim", {}, ` ${found.page} of ${found.pageCount} `),
    found.page < found.pageCount ? button(key, found.page + 1, "Older") : null,
  );
}

export function entity(id) {
  const about = want(listed("/statecfg/1.0/tasks", { filter: `owner==${quoted(id)}`, pageSize: PAGE }), "tasks");
  return given(want(`${API}/entities/${encodeURIComponent(id)}`, "entities"), (found) => [
    h("p.path", {}, h("a", { href: "#/entities" }, "Entities"), " / ", found.id),
    h("div.title", {}, h("h1", {}, found.name), badge(stateOf(found))),
    found.message ? h("div.note.bad", {}, found.message) : null,
    h("dl.facts", {}, pair("Type", typeName(found.entityType)), pair("Owner", found.owner?.name), pair("Made", when(found.creationDate)), pair("Changed", when(found.lastModificationDate))),
    h("h2", {}, "Content"),
    tree(found.entity),
    fold(`content ${id}`, false, h("span", {}, "As JSON"), () => h("pre.box", { tabindex: "0" }, JSON.stringify(found.entity, null, 2))),
    about.value?.values?.length ? [h("h2", {}, "Tasks"), h("section.list", {}, about.value.values.map(task))] : null,
  ]);
}

const WORDS = { createDefinedEntity: "create", updateDefinedEntity: "change", deleteDefinedEntity: "delete", executeBehavior: "behavior", resolveDefinedEntity: "resolve" };

// What a task is at, without the id that its link leads to anyway.
const about = (each) => (each.operation ?? "").replace(`(${each.owner.id})`, "") || each.owner.id.split(":").pop();

export function task(each) {
  const failed = each.error;
  return h(
    `article.row.${tone(each.status)}`,
    { "data-key": each.id },
    h("div.lead", {}, badge(each.status), h("span.name", {}, WORDS[each.operationName] ?? each.operationName), each.owner?.id ? entityLink(each.owner.id, about(each)) : null),
    h(
      "div.facts",
      {},
      h("span", {}, "begun ", when(each.startTime)),
      each.endTime ? h("span", {}, "ended ", when(each.endTime)) : null,
      h("span.dim", {}, each.user?.name),
      each.status === "running" && each.progress !== null ? h("span.live", {}, h("progress", { max: 100, value: each.progress, "aria-label": "progress" }), ` ${each.progress} %`) : null,
    ),
    failed ? h("p.bad", {}, h("strong", {}, failed.minorErrorCode ?? "error"), " ", failed.message) : null,
    each.details ? fold(`details ${each.id}`, false, h("span", {}, "Details"), () => h("pre.box", { tabindex: "0" }, each.details)) : null,
    each.result?.resultContent ? fold(`result ${each.id}`, false, h("span", {}, "Result"), () => h("pre.box", { tabindex: "0" }, each.result.resultContent)) : null,
  );
}

export function tasks() {
  const state = field("tasks state");
  const page = Number(field("tasks page", 1));
  const options = [["", "All tasks"], ...["queued", "running", "success", "error"].map((name) => [name, name])];
  return [
    h("div.title", {}, h("h1", {}, "Tasks"), choice("tasks state", "Status", options)),
    given(want(listed("/statecfg/1.0/tasks", { filter: state ? `status==${state}` : "", page, pageSize: PAGE }), "tasks"), (found) =>
      found.resultTotal
        ? [h("section.list", {}, found.values.map(task)), pages(found, "tasks page")]
        : empty(state ? "No task is like that." : "No task yet.", h("p.dim", {}, "Creating, changing and deleting an entity are tasks; so is a behavior that somebody invokes.")),
    ),
  ];
}

export function overviewOfEntities() {
  const broken = want(listed(`${API}/entities`, { filter: "state==RESOLUTION_ERROR", pageSize: SHOWN }), "entities").value;
  const failed = want(listed("/statecfg/1.0/tasks", { filter: "status==error", pageSize: SHOWN }), "tasks").value;
  const running = want(listed("/statecfg/1.0/tasks", { filter: "status==running", pageSize: SHOWN }), "tasks").value;
  const all = want(listed(`${API}/entities`, { pageSize: 1 }), "entities").value;
  const day = (failed?.values ?? []).filter((each) => Date.now() - new Date(each.endTime ?? each.startTime) < 86_400_000);
  return [
    running?.values.length ? [h("h2", {}, "Tasks under way"), h("section.list", {}, running.values.map(task))] : null,
    broken?.values.length ? [h("h2", {}, "Entities in trouble", broken.resultTotal > SHOWN ? h("span.dim", {}, ` ${broken.resultTotal}`) : null), h("section.list", {}, broken.values.map(row))] : null,
    day.length ? [h("h2", {}, "Tasks that failed today"), h("section.list", {}, day.map(task))] : null,
    all?.resultTotal ? h("p", {}, h("a", { href: "#/entities" }, `${all.resultTotal.toLocaleString()} entities`), " · ", h("a", { href: "#/tasks" }, "tasks")) : null,
  ];
}
