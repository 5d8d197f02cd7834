// The report of one host: problems, layers with their nodes, hooks and units.

import { h } from "./dom.js";
import { fold, goes, part } from "./fold.js";
import { badge, plural, sign, tone, when } from "./words.js";

const CHIPS = 8; // maximum number of nodes that the map shows for a layer, besides unchanged ones
const COLUMNS = 50; // maximum number of layers in the map, and in one part of the list
const FEW = 8; // more skipped nodes than this are folded
const ALL = []; // no search words: all nodes match
const LINES = 400; // maximum number of visible lines of a difference or a log
const DRIFT = {
  host: "Drift: the host changed.",
  definition: "Drift: the definition changed.",
  "host definition": "Drift: the host and the definition changed.",
  pending: "Not applied yet.",
};
const DIGEST = /^sha256:([0-9a-f]{12})[0-9a-f]{52} \((\d+) bytes\)$/;

// Show a report. With `words`, show only nodes that contain all of them; if no node does, show all nodes.
export function report(host, key, words = ALL) {
  const hits = words.length ? selected(host, words) : host;
  const { layers = [], removals, left } = hits ?? host;
  return [
    words.length && !hits ? h("p.dim", {}, "No resource of this host contains these words.") : null,
    trouble(host),
    stopped(host),
    layers.length ? map(layers, key) : null,
    section(removals, "Removed from the host", `${key} goes`, removed),
    part(`${key} layers`, layers.map((layer, number) => [layer, number]), ([layer, number]) =>
      layer.length ? [h("h3", {}, `Layer ${number + 1}`, h("span.dim", {}, ` of ${layers.length}`)), list(layer, `${key} layer ${number}`, word)] : null,
    COLUMNS),
    section(left, "No longer in the definition, and kept", `${key} left`, () => "kept"),
    fired(host.fired),
    units(host.units),
    owed(host.owed),
    layers.length || host.removals?.length ? null : h("p.dim", {}, "The host reported no resources."),
  ];
}

