// What lists and links of entities share.

import { changed, to } from "./address.js";
import { h } from "./dom.js";

export const API = "/cloudapi/1.0.0";

export const entityLink = (id, ...label) => h("a", { href: to("entities", id) }, label.length ? label : id);

export const stateOf = (entity) => entity.entityState ?? entity.state;

// Return links to the previous and the next page of a list with numbered pages.
export function numbered(list) {
  if (list.pageCount < 2) return null;
  return h(
    "p.pages",
    {},
    list.page > 1 ? h("a.button", { href: changed({ page: list.page - 1 }) }, "Newer") : null,
    h("span.dim", {}, ` ${list.page} of ${list.pageCount} `),
    list.page < list.pageCount ? h("a.button", { href: changed({ page: list.page + 1 }) }, "Older") : null,
  );
}
