// The page: which part of it is shown, what is open, and when it is drawn.

import { administrator, begin, leave, listen, onChange, role, user } from "./data.js";
import { h, put } from "./dom.js";
import { entities, entity, tasks } from "./entities.js";
import { openFolds, search } from "./fold.js";
import { host, hosts } from "./hosts.js";
import { overview } from "./overview.js";
import { run, runs } from "./runs.js";
import { services } from "./services.js";

const SECTIONS = [
  ["", "Overview", overview],
  ["runs", "Runs", runs, run],
  ["hosts", "Hosts", hosts, host],
  ["services", "Services", services],
  ["entities", "Entities", entities, entity],
  ["tasks", "Tasks", tasks],
].filter(([name]) => administrator || ["", "entities", "tasks"].includes(name));

const main = document.getElementById("main");
const link = { state: "", since: 0, why: "" };
let planned = false;

function draw() {
  planned = false;
  begin();
  const [, name = "", ...rest] = location.hash.split("/");
  const argument = rest.length ? decode(rest.join("/")) : "";
  const [at, title, list, one] = SECTIONS.find(([known]) => known === name) ?? SECTIONS[0];
  const content = argument && one ? one(argument) : list();
  document.title = argument && one ? `${argument} · statecfg` : `${title} · statecfg`;
  put(main, h("main", {}, content));
  const tabs = SECTIONS.map(([known, text]) =>
    h("a", { href: `#/${known}`, "aria-current": known === at ? "page" : null, "data-key": known || "overview" }, text),
  );
  put(document.getElementById("nav"), h("nav", {}, tabs));
  drawLink();
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch (problem) {
    if (problem instanceof URIError) return text;
    throw problem;
  }
}

function drawLink() {
  const live = link.state === "live";
  const text = live ? "live" : link.state ? "offline" : "connecting";
  put(document.getElementById("link"), h("span", {}, h(`span.dot.${live ? "good" : link.state ? "bad" : "skip"}`), text));
  const lost = document.getElementById("lost");
  lost.hidden = live || !link.state;
  if (lost.hidden) return;
  const seconds = Math.round((Date.now() - link.since) / 1000);
  const said =
    link.state === "trouble"
      ? ["The server can't read its store: ", link.why]
      : ["The connection was lost ", `${seconds} s ago. `, link.why, " What you see may be old. Trying again…"];
  put(lost, h("div", {}, said));
}

function later() {
  if (planned) return;
  planned = true;
  setTimeout(draw, 30);
}

onChange(later, (state, why = "") => {
  if (state !== link.state) link.since = Date.now();
  Object.assign(link, { state, why });
  drawLink();
});

let shown = location.hash;
window.addEventListener("hashchange", () => {
  if (location.hash === shown) return;
  shown = location.hash;
  draw();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

openFolds(main, later);
search(main, later);
document.getElementById("user").textContent = `${user} (${role})`;
document.getElementById("leave").addEventListener("click", leave);
setInterval(later, 10_000); // ages
setInterval(drawLink, 1_000);
draw();
listen();
