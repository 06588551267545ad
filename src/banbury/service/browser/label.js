// Label: the next row, a key for each class, and undo to any depth.
import { shadeTexts } from "./evidence.js";
import { about, requestJson, svgNode, fill, get, download, displayClass, node, formatPercent, post, showProblem, displayText, table } from "./service.js";

const AHEAD = 24; // how many rows to fetch in advance
const FEWEST_POINTS = 5; // a learning curve with fewer is not drawn
const POSTPONED = "banbury.postponed";
let queue = []; // rows to label, the next one first
let answeredIds = new Set(); // ids answered here; a list that was requested earlier may still contain them
let current = null; // the row to label now
const created = new Set(); // classes that the user has typed
let pickedLabels = []; // the labels picked so far for a row with several
let suspects = []; // rows whose labels look wrong, the most suspicious first
let started = false;
let sending = Promise.resolve(); // changes are sent one after the other, in the order of the answers
const changed = []; // ids of the rows changed here; undo begins with the last

export async function openLabel() {
  if (!started) {
    started = true;
    addEventListener("keydown", handleKey);
    for (const id of ["shading", "in-order"]) {
      const box = document.getElementById(id);
      box.checked = localStorage.getItem(`banbury.${id}`) === "yes";
      box.addEventListener("change", () => {
        localStorage.setItem(`banbury.${id}`, box.checked ? "yes" : "no");
        if (id === "in-order") queue = [];
        showTask().catch(showProblem);
      });
    }
    fill("export", ["csv", "ndjson"].map((kind) => [node("button", { onclick: () => download(`/export?format=${kind}`, `labels.${kind}`).catch(showProblem) }, `Labels as ${kind.toUpperCase()}`), " "]),
      node("button", { onclick: () => download("/export?format=model", "labels.banbury").catch(showProblem) }, "The model"));
  }
  drawKeys();
  await showTask();
  await refreshSidebar();
}

const isChecked = (id) => document.getElementById(id).checked;
const postponedIds = () => JSON.parse(localStorage.getItem(POSTPONED) || "[]");

let fetching = null;
function fetchAhead() {
  fetching = fetching || fetchRows().finally(() => { fetching = null; });
  return fetching;
}

async function fetchRows() {
  const rows = (await get(`/next?n=${AHEAD + postponedIds().length + 1}&order=${isChecked("in-order") ? "id" : "informative"}`)).rows;
  const postponed = new Set(postponedIds());
  const queued = new Set([...queue.map((row) => row.id), current && current.id]);
  queue.push(...rows.filter((row) => !postponed.has(row.id) && !answeredIds.has(row.id) && !queued.has(row.id)));
}

async function showTask() {
  if (!current) {
    if (!queue.length) {
      await sending; // then the service no longer offers the answered rows
      await fetchAhead();
      answeredIds = new Set();
    }
    current = queue.shift() || null;
    pickedLabels = [];
  }
  drawTask(null);
  if (queue.length < AHEAD / 2 && current) fetchAhead().catch(showProblem);
  if (current && isChecked("shading")) {
    const shownRow = current;
    const { row } = shownRow;
    const [prediction, why] = await Promise.all([post("/predict", { row }), post("/explain", { row })]).catch(() => [null, null]);
    if (shownRow === current && why) drawTask(why, prediction.predictions[0]);
  }
}

function drawTask(why, prediction) {
  const help = document.getElementById("keys-help");
  if (!current) {
    const nPostponed = postponedIds().length;
    fill("task", node("p", {}, nPostponed ? `No more rows to label, except ${nPostponed} you postponed.` : "There are no more rows to label."));
    help.textContent = "Press u to undo the last answer.";
    return;
  }
  const row = typeof current.row === "string" ? { text: current.row } : current.row;
  const texts = why ? Object.keys(why.texts) : [];
  const columns = about.fields.map((field) => field.name).filter((name) => !texts.includes(name));
  const alone = about.fields.length === 1 && columns.length;
  const cells = alone
    ? [node("div", { class: "shaded", dir: "auto" }, String(row[columns[0]] ?? "").slice(0, 20000))]
    : columns.length ? [node("dl", {}, columns.flatMap((name) => [node("dt", {}, name), node("dd", { dir: "auto" }, displayText(Object.hasOwn(row, name) ? row[name] : null, 2000))]))] : [];
  const guess = prediction ? node("p", { class: "soft" }, `The model predicts ${about.labels ? displayClass(prediction.labels) : `${displayClass(prediction.class)} ${formatPercent(prediction.probability)}`}.`) : null;
  fill("task", node("p", { class: "soft" }, `${current.id}${current.random ? " · chosen at random" : ""}`), cells, why ? shadeTexts(why, null) : [], guess);
  document.getElementById("task").setAttribute("tabindex", "-1");
  help.textContent = `Keys: 1 to ${Math.min(9, about.names.length)} for a class${about.labels ? " and Enter to confirm" : ""}, space for unsure, u for undo, n for a note, c to correct the first label that looks wrong.`;
}

