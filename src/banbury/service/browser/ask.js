// Ask: predicts and explains a row, and again when the user changes a value or removes a word.
import { shadeTexts, waterfall } from "./evidence.js";
import { about, isolateText, bar, formatDecibans, svgNode, fill, formatNumber, get, labelOf, displayClass, node, formatPercent, post, showProblem, displayText, toNumber } from "./service.js";

const MOST_OPTIONS = 200; // values that a list offers; more are typed in
let requestNumber = 0;
let removedWords = []; // pieces of evidence, each with the positions of its word in the text
let previousAnswer = null; // predicted class and its probability before the last change
let against = ""; // the class to compare with, or the label to explain; empty for the default

export function drawAsk() {
  const inputs = about.fields.map((field, k) => input(field, k));
  const actions = node("div", { class: "actions" },
    node("button", { class: "first" }, "Ask"),
    node("button", { type: "button", id: "clear", onclick: clear }, "Clear"),
    node("span", { id: "removed-words", class: "soft" }));
  fill("row", inputs, actions);
  const form = document.getElementById("row");
  form.addEventListener("submit", (event) => { event.preventDefault(); answer().catch(showProblem); });
  let waiting = 0;
  form.addEventListener("input", () => {
    removedWords = [];
    clearTimeout(waiting);
    waiting = setTimeout(() => answer().catch(showProblem), 250);
  });
}

export async function openAsk() {
  if (!about.fields.length) showProblem("The model has no columns to fill in.");
  const details = document.getElementById("nomogram");
  details.hidden = !about.has_nomogram;
  if (!details.dataset.ready) details.addEventListener("toggle", () => { if (details.open) drawNomogram().catch(showProblem); });
  details.dataset.ready = "yes";
}

function input(field, k) {
  const id = `field-${k}`;
  const place = (control, kind = "field", ...more) => node("div", { class: kind }, node("label", { for: id }, field.name), control, more);
  if (field.kind === "text") return place(node("textarea", { id, dir: "auto", spellcheck: "false", placeholder: "Paste a text" }), "field text");
  if (field.values && field.values.length <= MOST_OPTIONS) {
    const options = field.values.map((value, v) => node("option", { value: v }, displayText(value)));
    return place(node("select", { id }, node("option", { value: "" }, "(missing)"), options));
  }
  const number = field.kind === "number";
  const range = number && field.low !== null ? `mostly ${formatNumber(field.low)} to ${formatNumber(field.high)}` : "missing";
  const list = field.values ? node("datalist", { id: `${id}-list` }, field.values.slice(0, 1000).map((v) => node("option", { value: displayText(v) }))) : null;
  return place(node("input", { id, placeholder: range, autocomplete: "off", inputmode: number ? "decimal" : null, list: list ? `${id}-list` : null }), "field", list);
}

