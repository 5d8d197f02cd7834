// What the server knows: asked for once, kept, and asked for again when the stream of changes says so.

const PATIENCE = 20_000; // milliseconds for one answer
const SILENCE = 25_000; // milliseconds without a sign of life after which the connection counts as lost
const AGAIN = 2_000; // milliseconds until the next try

const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
export const user = meta("user");
export const role = meta("role");
export const administrator = role === "administrator";

const kept = new Map(); // path → { value, error, topics, stale, busy, used }
const listeners = { change() {}, link() {} };
let turn = 0;

export function onChange(change, link) {
  listeners.change = change;
  listeners.link = link;
}

// Return what is known of a path: { value, error, busy }. It is asked for where that is not known or has changed.
export function want(path, ...topics) {
  if (!kept.has(path)) kept.set(path, { topics, stale: true, busy: false, used: turn });
  const found = kept.get(path);
  found.used = turn;
  if (found.stale && !found.busy) load(path, found);
  return found;
}

// A page is drawn anew: what was not used by the last drawings is forgotten.
export function begin() {
  turn += 1;
  for (const [path, found] of kept) if (found.used < turn - 200 && !found.busy) kept.delete(path);
}

async function load(path, found) {
  found.busy = true;
  found.stale = false;
  try {
    const answer = await fetch(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE) });
    if (answer.status === 401) return signedOut();
    const text = await answer.text();
    const value = text ? JSON.parse(text) : null;
    if (answer.ok) Object.assign(found, { value, error: "" });
    else Object.assign(found, { error: value?.message || `The server answered ${answer.status}.`, status: answer.status });
  } catch (problem) {
    // What was known stays on the page; the next connection asks for it again.
    found.error = found.value === undefined ? "The server can't be reached." : "";
    found.stale = true;
    if (problem.name !== "TypeError" && problem.name !== "TimeoutError") throw problem;
  } finally {
    found.busy = false;
    listeners.change();
  }
}

function outdated(topics) {
  for (const found of kept.values()) if (!topics || found.topics.some((topic) => topics.includes(topic))) found.stale = true;
  listeners.change();
}

export function signedOut() {
  location.reload(); // what comes then is the form to sign in
}

export async function leave() {
  await fetch("/logout", { method: "POST", headers: { "X-Statecfg-Csrf": meta("csrf") } });
  signedOut();
}

// The stream of changes. One is open at a time; a lost one is opened again.

let source = null;
let silence = 0;

export function listen() {
  source?.close();
  clearTimeout(silence);
  source = new EventSource("/statecfg/1.0/live");
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(lost, SILENCE);
  };
  alive();
  source.addEventListener("hello", () => {
    alive();
    listeners.link("live");
    outdated(null);
  });
  source.addEventListener("changed", (event) => {
    alive();
    listeners.link("live");
    outdated(JSON.parse(event.data).topics);
  });
  source.addEventListener("beat", alive);
  source.addEventListener("trouble", (event) => {
    alive();
    listeners.link("trouble", JSON.parse(event.data).message);
  });
  source.addEventListener("full", () => lost("Too many pages listen already."));
  source.onerror = () => lost();
}

function lost(why = "") {
  source.close();
  clearTimeout(silence);
  listeners.link("lost", typeof why === "string" ? why : "");
  silence = setTimeout(again, AGAIN);
}

// An answer 401 says that the session is over, and not that the server is away.
async function again() {
  try {
    const answer = await fetch("/", { method: "HEAD", signal: AbortSignal.timeout(PATIENCE) });
    if (answer.status === 401) return signedOut();
    if (answer.ok) return listen();
  } catch (problem) {
    if (problem.name !== "TypeError" && problem.name !== "TimeoutError") throw problem;
  }
  silence = setTimeout(again, AGAIN);
}
