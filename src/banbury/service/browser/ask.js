// Ask: a row, its answer and why; what if a value were another, or a word were not there.
import { shaded, waterfall } from "./evidence.js";
import { about, apart, bar, decibans, drawn, fill, figure, get, labelOf, named, node, percent, post, say, shown, size } from "./service.js";

const MOST = 200; // values that a list offers; more are typed in
let turn = 0;
let struck = [];
let before = null; // the answer before the last change
let against = "";

export function drawAsk() {
  const inputs = about.fields.map((field, k) => input(field, k));
  const actions = node("div", { class: "actions" },
    node("button", { class: "first" }, "Ask"),
    node("button", { type: "button", id: "clear", onclick: clear }, "Clear"),
    node("span", { id: "struck", class: "soft" }));
  fill("row", inputs, actions);
  const form = document.getElementById("row");
  form.addEventListener("submit", (event) => { event.preventDefault(); answer().catch(say); });
  let waiting = 0;
  form.addEventListener("input", () => {
    struck = [];
    clearTimeout(waiting);
    waiting = setTimeout(() => answer().catch(say), 250);
  });
}

export async function openAsk() {
  if (!about.fields.length) say("The model has no columns to fill in.");
  const sheet = document.getElementById("sheet");
  sheet.hidden = !about.sheet;
  if (!sheet.dataset.ready) sheet.addEventListener("toggle", () => { if (sheet.open) nomogram().catch(say); });
  sheet.dataset.ready = "yes";
}

function input(field, k) {
  const id = `field-${k}`;
  const place = (control, kind = "field", ...more) => node("div", { class: kind }, node("label", { for: id }, field.name), control, more);
  if (field.kind === "text") return place(node("textarea", { id, dir: "auto", spellcheck: "false", placeholder: "Paste a text" }), "field text");
  if (field.values && field.values.length <= MOST) {
    const options = field.values.map((value, v) => node("option", { value: v }, shown(value)));
    return place(node("select", { id }, node("option", { value: "" }, "(missing)"), options));
  }
  const number = field.kind === "number";
  const range = number && field.low !== null ? `mostly ${figure(field.low)} to ${figure(field.high)}` : "missing";
  const list = field.values ? node("datalist", { id: `${id}-list` }, field.values.slice(0, 1000).map((v) => node("option", { value: shown(v) }))) : null;
  return place(node("input", { id, placeholder: range, autocomplete: "off", inputmode: number ? "decimal" : null, list: list ? `${id}-list` : null }), "field", list);
}

export function given() {
  const row = Object.create(null); // a column may be called __proto__
  about.fields.forEach((field, k) => {
    const text = document.getElementById(`field-${k}`).value;
    if (text === "") return;
    if (field.kind === "text") row[field.name] = without(text);
    else if (field.values && field.values.length <= MOST) row[field.name] = field.values[Number(text)];
    else if (field.kind === "number") {
      const number = Number(text.trim().replace(/,/g, ""));
      if (text.trim() === "" || !Number.isFinite(number)) throw new Error(`${field.name}: ${text} is not a number. Leave it empty if it is missing.`);
      row[field.name] = number;
    } else if (field.kind === "list") row[field.name] = numbers(field.name, text);
    else row[field.name] = text;
  });
  return row;
}