function drawKeys() {
  const buttons = about.names.slice(0, 60).map((name, k) => node("button", {
    type: "button", "aria-pressed": about.labels ? String(pickedLabels.includes(name)) : null, onclick: () => choose(name),
  }, k < 9 ? [node("kbd", {}, String(k + 1)), " "] : null, displayClass(name)));
  if (about.labels) buttons.push(node("button", { class: "first", type: "button", onclick: () => submitLabel(pickedLabels) }, node("kbd", {}, "Enter"), " These"));
  const other = node("input", { "aria-label": "Another class", placeholder: "another class", size: 12, autocomplete: "off" });
  other.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !other.value.trim()) return;
    event.preventDefault();
    const name = other.value.trim();
    if (!about.names.map(String).includes(name)) {
      about.names.push(name);
      created.add(name);
    }
    choose(about.names.find((existing) => String(existing) === name));
    drawKeys();
  });
  fill("keys", buttons, node("button", { type: "button", onclick: postpone }, node("kbd", {}, "space"), " Unsure"),
    node("button", { type: "button", onclick: undo }, node("kbd", {}, "u"), " Undo"), other);
}

function handleKey(event) {
  const { target } = event;
  if (document.getElementById("label").hidden || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape" || (event.key === "Enter" && target.id === "note")) document.getElementById("task").focus();
    return;
  }
  if ((event.key === " " || event.key === "Enter") && target.matches("button, a, summary, input")) return;
  const number = "123456789".indexOf(event.key);
  if (event.key.length === 1 && number >= 0 && number < about.names.length) choose(about.names[number]);
  else if (event.key === "Enter" && about.labels) submitLabel(pickedLabels);
  else if (event.key === " ") postpone();
  else if (event.key === "u") undo();
  else if (event.key === "c" && suspects.length) correct(suspects[0]);
  else if (event.key === "n") document.getElementById("note").focus();
  else return;
  event.preventDefault();
}

function choose(name) {
  if (!about.labels) return submitLabel(name);
  pickedLabels = pickedLabels.includes(name) ? pickedLabels.filter((label) => label !== name) : [...pickedLabels, name];
  return drawKeys();
}

function takeNote() {
  const note = document.getElementById("note");
  const text = note.value.trim();
  note.value = "";
  return text ? { note: text } : {};
}

function submitLabel(label) {
  if (!current) return;
  const { id } = current;
  answeredIds.add(id);
  localStorage.setItem(POSTPONED, JSON.stringify(postponedIds().filter((postponedId) => postponedId !== id)));
  const isNew = [label].flat().some((name) => created.has(name));
  send(current, { label, ...takeNote(), ...(isNew ? { new_class: true } : {}) });
  current = null;
  pickedLabels = [];
  document.getElementById("task").focus({ preventScroll: true });
  drawKeys();
  showTask().catch(showProblem);
}

function postpone() {
  if (!current) return;
  const { id } = current;
  localStorage.setItem(POSTPONED, JSON.stringify([...postponedIds().filter((postponedId) => postponedId !== id), id]));
  const note = takeNote();
  if (note.note) send(current, { label: null, ...note });
  current = null;
  document.getElementById("task").focus({ preventScroll: true });
  drawPostponed();
  showTask().catch(showProblem);
}

function undo() {
  sending = sending.then(() => post("/undo", changed.length ? { id: changed.pop() } : {})).then(async (undone) => {
    showProblem(null);
    const row = await get(`/rows/${encodeURIComponent(undone.id)}`).catch(() => null);
    if (row && row.label === null) {
      if (current) queue.unshift(current);
      answeredIds.delete(row.id);
      current = row;
      pickedLabels = [];
    }
    drawKeys();
    await showTask();
    await refreshSidebar();
  }).catch(showProblem);
}

// Saves a change. A row that could not be saved comes next again; a message says if someone else has labelled the row meanwhile.
function send(row, change) {
  const { id } = row;
  sending = sending.then(() => requestJson("PUT", `/rows/${encodeURIComponent(id)}`, { row: row.row, ...change })).then(({ action, label }) => {
    if (action !== "unchanged") changed.push(id);
    const wasLabelled = (row.label ?? null) === null && ["moved", "unlabelled"].includes(action);
    showProblem(wasLabelled ? `${id} has been labelled by someone else; now it is ${label === null ? "without a label" : displayClass(label)}. Undo reverts that.` : null);
    refreshSoon();
  }).catch(async (problem) => {
    answeredIds.delete(id);
    if (![current, ...queue].some((queued) => queued && queued.id === id)) queue.unshift(row);
    if (!current) await showTask();
    showProblem(`${id} was not saved and will come up again: ${problem.message}`);
  }).catch(showProblem);
}

