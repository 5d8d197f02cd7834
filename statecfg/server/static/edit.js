// Forms that create, change, resolve and delete entities. The page offers only what the user may do. The server
// checks each request again.

import { param, to } from "./address.js";
import { role, send, want } from "./data.js";
import { h } from "./dom.js";
import { API, stateOf } from "./entity_links.js";
import { choice } from "./filters.js";
import { drawResponse } from "./runs.js";
import { content, fields, isExact } from "./schema_form.js";
import { empty } from "./words.js";

const RIGHTS = "/statecfg/1.0/rights";
const LEVELS = ["", "ReadOnly", "ReadWrite", "FullControl"];

const drafts = new Map(); // id of an entity or type → { open, etag, value, message, busy }: the state of its form
const draft = (id) => drafts.get(id) ?? {};
const atLeast = (level, needed) => LEVELS.indexOf(level) >= LEVELS.indexOf(needed);

// Creating

function creatable() {
  const levels = want(RIGHTS, "entities").value?.types ?? {};
  return Object.keys(levels).filter((id) => atLeast(levels[id], "ReadWrite"));
}

export function newEntity() {
  return creatable().length ? h("a.button", { href: to("entities", "new", { type: param("type") }) }, "New entity") : null;
}

export function create() {
  const types = creatable();
  const type = types.includes(param("type")) ? param("type") : "";
  const names = types.map((id) => [id, id.split(":").slice(3).join(" ")]);
  return [
    h("p.path", {}, h("a", { href: to("entities") }, "Entities"), " / new"),
    h("div.title", {}, h("h1", {}, "New entity")),
    role === "viewer" || !types.length
      ? empty("You may not create entities.", h("p.dim", {}, "This requires the role author, and ReadWrite access to a type."))
      : h("div.filters", {}, choice("type", "Type", [["", "Select a type"], ...names])),
    type ? drawResponse(want(`${API}/entityTypes/${encodeURIComponent(type)}`, "entities"), createForm) : null,
  ];
}

function createForm(type) {
  return h(
    "form.card",
    { "data-form": "create", "data-id": type.id, "data-key": `create ${type.id}` },
    h("label.field", {}, h("span", {}, "Name", h("span.bad", { title: "required" }, " *")), h("input", { name: "name", type: "text", required: true, maxlength: "256" })),
    fields(type.schema, undefined),
    buttons(type.id, "Create", h("a.button", { href: to("entities") }, "Cancel")),
  );
}

// Changing, resolving and deleting

export function actions(entity) {
  const level = want(`${RIGHTS}/${encodeURIComponent(entity.id)}`, "entities").value?.level ?? "";
  if (role === "viewer" || !atLeast(level, "ReadWrite")) return null;
  const { open } = draft(entity.id);
  if (open === "change") return changeForm(entity);
  const deletes = atLeast(level, "FullControl") && stateOf(entity) !== "PRE_CREATED";
  return [
    h(
      "p.buttons",
      {},
      act("open-change", entity.id, "Change"),
      ["PRE_CREATED", "RESOLUTION_ERROR"].includes(stateOf(entity)) ? act("resolve", entity.id, "Resolve") : null,
      deletes && open !== "delete" ? act("open-delete", entity.id, "Delete") : null,
    ),
    open === "delete" ? h("div.note.bad", {}, h("p", {}, `Delete ${entity.name}? You cannot undo this.`), h("p.buttons", {}, act("delete", entity.id, "Delete now"), act("close", entity.id, "Cancel"))) : null,
    problem(entity.id),
  ];
}

const act = (action, id, label) => h("button.quiet", { type: "button", "data-act": action, "data-id": id, "data-key": action }, label);

function problem(id) {
  const { message } = draft(id);
  return message ? h("p.alarm", { role: "alert" }, message) : null;
}

function buttons(id, label, cancel) {
  return [problem(id), h("p.buttons", {}, h("button", { type: "submit", disabled: Boolean(draft(id).busy) }, label), cancel)];
}

function changeForm(entity) {
  if (!isExact(entity.entity)) {
    return h("div.note.change", {}, h("p", {}, "The content has numbers that a browser cannot hold exactly. Change it with `statecfg entity update`."), h("p.buttons", {}, act("close", entity.id, "Close")));
  }
  const { etag, value } = draft(entity.id);
  return drawResponse(want(`${API}/entityTypes/${encodeURIComponent(entity.entityType)}`, "entities"), (type) =>
    h(
      "form.card",
      { "data-form": "change", "data-id": entity.id, "data-key": `change ${etag}` },
      h("label.field", {}, h("span", {}, "Name", h("span.bad", { title: "required" }, " *")), h("input", { name: "name", type: "text", required: true, maxlength: "256", value: value.name })),
      fields(type.schema, value.entity),
      current(entity.id).etag === etag ? null : h("p.note.change", {}, "This entity has changed since you opened the form. The server will refuse to save it. ", act("open-change", entity.id, "Load the current content")),
      buttons(entity.id, "Save", act("close", entity.id, "Cancel")),
    ),
  );
}

const path = (id) => `${API}/entities/${encodeURIComponent(id)}`;
const current = (id) => want(path(id), "entities");

export function onEdit(main, draw) {
  const set = (id, values) => {
    drafts.set(id, { ...draft(id), message: "", ...values });
    draw();
  };
  const requested = async (id, method, address, body, etag) => {
    if (draft(id).busy) return null;
    set(id, { busy: true });
    const answer = await send(method, address, body, etag);
    set(id, { busy: false, message: answer.ok ? "" : answer.message });
    return answer.ok ? answer : null;
  };
  const perform = {
    "open-change": (id) => set(id, { open: "change", etag: current(id).etag, value: current(id).value }),
    "open-delete": (id) => set(id, { open: "delete", etag: current(id).etag }),
    close: (id) => drafts.delete(id) && draw(),
    resolve: (id) => requested(id, "POST", `${path(id)}/resolve`),
    delete: async (id) => {
      const answer = await requested(id, "DELETE", path(id), undefined, draft(id).etag);
      if (answer) drafts.delete(id);
      if (answer) location.hash = to("tasks", answer.location.split("/").pop());
    },
  };
  main.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button) perform[button.dataset.act](button.dataset.id);
  });
  const submit = {
    create: async (id, body) => {
      const answer = await requested(id, "POST", `${API}/entityTypes/${encodeURIComponent(id)}?resolveEntity=true`, body);
      if (!answer) return;
      drafts.delete(id);
      const task = await send("GET", new URL(answer.location).pathname);
      location.hash = task.ok ? to("entities", task.value.owner.id) : to("entities");
    },
    change: async (id, body) => {
      if (await requested(id, "PUT", path(id), body, draft(id).etag)) drafts.delete(id);
      draw();
    },
  };
  // Clear the error: an invalid field would block the next attempt.
  main.addEventListener("input", (event) => event.target.setCustomValidity?.(""));
  main.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-form]");
    if (!form) return;
    event.preventDefault();
    const entity = content(form);
    if (entity !== null) submit[form.dataset.form](form.dataset.id, { name: form.elements.name.value, entity });
  });
}
