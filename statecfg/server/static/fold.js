// Elements that open and close, and long lists. Their state is kept when the page is drawn again.

import { h } from "./dom.js";

const open = new Map(); // key → whether the user opened or closed it
const visibleCounts = new Map(); // key of a long list → number of visible entries

const isOpen = (key, first) => open.get(key) ?? first;

// Return an element that opens and closes. `first` is its initial state. `body` is a function, called only if it is open.
export function fold(key, first, head, body, classes = "fold") {
  const now = isOpen(key, first);
  return h(
    `details.${classes}`,
    { "data-key": key, "data-fold": key, open: now },
    h("summary", {}, head),
    now ? h("div.body", {}, body()) : null,
  );
}

// Return the first entries of a long list, and a button that shows more.
export function part(key, all, draw, step = 100) {
  const count = visibleCounts.get(key) ?? step;
  const rest = all.length - count;
  const more = rest > 0 ? h("button.quiet", { type: "button", "data-more": key, "data-count": count + step, "data-key": `${key} more` }, `Show ${Math.min(step, rest)} more of ${rest.toLocaleString()}`) : null;
  return [all.slice(0, count).map(draw), more];
}

// Return a button that opens the element with this key and scrolls to it.
export const goes = (key, attributes, ...label) => h("button.chip", { type: "button", "data-goes": key, ...attributes }, label);

export function onFold(main, draw) {
  main.addEventListener(
    "toggle",
    (event) => {
      const key = event.target.dataset.fold;
      if (key === undefined || (open.has(key) && open.get(key) === event.target.open)) return;
      const drawn = event.target.querySelector(":scope > .body") !== null;
      if (drawn === event.target.open) return; // the page opened it, not the user
      open.set(key, event.target.open);
      draw();
    },
    true,
  );
  main.addEventListener("click", (event) => {
    const more = event.target.closest("[data-more]");
    if (more) {
      visibleCounts.set(more.dataset.more, Number(more.dataset.count));
      draw();
    }
    const button = event.target.closest("[data-goes]");
    if (button) goTo(main, button, draw);
  });
}

function goTo(main, button, draw) {
  const { goes: key, within, list, at } = button.dataset;
  open.set(key, true);
  if (within) open.set(within, true);
  if (list && Number(at) >= (visibleCounts.get(list) ?? 0)) visibleCounts.set(list, Number(at) + 1);
  draw();
  setTimeout(() => {
    const element = [...main.querySelectorAll("[data-fold]")].find((item) => item.dataset.fold === key);
    element?.scrollIntoView({ block: "center", behavior: "smooth" });
    element?.querySelector("summary").focus({ preventScroll: true });
  }, 80);
}
