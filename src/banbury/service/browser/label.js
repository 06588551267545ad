// Label: the next row, a key for each class, and undo to any depth.
import { shaded } from "./evidence.js";
import { about, ask, drawn, fill, get, keep, named, node, percent, post, say, shown, table } from "./service.js";

const AHEAD = 24; // rows that are fetched before they are needed
const FEWEST_POINTS = 5; // of the accuracy, before they are drawn as a curve
const POSTPONED = "banbury.postponed";
let queue = [];
let done = new Set(); // ids that were answered here, and may still be in a list that is on its way
let current = null;
const created = new Set(); // classes that were typed here
let picked = []; // of several labels, those that are chosen so far
let doubts = [];
let started = false;
let sending = Promise.resolve(); // changes are sent one after the other, in the order of keys
const changed = []; // ids of the rows that were changed here, which are undone first

export async function openLabel() {
  if (!started) {
    started = true;
    addEventListener("keydown", key);
    for (const id of ["shading", "in-order"]) {
      const box = document.getElementById(id);
      box.checked = localStorage.getItem(`banbury.${id}`) === "yes";
      box.addEventListener("change", () => {
        localStorage.setItem(`banbury.${id}`, box.checked ? "yes" : "no");
        if (id === "in-order") queue = [];
        show().catch(say);
      });
    }
    fill("export", ["csv", "ndjson"].map((kind) => [node("button", { onclick: () => keep(`/export?format=${kind}`, `labels.${kind}`).catch(say) }, `Labels as ${kind.toUpperCase()}`), " "]),
      node("button", { onclick: () => keep("/export?format=model", "labels.banbury").catch(say) }, "The model"));
  }
  drawKeys();
  await show();
  await aside();
}

const checked = (id) => document.getElementById(id).checked;
const postponed = () => JSON.parse(localStorage.getItem(POSTPONED) || "[]");

let fetching = null;
function ahead() {
  fetching = fetching || fetched().finally(() => { fetching = null; });
  return fetching;
}

async function fetched() {
  const rows = (await get(`/next?n=${AHEAD + postponed().length + 1}&order=${checked("in-order") ? "id" : "telling"}`)).rows;
  const later = new Set(postponed());
  const there = new Set([...queue.map((row) => row.id), current && current.id]);
  queue.push(...rows.filter((row) => !later.has(row.id) && !done.has(row.id) && !there.has(row.id)));
}

async function show() {
  if (!current) {
    if (!queue.length) {
      await sending; // what was answered is no longer next
      await ahead();
      done = new Set();
    }
    current = queue.shift() || null;
    picked = [];
  }
  drawTask(null);
  if (queue.length < AHEAD / 2 && current) ahead().catch(say);
  if (current && checked("shading")) {
    const mine = current;
    const { row } = mine;
    const [told, why] = await Promise.all([post("/predict", { row }), post("/explain", { row })]).catch(() => [null, null]);
    if (mine === current && why) drawTask(why, told.predictions[0]);
  }
}

function drawTask(why, prediction) {
  const help = document.getElementById("keys-help");
  if (!current) {
    const later = postponed().length;
    fill("task", node("p", {}, later ? `No more rows to label, except ${later} you postponed.` : "There are no more rows to label."));
    help.textContent = "Press u to undo the last answer.";
    return;
  }
  const row = typeof current.row === "string" ? { text: current.row } : current.row;
  const texts = why ? Object.keys(why.texts) : [];
  const columns = about.fields.map((field) => field.name).filter((name) => !texts.includes(name));
  const alone = about.fields.length === 1 && columns.length;
  const cells = alone
    ? [node("div", { class: "shaded", dir: "auto" }, String(row[columns[0]] ?? "").slice(0, 20000))]
    : columns.length ? [node("dl", {}, columns.flatMap((name) => [node("dt", {}, name), node("dd", { dir: "auto" }, shown(Object.hasOwn(row, name) ? row[name] : null, 2000))]))] : [];
  const guess = prediction ? node("p", { class: "soft" }, `The model predicts ${about.labels ? named(prediction.labels) : `${named(prediction.class)} ${percent(prediction.probability)}`}.`) : null;
  fill("task", node("p", { class: "soft" }, `${current.id}${current.random ? " · chosen at random" : ""}`), cells, why ? shaded(why, null) : [], guess);
  document.getElementById("task").setAttribute("tabindex", "-1");
  help.textContent = `Keys: 1 to ${Math.min(9, about.names.length)} for a class${about.labels ? " and Enter to confirm" : ""}, space for unsure, u for undo, n for a note, c to correct the first label that looks wrong.`;
}

