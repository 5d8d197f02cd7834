// Tasks: operations on entities, with links to their entities and runs.

import { listed, param, to } from "./address.js";
import { administrator, want } from "./data.js";
import { h } from "./dom.js";
import { entityLink, numbered } from "./entities.js";
import { choice } from "./filters.js";
import { fold } from "./fold.js";
import { given, runLink } from "./runs.js";
import { badge, empty, tone, when } from "./words.js";

export const TASKS = "/statecfg/1.0/tasks";
const PAGE = 25;
const STATUSES = ["queued", "running", "success", "error"];
const TITLES = { createDefinedEntity: "create", updateDefinedEntity: "change", deleteDefinedEntity: "delete", executeBehavior: "behavior", resolveDefinedEntity: "resolve" };
const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const NAMES = new RegExp(`\\brun ([0-9a-f]{12})\\b|urn:vcloud:entity:[\\w-]+:[\\w-]+:${UUID}|urn:vcloud:task:${UUID}`, "g");

export const taskLink = (id, ...label) => h("a", { href: to("tasks", id.split(":").pop()) }, label);

// Return what a task does, without the entity's id, which its link already contains.
const summary = (each) => (each.operation ?? "").replace(`(${each.owner.id})`, "") || each.owner.id.split(":").pop();

export function task(each) {
  const failed = each.error;
  return h(
    `article.row.${tone(each.status)}`,
    { "data-key": each.id },
    h("div.lead", {}, badge(each.status), taskLink(each.id, h("span.name", {}, TITLES[each.operationName] ?? each.operationName)), each.owner?.id ? entityLink(each.owner.id, summary(each)) : null),
    h(
      "div.facts",
      {},
      h("span", {}, "started ", when(each.startTime)),
      each.endTime ? h("span", {}, "ended ", when(each.endTime)) : null,
      h("span.dim", {}, each.user?.name),
      each.status === "running" && each.progress !== null ? h("span.live", {}, h("progress", { max: 100, value: each.progress, "aria-label": "progress" }), ` ${each.progress} %`) : null,
    ),
    failed ? h("p.bad", {}, h("strong", {}, failed.minorErrorCode ?? "error"), " ", linked(failed.message)) : null,
    each.details ? fold(`details ${each.id}`, false, h("span", {}, "Details"), () => h("pre.box", { tabindex: "0" }, linked(each.details))) : null,
    each.result?.resultContent ? fold(`result ${each.id}`, false, h("span", {}, "Result"), () => h("pre.box", { tabindex: "0" }, each.result.resultContent)) : null,
  );
}

// Return a text with links to the runs, entities and tasks in it. Only administrators get links to runs.
export function linked(text) {
  const parts = [];
  let end = 0;
  for (const found of (text ?? "").matchAll(NAMES)) {
    parts.push(text.slice(end, found.index));
    if (!found[1]) parts.push(found[0].includes(":task:") ? taskLink(found[0], found[0]) : entityLink(found[0]));
    else parts.push(administrator ? runLink(found[1], found[0]) : found[0]);
    end = found.index + found[0].length;
  }
  return [...parts, (text ?? "").slice(end)];
}

export function tasks() {
  const status = param("status");
  const options = [["", "All tasks"], ...STATUSES.map((name) => [name, name])];
  const query = { filter: status ? `status==${status}` : "", page: param("page", "1"), pageSize: PAGE };
  return [
    h("div.title", {}, h("h1", {}, "Tasks"), choice("status", "Status", options)),
    given(want(listed(TASKS, query), "tasks"), (found) =>
      found.resultTotal
        ? [h("section.list", {}, found.values.map(task)), numbered(found)]
        : empty(status ? "No task has this status." : "No tasks yet.", h("p.dim", {}, "A task appears here when an entity is created, changed or deleted, or when a user invokes a behavior.")),
    ),
  ];
}

export function oneTask(id) {
  return given(want(`/api/task/${encodeURIComponent(id)}`, "tasks"), (found) => [
    h("p.path", {}, h("a", { href: to("tasks") }, "Tasks"), " / ", found.id),
    h("div.title", {}, h("h1", {}, TITLES[found.operationName] ?? found.operationName), badge(found.status)),
    h("p", {}, linked(found.operation)),
    h("section.list", {}, task(found)),
  ]);
}