// Return the nodes of a report that contain all words, or null if no node does.
function selected(host, words) {
  const has = (node) => {
    const text = JSON.stringify(node).toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const kept = (all) => (all ?? []).map((layer) => layer.filter(has));
  const matching = { layers: kept(host.layers), removals: kept(host.removals), left: kept(host.left) };
  return Object.values(matching).flat(2).length ? matching : null;
}

function trouble(host) {
  const error = host.error;
  const notes = [];
  if (error) {
    notes.push(
      h("div.note.bad", {}, h("p", {}, h("strong", {}, error.summary)), error.detail ? h("pre.box", { tabindex: "0" }, error.detail) : null, error.hint ? h("p", {}, error.hint) : null),
    );
  }
  if (host.refusal) notes.push(h("p.note.bad", {}, h("strong", {}, "Refused: "), host.refusal));
  if (host.halted) notes.push(h("p.note.bad", {}, h("strong", {}, "No further layer was started: "), host.halted));
  if (host.login) notes.push(h(host.login.ok ? "p.note" : "p.note.bad", {}, host.login.ok ? "sshd was restarted. A new login works." : `sshd was restarted. A new login fails: ${host.login.error}`));
  if (host.declined) notes.push(h("p.note", {}, "The user declined the changes. Nothing was changed."));
  for (const text of [host.differs ?? []].flat(Infinity)) notes.push(h("p.note.change", {}, h("strong", {}, "Not as planned: "), typeof text === "string" ? text : JSON.stringify(text)));
  if (host.holder) notes.push(h("p.note.skip", {}, `Locked by run ${host.holder.run} of ${host.holder.who} since `, when(host.holder.since)));
  for (const text of host.warnings ?? []) notes.push(h("p.note.change", {}, h("strong", {}, "Warning: "), text));
  return notes;
}

// Show the layers as columns. They show the order of the nodes and where the run stopped.
function map(layers, key) {
  return h(
    "div.map",
    { role: "group", "aria-label": "Layers", tabindex: "0", "data-key": `${key} map` },
    layers.slice(0, COLUMNS).map((layer, number) => {
      const column = `${key} layer ${number}`;
      const same = layer.filter((node) => node.outcome === "unchanged");
      const others = layer.filter((node) => node.outcome !== "unchanged").sort((one, other) => rank(one) - rank(other));
      const chips = others.slice(0, CHIPS);
      return h(
        "div.column",
        { "data-key": String(number) },
        h("div.dim", {}, String(number + 1)),
        chips.map((node) => chip(node, column, layer)),
        others.length > chips.length ? h("span.dim", {}, `and ${others.length - chips.length} more`) : null,
        same.length ? goes(`${column} unchanged`, { class: "chip dim", "data-key": " unchanged" }, h("span.sign", { "aria-hidden": "true" }, sign("unchanged")), `${same.length} unchanged`) : null,
      );
    }),
    layers.length > COLUMNS ? h("div.column.dim", {}, `and ${layers.length - COLUMNS} more layers`) : null,
  );
}

const RANK = { failed: 0, unknown: 1, changed: 2, skipped: 3, unchanged: 4 };
const rank = (node) => RANK[node.outcome] ?? 1;

function chip(node, key, layer) {
  const folded = hidden(layer, node) ? `${key} ${node.outcome}` : null;
  const list = folded ?? key;
  const at = layer.filter((other) => (folded ? other.outcome === node.outcome : !hidden(layer, other))).indexOf(node);
  const attributes = { class: `chip ${tone(node.outcome)}`, title: `${node.name}: ${node.outcome}`, "data-within": folded, "data-list": list, "data-at": at, "data-key": node.name };
  return goes(`${key} ${node.name}`, attributes, h("span.sign", { "aria-hidden": "true" }, sign(node.outcome)), short(node.name));
}

function short(name) {
  const end = name.replace(/\/+$/, "").split("/").pop();
  const text = end || name;
  return text.length > 26 ? `${text.slice(0, 12)}…${text.slice(-12)}` : text;
}

const hidden = (layer, node) =>
  node.outcome === "unchanged" || (node.outcome === "skipped" && layer.filter((other) => other.outcome === "skipped").length > FEW);

function section(layers, title, key, words) {
  const nodes = (layers ?? []).flat();
  return nodes.length ? [h("h3", {}, title), list(nodes, key, words)] : null;
}

function list(nodes, key, words) {
  const plain = nodes.filter((node) => !hidden(nodes, node));
  const groups = ["skipped", "unchanged"].map((outcome) => [outcome, nodes.filter((node) => node.outcome === outcome && hidden(nodes, node))]);
  return h(
    "div.nodes",
    { "data-key": key },
    part(key, plain, (node) => one(node, key, words)),
    groups.map(([outcome, hiddenNodes]) =>
      hiddenNodes.length
        ? fold(`${key} ${outcome}`, false, [badge(outcome, `${hiddenNodes.length} ${outcome}`), outcome === "skipped" ? h("span.dim", {}, hiddenNodes[0].reason) : null], () => part(`${key} ${outcome}`, hiddenNodes, (node) => one(node, key, words)))
        : null,
    ),
  );
}

// Return the outcome of a node as one word, the same as on the command line.
function word(node) {
  if (node.outcome !== "changed") return node.outcome;
  const changes = node.changes ?? [];
  if (changes.some((change) => change.field === "kind" && change.before !== null && change.after !== null)) return "replaced";
  if (changes.length && changes.every((change) => change.before === null)) return "added";
  if (changes.length && changes.every((change) => change.after === null) && !node.kept) return "removed";
  const ops = (node.actions ?? []).map((action) => action.op);
  if (changes.length || !ops.length) return "changed";
  if (node.shutdown_first || ops.every((op) => op === "restart")) return "restarted";
  return { reload: "reloaded", run: "run" }[ops.every((op) => op === ops[0]) ? ops[0] : ""] ?? "changed";
}

function removed(node) {
  if (node.stays) return word(node);
  if (node.outcome === "unchanged") return "forgotten";
  if (node.outcome !== "changed") return node.outcome;
  return node.changes?.length && node.changes.every((change) => change.after !== null) ? "restored" : "removed";
}

function one(node, key, words) {
  const outcome = words(node);
  const state = node.state && node.state !== "RESOLVED" ? h("span.odd", {}, node.state) : null;
  const bad = ["failed", "unknown"].includes(node.outcome);
  const fields = outcome === "changed" ? [...new Set((node.changes ?? []).map((change) => change.field))].slice(0, 6).join(", ") : "";
  const head = [
    badge(node.outcome, outcome),
    h("span.name", {}, node.name),
    fields ? h("span.dim", {}, fields) : null,
    state,
    h("span.place", {}, node.position),
    bad ? h("span.why", {}, node.reason) : null,
  ];
  return fold(`${key} ${node.name}`, bad, head, () => body(node));
}

function body(node) {
  const actions = node.actions ?? [];
  // Actions show their own reasons.
  const reason = node.reason && !actions.some((action) => action.reason && node.reason.includes(action.reason)) ? node.reason : "";
  return [
    reason ? h("p", {}, h("strong", {}, "Why: "), reason) : null,
    node.known_after ? h("p.odd", {}, `Known after ${node.known_after}.`) : null,
    node.triggered_by?.length ? h("p", {}, `Because ${node.triggered_by.join(", ")} ${node.stays ? "is removed" : "changes"}.`) : null,
    node.shutdown_first && node.shutdown_first.status === "planned" ? h("p", {}, "Stopped first: ", h("code", {}, call(node.shutdown_first))) : null,
    (node.leaves ?? []).map((text) => h("p.dim", {}, `Stays behind: ${text}`)),
    node.drift ? h("p", {}, DRIFT[node.drift.join(" ")] || "") : null,
    node.outcome === "changed" ? null : actions.map(action),
    changes(node.changes ?? []),
    node.outcome === "changed" ? actions.map(action) : null,
    node.changes?.length || actions.length || reason ? null : h("p.dim", {}, "As defined. There was nothing to do."),
  ];
}

function action(item) {
  const failed = !["ok", "planned"].includes(item.status);
  const word = { error: "failed", unknown: "result unknown", "not-attempted": "not attempted" }[item.status] ?? item.status;
  return h(
    `div.action.${tone(item.status)}`,
    {},
    h("p", {}, badge(item.status, word), " ", h("code", {}, call(item))),
    failed && item.reason ? h("p.bad", {}, item.reason) : null,
    item.log ? lines(item.log.replace(/\n$/, "").split("\n"), () => "", true) : null,
  );
}

// Return the text of an action with its arguments. A command is quoted as for a shell.
function call({ op, args = {} }) {
  const argv = args.argv;
  if (Array.isArray(argv)) return `${op}: ${argv.map((text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`)).join(" ")}`;
  return `${op}(${Object.entries(args).map(([name, argument]) => `${name}: ${name === "mode" && Number.isInteger(argument) ? `0${argument.toString(8)}` : value(argument)}`).join(", ")})`;
}

function changes(all) {
  const objects = new Map();
  for (const change of all) {
    if (!objects.has(change.object ?? "")) objects.set(change.object ?? "", []);
    objects.get(change.object ?? "").push(change);
  }
  return [...objects].map(([object, own]) => {
    const fields = own.filter((change) => !difference(change) && !(own.length > 1 && saysNothing(change)));
    const texts = own.filter(difference);
    return h(
      "div.object",
      {},
      object ? h("p.name", {}, object) : null,
      fields.length ? h("table", {}, h("tbody", {}, fields.map(row))) : null,
      texts.map((change) => [h("p.dim", {}, change.field || "content"), lines(difference(change), mark)]),
    );
  });
}

// Return whether a change only repeats that an object appears or disappears.
const saysNothing = ({ field, before, after }) => {
  if (before !== null && after !== null) return false;
  const only = after === null ? before : after;
  return ["kind", "present"].includes(field) || only === "" || (typeof only === "object" && only !== null && !Object.keys(only).length);
};

function row({ field, before, after }) {
  const removed = before === null || before === undefined ? null : h("del", {}, value(before));
  const added = after === null || after === undefined ? null : h("ins", {}, value(after));
  return h("tr", {}, h("th", { scope: "row" }, field), h("td", {}, removed, removed && added ? " → " : null, added));
}

export function value(content) {
  const digest = typeof content === "string" ? DIGEST.exec(content) : null;
  if (digest) return `sha256:${digest[1]}… (${Number(digest[2]).toLocaleString()} bytes)`;
  if (typeof content === "string" && content.trim() === content && content && !content.includes("\n")) return content;
  return JSON.stringify(content) ?? "";
}

// Return the lines of a difference between texts, or null if the values fit into a row of the table.
function difference({ diff, before, after }) {
  if (diff) {
    let text = diff.replace(/\n$/, "").split("\n");
    if (text[0].startsWith("--- ") && text.length > 1) text = text.slice(2);
    return text[0] && /^@@ (-0,0 |-\S+ \+0,0 @@)/.test(text[0]) ? text.slice(1) : text;
  }
  if ((before === null || before === undefined) && typeof after === "string" && after.includes("\n")) return after.replace(/\n$/, "").split("\n").map((text) => `+${text}`);
  if ((after === null || after === undefined) && typeof before === "string" && before.includes("\n")) return before.replace(/\n$/, "").split("\n").map((text) => `-${text}`);
  return null;
}

const MARKS = { "+": "ins", "-": "del", "@": "hunk" };
const mark = (text) => MARKS[text[0]] ?? "";

function lines(all, classOf, newest = false) {
  const displayed = newest ? all.slice(-LINES) : all.slice(0, LINES);
  const left = all.length - displayed.length;
  const more = left ? h("p.dim", {}, `${plural(left, newest ? "earlier line" : "more line")} not shown`) : null;
  return [newest ? more : null, h("pre.box", { tabindex: "0" }, displayed.map((text) => h(`span.line.${classOf(text)}`, {}, `${text}\n`))), newest ? null : more];
}

const HOOKS = { ok: "done", failed: "failed", continued: "failed; the run continued", owed: "failed; a later run repeats it" };

function fired(all) {
  if (!all?.length) return null;
  return [
    h("h3", {}, "Hooks that ran"),
    h("div.nodes", {}, all.map((call) =>
      h(
        "div.row.flat",
        {},
        h("div.lead", {}, badge(call.status, HOOKS[call.status] ?? call.status), h("span.name", {}, call.hook), h("span", {}, `${call.event} of ${call.name || "the playbook"}`), h("span.dim", {}, call.where === "host" ? "on the host" : "on the controller")),
        call.error ? h("pre.box", { tabindex: "0" }, call.error) : null,
      ),
    )),
  ];
}

function units(all) {
  if (!all?.length) return null;
  return [h("h3", {}, "Units"), h("div.nodes", {}, all.map(unit))];
}

const UNIT = { remove: "removed, with its directory", upgrade: "charm upgraded" };

function unit(item) {
  const hooks = item.hooks ?? item.due ?? [];
  return h(
    `div.row.flat.${item.error ? "bad" : "plain"}`,
    { "data-key": item.unit },
    h("div.lead", {}, badge(item.state), h("span.name", {}, item.unit), item.change ? h("span.odd", {}, UNIT[item.change]) : hooks.length ? null : h("span.dim", {}, "no hook was due")),
    item.error ? h("p.bad", {}, item.error) : null,
    hooks.map((hook) =>
      h(
        "div.action",
        {},
        h("p", {}, badge(hook.status ?? "planned"), " ", h("span.name", {}, hook.hook), hook.relation ? h("span.dim", {}, ` ${hook.relation} ${hook.remote ?? ""}`) : null),
        hook.error && hook.error !== item.error ? h("pre.box", { tabindex: "0" }, hook.error) : null,
      ),
    ),
  );
}

// Show the shutdown-first actions, and what is still down because of them.
function stopped(host) {
  if (!host.shutdown?.length && !host.down?.length) return null;
  return [
    h("h3", {}, "Stopped first"),
    (host.down ?? []).map((name) => h("p.note.bad", {}, h("strong", {}, "Down: "), `${name} was stopped first, and was not started again.`)),
    (host.shutdown ?? []).map((item) => [item.node ? h("p.name", {}, item.node) : null, action(item)]),
  ];
}

function owed(all) {
  if (!all?.length) return null;
  return [
    h("h3", {}, "Still owed from an earlier run"),
    all.map((trigger) => h("p.note.change", {}, `${trigger.node}, because ${trigger.cause} changed `, when(trigger.since))),
  ];
}
