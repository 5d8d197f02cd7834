// Responses of the server. The page keeps each response, and requests it again when the server reports a change.

const TIMEOUT = 20_000; // milliseconds for one response
const SILENCE = 25_000; // milliseconds without an event after which the connection counts as lost
const RETRY = 2_000; // milliseconds until the next attempt

const UNUSED = 50; // drawings after which an unused response is deleted

const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
export const user = meta("user");
export const role = meta("role");
export const administrator = role === "administrator";

const kept = new Map(); // path → { value, etag, error, topics, stale, busy, used }
const listeners = { change() {}, link() {} };
let drawings = 0;

export function onChange(change, link) {
  listeners.change = change;
  listeners.link = link;
}

// Return the kept response for a path: { value, etag, error, busy }. Request it if it is missing or has changed.
export function want(path, ...topics) {
  if (!kept.has(path)) kept.set(path, { topics, stale: true, busy: false, used: drawings });
  const response = kept.get(path);
  response.used = drawings;
  if (response.stale && !response.busy) load(path, response);
  return response;
}

// Call this before each drawing. It deletes responses that the last drawings did not use.
export function begin() {
  drawings += 1;
  for (const [path, response] of kept) if (response.used < drawings - UNUSED && !response.busy) kept.delete(path);
}

async function load(path, response) {
  response.busy = true;
  response.stale = false;
  try {
    const answer = await fetch(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(TIMEOUT) });
    if (answer.status === 401) return signedOut();
    const text = await answer.text();
    const value = text ? JSON.parse(text) : null;
    if (answer.ok) Object.assign(response, { value, error: "", etag: answer.headers.get("ETag") });
    else Object.assign(response, { error: value?.message || `The server answered ${answer.status}.`, status: answer.status });
  } catch (problem) {
    // Keep the old response. The page requests a new one when the connection works again.
    response.error = response.value === undefined ? UNREACHABLE : "";
    response.stale = true;
    if (!isUnreachable(problem)) throw problem;
  } finally {
    response.busy = false;
    listeners.change();
  }
}

function outdated(topics) {
  for (const response of kept.values()) if (!topics || response.topics.some((topic) => topics.includes(topic))) response.stale = true;
  listeners.change();
}

export function signedOut() {
  location.reload(); // the server then sends the login form
}

const UNREACHABLE = "The server cannot be reached.";
const isUnreachable = (problem) => problem.name === "TypeError" || problem.name === "TimeoutError";

// Send a request that changes something on the server. Return { ok, value, location, message }.
export async function send(method, path, body, etag) {
  const headers = { Accept: "application/json", "X-Statecfg-Csrf": meta("csrf") };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (etag) headers["If-Match"] = etag;
  try {
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT) });
    if (answer.status === 401) signedOut();
    const text = await answer.text();
    const value = text ? JSON.parse(text) : null;
    const message = answer.ok ? "" : value?.message || `The server answered ${answer.status}.`;
    return { ok: answer.ok, value, location: answer.headers.get("Location"), message };
  } catch (problem) {
    if (!isUnreachable(problem)) throw problem;
    return { ok: false, value: null, location: null, message: UNREACHABLE };
  }
}

export async function leave() {
  await fetch("/logout", { method: "POST", headers: { "X-Statecfg-Csrf": meta("csrf") } });
  signedOut();
}

// The stream of changes. At most one is open. If it is lost, the page opens a new one.

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
  source.addEventListener("full", () => lost("Too many pages are open."));
  source.onerror = () => lost();
}

function lost(why = "") {
  source.close();
  clearTimeout(silence);
  listeners.link("lost", typeof why === "string" ? why : "");
  silence = setTimeout(retry, RETRY);
}

// Try to reconnect. Status 401 means that the session has ended, not that the server is unreachable.
async function retry() {
  try {
    const answer = await fetch("/", { method: "HEAD", signal: AbortSignal.timeout(TIMEOUT) });
    if (answer.status === 401) return signedOut();
    if (answer.ok) return listen();
  } catch (problem) {
    if (!isUnreachable(problem)) throw problem;
  }
  silence = setTimeout(retry, RETRY);
}
