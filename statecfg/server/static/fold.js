// What is open, filled in or asked for on the page. It outlives every drawing.

import { h } from "./dom.js";

const open = new Map(); // key → whether somebody opened or closed it
const fields = new Map(); // key → what somebody filled in

export const isOpen = (key, first = false) => open.get(key) ?? first;
export const field = (key, none = "") => fields.get(key) ?? none;

// Something to open and close. Its body, a function, is made when it is open.
export function fold(key, first, head, body, kind = "fold") {
  const now = isOpen(key, first);
  return h(
    `details.${kind}`,
    { "data-key": key, "data-fold": key, open: now },
    h("summary", {}, head),
    now ? h("div.body", {}, body()) : null,
  );
}

export const text = (key, label, placeholder) =>
  h("input", { "data-key": `field ${key}`, "data-field": key, type: "search", "aria-label": label, placeholder, spellcheck: "false" });

export function choice(key, label, options) {
  const chosen = field(key, options[0][0]);
  return h(
    "select",
    { "data-key": `field ${key}`, "data-field": key, "aria-label": label },
    options.map(([value, name]) => h("option", { value, selected: value === chosen }, name)),
  );
}

// A button that changes a field: the next page, more of a list.
export const button = (key, value, ...label) => h("button.quiet", { type: "button", "data-set": key, "data-value": value }, label);

// A button that opens what has a key, and goes there.
export const goes = (key, attributes, ...label) => h("button.chip", { type: "button", "data-goes": key, ...attributes }, label);

export function openFolds(main, draw) {
  main.addEventListener(
    "toggle",
    (event) => {
      const key = event.target.dataset.fold;
      if (key === undefined || (open.has(key) && open.get(key) === event.target.open)) return;
      const drawn = event.target.querySelector(":scope > .body") !== null;
      if (drawn === event.target.open) return; // it was drawn so
      open.set(key, event.target.open);
      draw();
    },
    true,
  );
  main.addEventListener("click", (event) => {
    const to = event.target.closest("[data-goes]");
    if (!to) return;
    const key = to.dataset.goes;
    open.set(key, true);
    const within = to.dataset.within;
    if (within) open.set(within, true);
    draw();
    setTimeout(() => {
      const found = [...main.querySelectorAll("[data-fold]")].find((each) => each.dataset.fold === key);
      found?.scrollIntoView({ block: "center", behavior: "smooth" });
      found?.querySelector("summary").focus({ preventScroll: true });
    }, 80);
  });
}

export function search(main, draw) {
  const note = (event) => {
    const key = event.target.dataset?.field;
    if (key === undefined) return;
    fields.set(key, event.target.value);
    if (!key.endsWith(" page")) fields.delete(`${key.split(" ")[0]} page`);
    draw();
  };
  main.addEventListener("input", note);
  main.addEventListener("change", note);
  main.addEventListener("click", (event) => {
    const to = event.target.closest("[data-set]");
    if (!to) return;
    fields.set(to.dataset.set, to.dataset.value);
    draw();
  });
}