export function enteredRow() {
  const row = Object.create(null); // a column may be called __proto__
  about.fields.forEach((field, k) => {
    const text = document.getElementById(`field-${k}`).value;
    if (text === "") return;
    if (field.kind === "text") row[field.name] = blankRemovedWords(text);
    else if (field.values && field.values.length <= MOST_OPTIONS) row[field.name] = field.values[Number(text)];
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

// Replaces the removed words of a text by blanks, so that all other positions stay the same.
function blankRemovedWords(text) {
  const letters = Array.from(text);
  for (const { positions } of removedWords) for (const [start, end] of positions) letters.fill(" ", start, end);
  return letters.join("");
}

async function answer() {
  showProblem(null);
  const number = (requestNumber += 1);
  const row = enteredRow();
  if (!Object.keys(row).length) {
    fill("answer");
    fill("shaded-texts");
    fill("why");
    return;
  }
  const [{ predictions }, why] = await Promise.all([post("/predict", { row, posteriors: true }), post("/explain", { row, ...comparison() })]);
  if (number !== requestNumber) return; // another answer is on its way
  draw(predictions[0], why);
}

// The class to compare with, or the label to explain, if the user has chosen one.
function comparison() {
  if (!against) return {};
  return { [about.labels ? "label" : "against"]: about.names.find((name) => String(name) === against) };
}

function draw(prediction, why) {
  const classes = Object.entries(prediction.posteriors).sort((a, b) => b[1] - a[1]).slice(0, 8); // the most probable, with probability
  const predicted = displayClass(about.labels ? prediction.labels : prediction.class);
  const probability = about.labels ? null : prediction.probability;
  const previousText = previousAnswer && (previousAnswer.predicted !== predicted || previousAnswer.probability !== probability)
    ? `Before: ${previousAnswer.predicted}${previousAnswer.probability === null ? "" : ` ${formatPercent(previousAnswer.probability)}`}.` : null;
  previousAnswer = { predicted, probability };
  const chooser = node("label", {}, about.labels ? "Explain " : "Compare it with ",
    node("select", { id: "against", onchange: (event) => { against = event.target.value; answer().catch(showProblem); } },
      node("option", { value: "" }, about.labels ? "the most probable label" : "the runner-up"),
      about.names.map((name) => node("option", { value: String(name), selected: String(name) === against }, displayClass(name)))));
  const [winner, other] = [displayClass(why.winner), displayClass(why.against)];
  fill("answer",
    node("p", { class: "lead" }, node("b", {}, predicted), probability === null ? "" : ` ${formatPercent(probability)}`),
    previousText ? node("p", { class: "soft" }, previousText) : null,
    node("div", { class: "bars" }, classes.flatMap(([name, p]) => [node("span", {}, displayClass(labelOf(name))), bar(p), node("span", { class: "number" }, formatPercent(p))])),
    node("p", { class: "soft" }, chooser));
  fill("shaded-texts", Object.keys(why.texts).length ? node("p", { class: "soft" },
    node("span", { class: "key for" }, `for ${winner}`), " ", node("span", { class: "key against" }, `for ${other}`),
    " Click a word to see the answer without it.") : null, shadeTexts(why, removeWord));
  fill("why", node("h2", {}, `Why ${winner}`),
    node("p", { class: "soft" }, `Evidence in decibans: +10 multiplies the odds by ten. The sum, ${formatDecibans(why.decibans)}, is ${winner} ${formatPercent(why.probability)} against ${other} ${formatPercent(why.probability_against)}.`),
    why.stale ? node("p", { class: "soft" }, "Rows have been learned or forgotten since these weights were learned.") : null,
    why.unknown.length ? node("p", { class: "soft" }, `Not seen in training: ${why.unknown.slice(0, 12).map(isolateText).join(", ")}${why.unknown.length > 12 ? ", …" : ""}`) : null,
    waterfall(why, removeWord));
  if (document.getElementById("nomogram").open) drawNomogram().catch(showProblem);
}

function removeWord(evidence) {
  removedWords.push(evidence);
  answerAgain();
}

function answerAgain() {
  fill("removed-words", removedWords.length ? "Left out: " : "", removedWords.map((word, k) => node("button", { class: "small struck", type: "button",
    "aria-label": `Put ${word.value} back`, onclick: () => { removedWords.splice(k, 1); answerAgain(); } }, displayText(word.value))));
  answer().catch(showProblem);
}

function clear() {
  removedWords = [];
  previousAnswer = null;
  document.getElementById("row").reset();
  fill("removed-words");
  answer().catch(showProblem);
}

// The nomogram: draws every value of every column on the scale of decibans. The row's values are filled circles.
async function drawNomogram() {
  const row = enteredRow();
  const nomogram = await post("/nomogram", { row, ...comparison() });
  const strengths = nomogram.scales.flatMap((scale) => scale.decibans.map(toNumber)).map(Math.abs).sort((a, b) => a - b);
  const widest = Math.max(5, strengths[Math.floor(0.95 * (strengths.length - 1))] || 0); // decibans; stronger evidence is drawn at the edge
  const x = (decibans) => 300 + (280 * Math.max(-widest, Math.min(widest, toNumber(decibans)))) / widest; // pixels
  const lanes = nomogram.scales.map((scale) => {
    const fieldIndex = about.fields.findIndex((field) => field.name === scale.feature); // −1 for a pair
    const laneHeight = scale.numeric ? 90 : 40; // pixels
    const chosen = scale.points === null ? null : svgNode("circle", { class: "chosen", cx: x(scale.points), cy: height(scale, row[scale.feature], laneHeight), r: 6 });
    const marks = scale.numeric
      ? [svgNode("polyline", { class: "line", points: scale.decibans.map((d, k) => `${x(d)},${laneHeight - 4 - ((laneHeight - 8) * k) / Math.max(scale.decibans.length - 1, 1)}`).join(" ") })]
      : scale.decibans.map((d) => svgNode("circle", { class: "dot", cx: x(d), cy: 20, r: 3.5 }));
    const picture = svgNode("svg", { viewBox: `0 0 600 ${laneHeight}`, role: "img", "aria-label": `${scale.feature}, from ${formatDecibans(Math.min(...scale.decibans.map(toNumber)))} to ${formatDecibans(Math.max(...scale.decibans.map(toNumber)))} decibans` },
      svgNode("line", { class: "tick", x1: 20, x2: 580, y1: laneHeight / 2, y2: laneHeight / 2 }), svgNode("line", { class: "zero", x1: 300, x2: 300, y1: 4, y2: laneHeight - 4 }), marks, chosen);
    const strongestFirst = scale.numeric ? [] : scale.decibans.map((d, k) => k).sort((a, b) => toNumber(scale.decibans[b]) - toNumber(scale.decibans[a]));
    const buttons = strongestFirst.slice(0, 24).map((k) => node("button", { class: "small", type: "button",
      disabled: fieldIndex < 0, onclick: () => choose(fieldIndex, scale, k) }, `${displayText(scale.names[k], 36)} ${formatDecibans(scale.decibans[k])}`));
    const range = scale.numeric ? `${formatNumber(scale.values[0])} at the bottom, ${formatNumber(scale.values[scale.values.length - 1])} at the top` : "";
    return node("div", { class: "lane" }, node("div", {}, node("b", {}, scale.feature), " ", node("span", { class: "soft" }, range)), picture, node("div", { class: "places" }, buttons));
  });
  fill("lanes", node("p", { class: "soft" }, `Right of the centre: evidence for ${displayClass(nomogram.label)}. Left: evidence for ${displayClass(nomogram.against)}. The prior is ${formatDecibans(nomogram.prior)}. Each scale is ${(2 * widest).toFixed(0)} decibans wide.`), lanes);
}

// The vertical position of a number in its lane (pixels), the same as on the curve.
function height(scale, value, laneHeight) {
  if (!scale.numeric || typeof value !== "number") return laneHeight / 2;
  const firstReaching = scale.values.findIndex((curveValue) => curveValue >= value);
  const k = firstReaching < 0 ? scale.values.length - 1 : firstReaching;
  return laneHeight - 4 - ((laneHeight - 8) * k) / Math.max(scale.values.length - 1, 1);
}

// Fills value number k of a scale into field number fieldIndex of the form, and asks again.
function choose(fieldIndex, scale, k) {
  const field = about.fields[fieldIndex];
  const input = document.getElementById(`field-${fieldIndex}`);
  if (field.kind === "text") input.value = `${input.value} ${scale.values[k]}`.trim();
  else if (field.values && field.values.length <= MOST_OPTIONS) input.value = String(field.values.findIndex((v) => String(v) === String(scale.values[k])));
  else input.value = String(scale.values[k]);
  answer().catch(showProblem);
}