let waiting = 0;
function refreshSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => refreshSidebar().catch(showProblem), 400);
}

// Shows the accuracy so far, labels that look wrong, and the history.
async function refreshSidebar() {
  drawPostponed();
  const history = (await get("/history?n=60")).changes.filter((change) => change.action !== "kept" || change.note).slice(0, 15);
  fill("history", history.length ? table(["time", "row", "what", "label", "note"],
    history.map((change) => [new Date(change.time).toLocaleString("sv"), change.id, change.action, describeChange(change), change.note || ""]), ["", "value", "", "value", "value"]) : node("p", { class: "soft" }, "No answers yet."));
  const { labelled, unlabelled, accuracy, standard_error: standardError, learning_curve: learningCurve } = await get("/accuracy");
  const quality = accuracy === null ? "" : ` ${formatPercent(accuracy)} ± ${(100 * standardError).toFixed(1)} of the labelled rows are predicted correctly by a model that has not seen them.`;
  fill("progress", `${labelled.toLocaleString("en")} labelled, ${unlabelled.toLocaleString("en")} to go.${quality}`);
  fill("learning-curve", learningCurve.length >= FEWEST_POINTS ? drawLearningCurve(learningCurve) : null);
  suspects = labelled > 3 && !about.labels ? (await get("/suspicious?n=5&recent=true").catch(() => ({ rows: [] }))).rows.filter((suspect) => suspect.margin < 0) : [];
  fill("suspicious", suspects.length ? table(["row", "label", "suggested", "probability", ""], suspects.map((suspect, k) => [
    `${suspect.id}: ${displayText(content(suspect.row), 80)}`, displayClass(suspect.label), displayClass(suspect.suggested), formatPercent(suspect.probability),
    node("span", {}, node("button", { class: "small", onclick: () => correct(suspect) }, k ? "" : node("kbd", {}, "c"), " correct"), " ",
      node("button", { class: "small", onclick: () => reopen(suspect.id) }, "open"))]), ["value", "value", "value", "number", ""])
    : node("p", { class: "soft" }, about.labels ? "Not available when rows can have several labels." : "No label looks wrong."));
}

// The longest text of a row.
const content = (row) => (typeof row === "string" ? row : Object.values(row ?? {}).filter((v) => typeof v === "string").sort((a, b) => b.length - a.length)[0] ?? JSON.stringify(row));
const describeChange = ({ label, label_before: labelBefore }) => {
  if (label === undefined) return "";
  const labelAfter = label === null ? "none" : displayClass(label);
  return labelBefore === undefined || labelBefore === null ? labelAfter : `${displayClass(labelBefore)} → ${labelAfter}`;
};

function correct(suspect) {
  suspects = suspects.filter((other) => other !== suspect);
  send(suspect, { label: suspect.suggested, note: "corrected" });
}

async function reopen(id) {
  const row = await get(`/rows/${encodeURIComponent(id)}`).catch(showProblem);
  if (!row) return;
  localStorage.setItem(POSTPONED, JSON.stringify(postponedIds().filter((postponedId) => postponedId !== id)));
  if (current) queue.unshift(current);
  current = row;
  pickedLabels = about.labels && row.label ? [...row.label] : [];
  drawKeys();
  await showTask().catch(showProblem);
  document.getElementById("task").focus();
}

function drawPostponed() {
  const ids = postponedIds();
  fill("postponed", ids.length ? node("p", {}, ids.flatMap((id) => [node("button", { class: "small", onclick: () => reopen(id) }, id), " "])) : node("p", { class: "soft" }, "None."));
}

function drawLearningCurve(points) {
  const nRows = points[points.length - 1].rows;
  const x = (n) => 30 + (560 * n) / Math.max(nRows, 1);
  const y = (p) => 75 - 70 * Math.max(0, Math.min(1, p));
  const upper = points.map((p) => `${x(p.rows)},${y(p.accuracy + p.standard_error)}`);
  const lower = points.map((p) => `${x(p.rows)},${y(p.accuracy - p.standard_error)}`).reverse();
  return node("figure", { class: "chart" }, svgNode("svg", { viewBox: "0 0 600 92", role: "img", "aria-label": `Accuracy by rows labelled, now ${formatPercent(points[points.length - 1].accuracy)}` },
    svgNode("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
    svgNode("polyline", { class: "line", points: points.map((p) => `${x(p.rows)},${y(p.accuracy)}`).join(" ") }),
    svgNode("line", { class: "tick", x1: 30, x2: 590, y1: 75, y2: 75 }),
    svgNode("text", { x: 0, y: 12 }, "100"), svgNode("text", { x: 6, y: 75 }, "0"), svgNode("text", { x: 500, y: 90 }, `${nRows.toLocaleString("en")} rows`)));
}
