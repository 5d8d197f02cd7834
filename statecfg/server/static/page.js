// The page: choose the view and draw it when something changes.

import { read } from "./address.js";
import { administrator, begin, leave, listen, onChange, role, user } from "./data.js";
import { h, put } from "./dom.js";
import { create, onEdit } from "./edit.js";
import { entities, entity } from "./entities.js";
import { onFilter, refill } from "./filters.js";
import { onFold } from "./fold.js";
import { host, hosts } from "./hosts.js";
import { overview } from "./overview.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { services } from "./services.js";
import { oneTask, tasks } from "./tasks.js";

const FOR_USERS = ["", "entities", "tasks"];
const SECTIONS = [
  ["", "Overview", overview],
  ["runs", "Runs", runs, run],
  ["hosts", "Hosts", hosts, host],
  ["services", "Services", services],
  ["entities", "Entities", entities, (id) => (id === "new" ? create() : entity(id))],
  ["tasks", "Tasks", tasks, oneTask],
].filter(([name]) => administrator || FOR_USERS.includes(name));

const main = document.getElementById("main");
const link = { state: "", since: 0, why: "" };
let isPlanned = false;

function draw() {
  isPlanned = false;
  begin();
  const { section, argument } = read();
  const [at, title, list, one] = SECTIONS.find(([name]) => name === section) ?? SECTIONS[0];
  const content = argument && one ? one(argument) : list();
  document.title = argument && one ? `${argument} · statecfg` : `${title} · statecfg`;
  put(main, h("main", {}, content));
  const tabs = SECTIONS.map(([name, text]) =>
    h("a", { href: `#/${name}`, "aria-current": name === at ? "page" : null, "data-key": name || "overview" }, text),
  );
  put(document.getElementById("nav"), h("nav", {}, tabs));
  drawLink();
}

function drawLink() {
  const live = link.state === "live";
  const text = live ? "live" : link.state ? "offline" : "connecting";
  put(document.getElementById("link"), h("span", {}, h(`span.dot.${live ? "good" : link.state ? "bad" : "skip"}`), text));
  const lost = document.getElementById("lost");
  lost.hidden = live || !link.state;
  if (lost.hidden) return;
  const seconds = Math.round((Date.now() - link.since) / 1000);
  const words =
    link.state === "trouble"
      ? ["The server cannot read its store: ", link.why]
      : ["The connection was lost ", `${seconds} s ago. `, link.why, " This page may be out of date. Reconnecting…"];
  put(lost, h("div", {}, words));
}

function later() {
  if (isPlanned) return;
  isPlanned = true;
  setTimeout(draw, 30);
}

onChange(later, (state, why = "") => {
  if (state !== link.state) link.since = Date.now();
  Object.assign(link, { state, why });
  drawLink();
});

window.addEventListener("hashchange", () => {
  draw();
  refill(main);
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

onFold(main, later);
onFilter(main, later);
onEdit(main, later);
document.getElementById("user").textContent = `${user} (${role})`;
document.getElementById("leave").addEventListener("click", leave);
setInterval(later, 10_000); // update the ages of times
setInterval(drawLink, 1_000);
draw();
listen();
