// The page of the service: ask, label, inspect. Everything is built as nodes; no text is parsed as HTML.
import { drawAsk, openAsk } from "./ask.js";
import { openLabel } from "./label.js";
import { openInspect } from "./inspect.js";
import { about, isolateText, get, showProblem } from "./service.js";

const views = { ask: openAsk, label: openLabel, inspect: openInspect };

async function open(setsFocus) {
  const name = views[location.hash.slice(1)] ? location.hash.slice(1) : "ask";
  for (const view of Object.keys(views)) {
    document.getElementById(view).hidden = view !== name;
    const link = document.querySelector(`nav a[href="#${view}"]`);
    if (view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name[0].toUpperCase()}${name.slice(1)} · Banbury`;
  if (setsFocus) document.getElementById("content").focus();
  await views[name]().catch(showProblem);
}

async function begin() {
  Object.assign(about, await get("/model"), await get("/fields"));
  const names = about.names.slice(0, 4).map(isolateText).join(", ") + (about.names.length > 4 ? ", …" : "");
  document.getElementById("served").textContent = [about.target, names].filter(Boolean).join(": ");
  document.getElementById("to-label").hidden = !about.can_learn;
  drawAsk();
  await open(false);
}

addEventListener("hashchange", () => open(true));
begin().catch(showProblem);
