// Tasks: operations on entities, with links to their entities and runs.

import { listed, param, to } from "./address.js";
import { administrator, want } from "./data.js";
import { h } from "./dom.js";
import { entityLink, numbered, quoted, types } from "./entity_links.js";
import { choice, day, days, isFiltered, text } from "./filters.js";
import { fold } from "./fold.js";
import { drawResponse, runLink } from "./runs.js";
import { badge, empty, tone, when } from "./words.js";

export const TASKS = "/statecfg/1.0/tasks";
const PAGE = 25;
const FILTERS = ["find", "type", "operation", "status", "since", "until"];
const STATUSES = ["queued", "running", "success", "error"];
export const TITLES = { createDefinedEntity: "create", updateDefinedEntity: "change", deleteDefinedEntity: "delete", executeBehavior: "behavior" };
const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const NAMES = new RegExp(`\\brun ([0-9a-f]{12})\\b|urn:vcloud:entity:[\\w-]+:[\\w-]+:${UUID}|urn:vcloud:task:${UUID}`, "g");

export const taskLink = (id, ...label) => h("a", { href: to("tasks", id.split(":").pop()) }, label);

// Return what a task does, without the entity's id, which its link already contains.
const summary = (item) => (item.operation ?? "").replace(`(${item.owner.id})`, "") || item.owner.id.split(":").pop();

export function task(item) {
  const error = item.error;
  return h(
    `article.row.${tone(item.status)}`,
    { "data-key": item.id },
    h("div.lead", {}, badge(item.status), taskLink(item.id, h("span.name", {}, TITLES[item.operationName] ?? item.operationName)), item.owner?.id ? entityLink(item.owner.id, summary(item)) : null),
    h(
      "div.facts",
      {},
      h("span", {}, "started ", when(item.startTime)),
      item.endTime ? h("span", {}, "ended ", when(item.endTime)) : null,
      h("span.dim", {}, item.user?.name),
      item.status === "running" && item.progress !== null ? h("span.live", {}, h("progress", { max: 100, value: item.progress, "aria-label": "progress" }), ` ${item.progress} %`) : null,
    ),
    error ? h("p.bad", {}, h("strong", {}, error.minorErrorCode ?? "error"), " ", linked(error.message)) : null,
    item.details ? fold(`details ${item.id}`, false, h("span", {}, "Details"), () => h("pre.box", { tabindex: "0" }, linked(item.details))) : null,
    item.result?.resultContent ? fold(`result ${item.id}`, false, h("span", {}, "Result"), () => h("pre.box", { tabindex: "0" }, item.result.resultContent)) : null,
  );
}

// Return a string with links to the runs, entities and tasks in it. Only administrators get links to runs.
export function linked(text) {
  const parts = [];
  let end = 0;
  for (const match of (text ?? "").matchAll(NAMES)) {
    parts.push(text.slice(end, match.index));
    if (!match[1]) parts.push(match[0].includes(":task:") ? taskLink(match[0], match[0]) : entityLink(match[0]));
    else parts.push(administrator ? runLink(match[1], match[0]) : match[0]);
    end = match.index + match[0].length;
  }
  return [...parts, (text ?? "").slice(end)];
}

// Return the filters in the form of the API. The id of an entity contains its type without the version.
function conditions() {
  const conditions = days("creationDate");
  const words = quoted(param("find").trim());
  if (words) conditions.push(`(${["owner.name", "owner", "operation", "user"].map((field) => `${field}==*${words}*`).join(",")})`);
  if (param("type")) conditions.push(`owner==urn:vcloud:entity:${quoted(param("type"))}:*`);
  if (param("operation")) conditions.push(`operationName==${quoted(param("operation"))}`);
  if (param("status")) conditions.push(`status==${quoted(param("status"))}`);
  return conditions.join(";");
}

export function tasks() {
  const known = new Map(types().map(({ vendor, nss, name }) => [`${vendor}:${nss}`, name]));
  const query = { filter: conditions(), page: param("page", "1"), pageSize: PAGE };
  return [
    h("div.title", {}, h("h1", {}, "Tasks")),
    h(
      "div.filters",
      {},
      text("find", "Find tasks", "entity, user"),
      choice("type", "Type", [["", "All types"], ...known]),
      choice("operation", "Operation", [["", "All operations"], ...Object.entries(TITLES)]),
      choice("status", "Status", [["", "All statuses"], ...STATUSES.map((name) => [name, name])]),
      day("since", "from"),
      day("until", "to"),
    ),
    drawResponse(want(listed(TASKS, query), "tasks"), (page) => {
      if (page.resultTotal) return [h("section.list", {}, page.values.map(task)), numbered(page)];
      if (isFiltered(FILTERS)) return empty("No task matches these filters.");
      return empty("No tasks yet.", h("p.dim", {}, "A task appears here when an entity is created, changed or deleted, or when a user invokes a behavior."));
    }),
  ];
}

export function oneTask(id) {
  return drawResponse(want(`/api/task/${encodeURIComponent(id)}`, "tasks"), (item) => [
    h("p.path", {}, h("a", { href: to("tasks") }, "Tasks"), " / ", item.id),
    h("div.title", {}, h("h1", {}, TITLES[item.operationName] ?? item.operationName), badge(item.status)),
    h("p", {}, linked(item.operation)),
    h("section.list", {}, task(item)),
  ]);
}
