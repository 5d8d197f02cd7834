// Times, numbers, and words with their signs and colors.

import { h } from "./dom.js";

export const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;

export function span(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function ago(seconds) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${plural(Math.floor(seconds / 86400), "day")} ago`;
}

const today = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const other = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

// Show a time: local, with its age, and with the exact time as tooltip. `at` is in seconds since 1970 or ISO 8601.
export function when(at, none = "never") {
  if (at === null || at === undefined) return h("span.dim", {}, none);
  const date = new Date(typeof at === "number" ? at * 1000 : at);
  if (Number.isNaN(date.getTime())) return h("span.dim", {}, String(at));
  const now = new Date();
  const form = date.toDateString() === now.toDateString() ? today : other;
  const year = date.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  const text = date.toLocaleString(undefined, { ...form, ...year });
  const iso = date.toISOString();
  return h("time", { datetime: iso, title: iso }, text, " ", h("span.dim", {}, ago((now - date) / 1000)));
}

// Outcome, status or state → its sign and color class. Unknown names get a neutral sign, or that of an error.
const SIGNS = {
  ok: ["✓", "good"], changed: ["✓", "change"], added: ["+", "good"], removed: ["−", "bad"], replaced: ["±", "change"],
  forgotten: ["−", "dim"], unchanged: ["·", "dim"], failed: ["✗", "bad"], skipped: ["○", "skip"], unknown: ["?", "odd"],
  unreachable: ["✗", "bad"], refused: ["✗", "bad"], locked: ["⏸", "skip"], cancelled: ["⏸", "skip"],
  running: ["▶", "live"], "": ["▶", "live"],
  "cut off": ["✗", "odd"], planned: ["·", "dim"], error: ["✗", "bad"], "not-attempted": ["○", "skip"],
  continued: ["!", "change"], owed: ["!", "change"], info: ["·", "dim"], warn: ["!", "change"],
  RESOLVED: ["✓", "good"], PRE_CREATED: ["○", "skip"], RESOLUTION_ERROR: ["✗", "bad"], IN_DELETION: ["−", "change"],
  queued: ["○", "skip"], success: ["✓", "good"], aborted: ["✗", "bad"], canceled: ["○", "skip"],
  started: ["✓", "good"], up: ["✓", "good"], active: ["✓", "good"], installed: ["▶", "live"], new: ["○", "skip"],
  stopped: ["○", "skip"], gone: ["−", "dim"],
};

export const tone = (what) => (SIGNS[what] ?? (/error|fail/.test(what) ? SIGNS.error : ["·", "dim"]))[1];
export const sign = (what) => (SIGNS[what] ?? (/error|fail/.test(what) ? SIGNS.error : ["·", "dim"]))[0];

export function badge(what, text = what || "in progress") {
  return h(`span.badge.${tone(what)}`, {}, h("span.sign", { "aria-hidden": "true" }, sign(what)), text);
}

// The order of the counts of a summary, such as `1 failed`, `12 changed`: the worst first.
const ORDER = ["failed", "unknown", "skipped", "changed", "unchanged"];

export function counts(summary) {
  const ordered = ORDER.filter((name) => summary[name]);
  const others = Object.keys(summary).filter((name) => summary[name] && !ORDER.includes(name));
  const all = [...ordered, ...others];
  return h("span.counts", {}, all.map((name) => h(`span.${tone(name)}`, {}, `${summary[name].toLocaleString()} ${name}`)));
}

export function empty(title, ...rest) {
  return h("div.empty", {}, h("p.strong", {}, title), rest);
}

const LONGEST = 200; // maximum number of characters of a reason next to a name

export const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

// Show a name and a value in a list of facts.
export const pair = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

export const code = (...words) => h("pre.box", { tabindex: "0" }, words.join("\n"));