function drawKeys() {
  const buttons = about.names.slice(0, 60).map((name, k) => node("button", {
    type: "button", "aria-pressed": about.labels ? String(picked.includes(name)) : null, onclick: () => choose(name),
  }, k < 9 ? [node("kbd", {}, String(k + 1)), " "] : null, named(name)));
  if (about.labels) buttons.push(node("button", { class: "first", type: "button", onclick: () => give(picked) }, node("kbd", {}, "Enter"), " These"));
  const other = node("input", { "aria-label": "Another class", placeholder: "another class", size: 12, autocomplete: "off" });
  other.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !other.value.trim()) return;
    event.preventDefault();
    const name = other.value.trim();
    if (!about.names.map(String).includes(name)) {
      about.names.push(name);
      created.add(name);
    }
    choose(about.names.find((each) => String(each) === name));
    drawKeys();
  });
  fill("keys", buttons, node("button", { type: "button", onclick: later }, node("kbd", {}, "space"), " Unsure"),
    node("button", { type: "button", onclick: undo }, node("kbd", {}, "u"), " Undo"), other);
}

function key(event) {
  const at = event.target;
  if (document.getElementById("label").hidden || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (at.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape" || (event.key === "Enter" && at.id === "note")) document.getElementById("task").focus();
    return;
  }
  if ((event.key === " " || event.key === "Enter") && at.matches("button, a, summary, input")) return;
  const number = "123456789".indexOf(event.key);
  if (event.key.length === 1 && number >= 0 && number < about.names.length) choose(about.names[number]);
  else if (event.key === "Enter" && about.labels) give(picked);
  else if (event.key === " ") later();
  else if (event.key === "u") undo();
  else if (event.key === "c" && doubts.length) correct(doubts[0]);
  else if (event.key === "n") document.getElementById("note").focus();
  else return;
  event.preventDefault();
}

function choose(name) {
  if (!about.labels) return give(name);
  picked = picked.includes(name) ? picked.filter((each) => each !== name) : [...picked, name];
  return drawKeys();
}

function noted() {
  const note = document.getElementById("note");
  const text = note.value.trim();
  note.value = "";
  return text ? { note: text } : {};
}

function give(label) {
  if (!current) return;
  const { id } = current;
  done.add(id);
  localStorage.setItem(POSTPONED, JSON.stringify(postponed().filter((each) => each !== id)));
  const isNew = [label].flat().some((name) => created.has(name));
  send(current, { label, ...noted(), ...(isNew ? { new_class: true } : {}) });
  current = null;
  picked = [];
  document.getElementById("task").focus({ preventScroll: true });
  drawKeys();
  show().catch(say);
}

function later() {
  if (!current) return;
  const { id } = current;
  localStorage.setItem(POSTPONED, JSON.stringify([...postponed().filter((each) => each !== id), id]));
  const note = noted();
  if (note.note) send(current, { label: null, ...note });
  current = null;
  document.getElementById("task").focus({ preventScroll: true });
  drawPostponed();
  show().catch(say);
}

function undo() {
  sending = sending.then(() => post("/undo", changed.length ? { id: changed.pop() } : {})).then(async (told) => {
    say(null);
    const row = await get(`/rows/${encodeURIComponent(told.id)}`).catch(() => null);
    if (row && row.label === null) {
      if (current) queue.unshift(current);
      done.delete(row.id);
      current = row;
      picked = [];
    }
    drawKeys();
    await show();
    await aside();
  }).catch(say);
}

// What is not kept comes next again; what has another label than it had when it was shown was labelled elsewhere, and that is said.
function send(row, given) {
  const { id } = row;
  sending = sending.then(() => ask("PUT", `/rows/${encodeURIComponent(id)}`, { row: row.row, ...given })).then((told) => {
    if (told.action !== "unchanged") changed.push(id);
    const elsewhere = (row.label ?? null) === null && ["moved", "unlabelled"].includes(told.action);
    say(elsewhere ? `${id} has been labelled by someone else; now it is ${told.label === null ? "without a label" : named(told.label)}. Undo reverts that.` : null);
    soon();
  }).catch(async (problem) => {
    done.delete(id);
    if (![current, ...queue].some((each) => each && each.id === id)) queue.unshift(row);
    if (!current) await show();
    say(`${id} was not saved and will come up again: ${problem.message}`);
  }).catch(say);
}

let waiting = 0;
function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => aside().catch(say), 400);
}

