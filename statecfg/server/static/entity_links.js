// What lists and links of entities share.

import { changed, listed, to } from "./address.js";
import { want } from "./data.js";
import { h } from "./dom.js";

export const API = "/cloudapi/1.0.0";

export const entityLink = (id, ...label) => h("a", { href: to("entities", id) }, label.length ? label : id);

export const stateOf = (entity) => entity.entityState ?? entity.state;

// Return a value for a filter: special characters get a backslash.
export const quoted = (text) => text.replace(/[\\;,()]/g, "\\$&");

// Return the types that the user may see, as far as the server has sent them.
export const types = () => want(listed(`${API}/entityTypes`, { pageSize: 128 }), "entities").value?.values ?? [];

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
