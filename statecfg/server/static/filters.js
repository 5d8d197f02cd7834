// Fields that filter a list. Their values are parameters of the page's address. The server filters.

import { changed, param, read, to } from "./address.js";
import { h } from "./dom.js";

const PAUSE = 250; // milliseconds after the last key before a search starts
const OUTCOMES = ["ok", "failed", "unknown", "unreachable", "refused", "locked", "cancelled"];
// A filter applies to the whole list, so a changed filter returns to the first page.
const FIRST_PAGE = { after: "", page: "" };

export function text(name, label, placeholder) {
  return h("input", { "data-key": `field ${name}`, "data-param": name, type: "search", "aria-label": label, placeholder, value: param(name), spellcheck: "false" });
}

export function choice(name, label, options) {
  return h(
    "select",
    { "data-key": `field ${name}`, "data-param": name, "aria-label": label },
    options.map(([value, title]) => h("option", { value, selected: value === param(name) }, title)),
  );
}

export function day(name, label) {
  return h("label.day", {}, label, " ", h("input", { "data-key": `field ${name}`, "data-param": name, type: "date", value: param(name) }));
}

export const outcome = () => choice("outcome", "Outcome", [["", "All outcomes"], ["trouble", "In trouble"], ...OUTCOMES.map((name) => [name, name])]);

// Return a pattern for a typed name, which may be a part of the whole name.
export const pattern = (typed) => (typed && !typed.includes("*") ? `*${typed}*` : typed);

// Return the filters of a list of hosts, runs or units in the form of the API.
export function query(names) {
  const values = {
    find: param("find"),
    host: pattern(param("host")),
    playbook: pattern(param("playbook")),
    outcome: param("outcome"),
    state: param("state"),
    since: midnight(param("since"), 0),
    until: midnight(param("until"), 1),
    after: param("after"),
  };
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

// Return when a day begins, in seconds since 1970 and in the browser's time zone. `later` is 1 for the next day.
function midnight(text, later) {
  const [year, month, date] = text.split("-").map(Number);
  const moment = new Date(year, month - 1, date + later);
  return text && !Number.isNaN(moment.getTime()) ? Math.max(1, moment.getTime() / 1000) : "";
}

// Return the conditions of a list of entities or tasks for the days from `since` to `until`.
export function days(field) {
  const { since, until } = query(["since", "until"]);
  const iso = (seconds) => new Date(seconds * 1000).toISOString();
  return [since ? `${field}=ge=${iso(since)}` : null, until ? `${field}=lt=${iso(until)}` : null].filter(Boolean);
}

export const isFiltered = (names) => names.some((name) => name !== "after" && param(name));

// Return links to the first and the next page of a list. `next` is the value of `after` for the next page.
export function pages(next, back = "First page", forward = "Next page") {
  const { section, argument, query: now } = read();
  const first = { ...Object.fromEntries(now), after: "" };
  if (!next && !now.get("after")) return null;
  return h("p.pages", {}, now.get("after") ? h("a.button", { href: to(section, argument, first) }, back) : null, next ? h("a.button", { href: changed({ after: next }) }, forward) : null);
}

export function onFilter(main, draw) {
  let timer = 0;
  let typing = "";
  const apply = (field) => {
    clearTimeout(timer);
    const name = field.dataset.param;
    if (param(name) === field.value) return;
    const address = changed({ [name]: field.value, ...FIRST_PAGE });
    // Add one history entry per typed text, not one per letter.
    if (typing === name) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    typing = field.type === "search" ? name : "";
    draw();
  };
  main.addEventListener("input", (event) => {
    if (event.target.dataset?.param === undefined || event.target.type !== "search") return;
    clearTimeout(timer);
    timer = setTimeout(apply, PAUSE, event.target);
  });
  main.addEventListener("change", (event) => {
    if (event.target.dataset?.param !== undefined) apply(event.target);
  });
  main.addEventListener("focusout", () => {
    typing = "";
  });
}

// After a step back or forward, fill the fields with the filters of the new address.
export function refill(main) {
  for (const field of main.querySelectorAll("[data-param]")) field.value = param(field.dataset.param);
}