// What stands beside: how good the model is by now, labels that look wrong, history.
async function aside() {
  drawPostponed();
  const history = (await get("/history?n=60")).changes.filter((each) => each.action !== "kept" || each.note).slice(0, 15);
  fill("history", history.length ? table(["time", "row", "what", "label", "note"],
    history.map((each) => [new Date(each.time).toLocaleString("sv"), each.id, each.action, change(each), each.note || ""]), ["", "value", "", "value", "value"]) : node("p", { class: "soft" }, "No answers yet."));
  const told = await get("/accuracy");
  const { labelled, unlabelled } = told;
  const good = told.accuracy === null ? "" : ` ${percent(told.accuracy)} ± ${(100 * told.error).toFixed(1)} of the labelled rows are predicted correctly by a model that has not seen them.`;
  fill("progress", `${labelled.toLocaleString("en")} labelled, ${unlabelled.toLocaleString("en")} to go.${good}`);
  fill("grown", told.grown.length >= FEWEST_POINTS ? growth(told.grown) : null);
  doubts = labelled > 3 && !about.labels ? (await get("/suspicious?n=5&recent=true").catch(() => ({ rows: [] }))).rows.filter((each) => each.margin < 0) : [];
  fill("suspicious", doubts.length ? table(["row", "label", "suggested", "probability", ""], doubts.map((each, k) => [
    `${each.id}: ${shown(content(each.row), 80)}`, named(each.given), named(each.suggested), percent(each.probability),
    node("span", {}, node("button", { class: "small", onclick: () => correct(each) }, k ? "" : node("kbd", {}, "c"), " correct"), " ",
      node("button", { class: "small", onclick: () => again(each.id) }, "look"))]), ["value", "value", "value", "number", ""])
    : node("p", { class: "soft" }, about.labels ? "Not available when rows can have several labels." : "No label looks wrong."));
}

const content = (row) => (typeof row === "string" ? row : Object.values(row ?? {}).filter((v) => typeof v === "string").sort((a, b) => b.length - a.length)[0] ?? JSON.stringify(row));
const change = (each) => {
  if (each.label === undefined) return "";
  const now = each.label === null ? "none" : named(each.label);
  return each.before === undefined || each.before === null ? now : `${named(each.before)} → ${now}`;
};

function correct(doubt) {
  doubts = doubts.filter((each) => each !== doubt);
  send({ ...doubt, label: doubt.given }, { label: doubt.suggested, note: "corrected" });
}

async function again(id) {
  const row = await get(`/rows/${encodeURIComponent(id)}`).catch(say);
  if (!row) return;
  localStorage.setItem(POSTPONED, JSON.stringify(postponed().filter((each) => each !== id)));
  if (current) queue.unshift(current);
  current = row;
  picked = about.labels && row.label ? [...row.label] : [];
  drawKeys();
  await show().catch(say);
  document.getElementById("task").focus();
}

function drawPostponed() {
  const ids = postponed();
  fill("postponed", ids.length ? node("p", {}, ids.flatMap((id) => [node("button", { class: "small", onclick: () => again(id) }, id), " "])) : node("p", { class: "soft" }, "None."));
}

function growth(points) {
  const most = points[points.length - 1].rows;
  const x = (n) => 30 + (560 * n) / Math.max(most, 1);
  const y = (p) => 75 - 70 * Math.max(0, Math.min(1, p));
  const upper = points.map((p) => `${x(p.rows)},${y(p.accuracy + p.error)}`);
  const lower = points.map((p) => `${x(p.rows)},${y(p.accuracy - p.error)}`).reverse();
  return node("figure", { class: "chart" }, drawn("svg", { viewBox: "0 0 600 92", role: "img", "aria-label": `Accuracy by rows labelled, now ${percent(points[points.length - 1].accuracy)}` },
    drawn("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
    drawn("polyline", { class: "line", points: points.map((p) => `${x(p.rows)},${y(p.accuracy)}`).join(" ") }),
    drawn("line", { class: "tick", x1: 30, x2: 590, y1: 75, y2: 75 }),
    drawn("text", { x: 0, y: 12 }, "100"), drawn("text", { x: 6, y: 75 }, "0"), drawn("text", { x: 500, y: 90 }, `${most.toLocaleString("en")} rows`)));
}