function numbers(name, text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: enter a list of numbers, such as [1, 2.5].`);
  }
}

// The text without the words that are struck out: each place is blank, so that nothing else moves.
function without(text) {
  const letters = Array.from(text);
  for (const { positions } of struck) for (const [start, end] of positions) letters.fill(" ", start, end);
  return letters.join("");
}

async function answer() {
  say(null);
  const mine = (turn += 1);
  const row = given();
  if (!Object.keys(row).length) {
    fill("answer");
    fill("text-shown");
    fill("why");
    return;
  }
  const [told, why] = await Promise.all([post("/predict", { row, posteriors: true }), post("/explain", { row, ...beside() })]);
  if (mine !== turn) return; // another answer is on its way
  draw(told.predictions[0], why);
}

// What the row is weighed against, or the label to explain, where one was chosen.
function beside() {
  if (!against) return {};
  return { [about.labels ? "label" : "against"]: about.names.find((name) => String(name) === against) };
}

function draw(prediction, why) {
  const classes = Object.entries(prediction.posteriors).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const won = named(about.labels ? prediction.labels : prediction.class);
  const share = about.labels ? null : prediction.probability;
  const was = before && before.won !== undefined && (before.won !== won || before.share !== share)
    ? `Before: ${before.won}${before.share === null ? "" : ` ${percent(before.share)}`}.` : null;
  before = { won, share };
  const chooser = node("label", {}, about.labels ? "Explain " : "Compare it with ",
    node("select", { id: "against", onchange: (event) => { against = event.target.value; answer().catch(say); } },
      node("option", { value: "" }, about.labels ? "the most probable label" : "the runner-up"),
      about.names.map((name) => node("option", { value: String(name), selected: String(name) === against }, named(name)))));
  const [winner, other] = [named(why.winner), named(why.against)];
  fill("answer",
    node("p", { class: "lead" }, node("b", {}, won), share === null ? "" : ` ${percent(share)}`),
    was ? node("p", { class: "soft" }, was) : null,
    node("div", { class: "bars" }, classes.flatMap(([name, p]) => [node("span", {}, named(labelOf(name))), bar(p), node("span", { class: "number" }, percent(p))])),
    node("p", { class: "soft" }, chooser));
  fill("text-shown", Object.keys(why.texts).length ? node("p", { class: "soft" },
    node("span", { class: "key for" }, `for ${winner}`), " ", node("span", { class: "key against" }, `for ${other}`),
    " Click a word to see the answer without it.") : null, shaded(why, strike));
  fill("why", node("h2", {}, `Why ${winner}`),
    node("p", { class: "soft" }, `Evidence in decibans: +10 multiplies the odds by ten. The sum, ${decibans(why.decibans)}, is ${winner} ${percent(why.probability)} against ${other} ${percent(why.probability_against)}.`),
    why.stale ? node("p", { class: "soft" }, "Rows have been learned or forgotten since these weights were learned.") : null,
    why.unknown.length ? node("p", { class: "soft" }, `Not seen in training: ${why.unknown.slice(0, 12).map(apart).join(", ")}${why.unknown.length > 12 ? ", …" : ""}`) : null,
    waterfall(why, strike));
  if (document.getElementById("sheet").open) nomogram().catch(say);
}

function strike(e) {
  struck.push(e);
  again();
}

function again() {
  fill("struck", struck.length ? "Left out: " : "", struck.map((one, k) => node("button", { class: "small struck", type: "button",
    "aria-label": `Put ${one.value} back`, onclick: () => { struck.splice(k, 1); again(); } }, shown(one.value))));
  answer().catch(say);
}

function clear() {
  struck = [];
  before = null;
  document.getElementById("row").reset();
  fill("struck");
  answer().catch(say);
}

// The nomogram: every value of every column where it stands on the scale of decibans. A value that is chosen is filled in.
async function nomogram() {
  const row = given();
  const sheet = await post("/nomogram", { row, ...beside() });
  const ends = sheet.scales.flatMap((scale) => scale.decibans.map(size)).map(Math.abs).sort((a, b) => a - b);
  const most = Math.max(5, ends[Math.floor(0.95 * (ends.length - 1))] || 0); // what is farther stands at the edge
  const x = (weight) => 300 + (280 * Math.max(-most, Math.min(most, size(weight)))) / most;
  const lanes = sheet.scales.map((scale) => {
    const place = about.fields.findIndex((field) => field.name === scale.feature); // none, of a pair
    const tall = scale.numeric ? 90 : 40;
    const chosen = scale.points === null ? null : drawn("circle", { class: "chosen", cx: x(scale.points), cy: height(scale, row[scale.feature], tall), r: 6 });
    const marks = scale.numeric
      ? [drawn("polyline", { class: "line", points: scale.decibans.map((d, k) => `${x(d)},${tall - 4 - ((tall - 8) * k) / Math.max(scale.decibans.length - 1, 1)}`).join(" ") })]
      : scale.decibans.map((d) => drawn("circle", { class: "dot", cx: x(d), cy: 20, r: 3.5 }));
    const picture = drawn("svg", { viewBox: `0 0 600 ${tall}`, role: "img", "aria-label": `${scale.feature}, from ${decibans(Math.min(...scale.decibans.map(size)))} to ${decibans(Math.max(...scale.decibans.map(size)))} decibans` },
      drawn("line", { class: "tick", x1: 20, x2: 580, y1: tall / 2, y2: tall / 2 }), drawn("line", { class: "zero", x1: 300, x2: 300, y1: 4, y2: tall - 4 }), marks, chosen);
    const order = scale.numeric ? [] : scale.decibans.map((d, k) => k).sort((a, b) => size(scale.decibans[b]) - size(scale.decibans[a]));
    const picks = order.slice(0, 24).map((k) => node("button", { class: "small", type: "button",
      disabled: place < 0, onclick: () => choose(place, scale, k) }, `${shown(scale.names[k], 36)} ${decibans(scale.decibans[k])}`));
    const ends = scale.numeric ? `${figure(scale.values[0])} at the bottom, ${figure(scale.values[scale.values.length - 1])} at the top` : "";
    return node("div", { class: "lane" }, node("div", {}, node("b", {}, scale.feature), " ", node("span", { class: "soft" }, ends)), picture, node("div", { class: "places" }, picks));
  });
  fill("lanes", node("p", { class: "soft" }, `Right of the centre: evidence for ${named(sheet.label)}. Left: evidence for ${named(sheet.against)}. The prior is ${decibans(sheet.prior)}. Each scale is ${(2 * most).toFixed(0)} decibans wide.`), lanes);
}

// How high a number stands in its lane: where the curve has it.
function height(scale, value, tall) {
  if (!scale.numeric || typeof value !== "number") return tall / 2;
  const after = scale.values.findIndex((each) => each >= value);
  const k = after < 0 ? scale.values.length - 1 : after;
  return tall - 4 - ((tall - 8) * k) / Math.max(scale.values.length - 1, 1);
}

function choose(place, scale, k) {
  if (place < 0) return;
  const field = about.fields[place];
  const input = document.getElementById(`field-${place}`);
  if (field.kind === "text") input.value = `${input.value} ${scale.values[k]}`.trim();
  else if (field.values && field.values.length <= MOST) input.value = String(field.values.findIndex((v) => String(v) === String(scale.values[k])));
  else input.value = String(scale.values[k]);
  answer().catch(say);
}
