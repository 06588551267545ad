// Inspect: what the model is, how good it is, which evidence it uses, where it errs, and whether the latest rows have drifted.
import { about, fill, formatNumber, get, displayClass, node, formatPercent, showProblem, displayText, table } from "./service.js";

export async function openInspect() {
  Object.assign(about, await get("/model"));
  fill("overview", node("p", {}, "Measuring…"));
  const overview = await get("/inspect");
  fill("overview", drawFacts(), drawQuality(overview), drawShapes(overview), drawInformativeValues(overview), drawColumns(overview), drawDrift(overview));
}

function drawFacts() {
  const rows = [
    ["rows", formatNumber(about.rows)],
    ["estimation", `${about.how}, α = ${about.alpha}`],
    ["evidence", about.weighed ? `weighed${about.weights && about.weights.stale ? "; rows have been learned or forgotten since" : ""}` : "plain"],
    ["probabilities", about.calibrated ? "calibrated" : "not calibrated"],
    ["digest", about.digest],
    ["change", formatNumber(about.change)],
  ];
  const rowsByClass = (about.labels || about.classes).map((entry) => [entry.label ?? entry.class, entry.rows]).sort((a, b) => b[1] - a[1]);
  return [node("dl", { class: "facts" }, rows.flatMap(([name, text]) => [node("dt", {}, name), node("dd", {}, text)])),
    node("h2", {}, about.labels ? "Labels" : "Classes"),
    table([about.labels ? "label" : "class", "rows"], rowsByClass.slice(0, 200).map(([name, n]) => [displayClass(name), formatNumber(n)]), ["value", "number"])];
}

function drawQuality(overview) {
  if (!overview.validation) return [node("h2", {}, "How good it is"), node("p", { class: "soft" }, overview.why_no_validation)];
  const quality = overview.validation;
  const nodes = [node("h2", {}, "How good it is"), node("p", {}, `${quality.method}: accuracy ${formatPercent(quality.accuracy)} ± ${(100 * quality.standard_error).toFixed(1)} on ${formatNumber(quality.rows)} rows; log loss ${quality.log_loss.toFixed(4)}.`)];
  if (quality.confusion) nodes.push(node("h3", {}, "Confusion"), node("p", { class: "soft" }, "Rows: true class. Columns: predicted class. Open a cell to see its rows."), drawConfusion(quality), node("div", { id: "cell" }));
  nodes.push(drawCharts(overview.charts));
  return nodes;
}

// Pictures as in the report. They are parsed as SVG, not as HTML, so that they cannot run scripts.
function drawCharts(pictures, kind = "charts") {
  return node("div", { class: kind }, pictures.map(({ caption, svg }) => {
    const parsed = new DOMParser().parseFromString(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '), "image/svg+xml");
    return node("figure", {}, node("figcaption", {}, caption), document.importNode(parsed.documentElement, true));
  }));
}

function drawShapes(overview) {
  const groups = overview.shapes.filter((group) => group.charts.length);
  if (!groups.length) return [];
  const note = "The evidence of every value, in decibans: blue is evidence for the class, orange is evidence against it. Bands and lines are 95 % intervals; the strip shows where the rows are.";
  return [node("h2", {}, "What it has learned"), node("p", { class: "soft" }, note),
    groups.map((group, k) => node("details", { open: k === 0 }, node("summary", {}, `for ${displayClass(group.class)}`), drawCharts(group.charts, "charts shapes")))];
}

function drawConfusion({ classes, confusion: counts }) {
  const rows = counts.map((row, truth) => [displayClass(classes[truth]), ...row.map((n, predicted) => n
    ? node("button", { class: "small", "aria-label": `${n} ${n === 1 ? "row" : "rows"} of ${displayClass(classes[truth])} mistaken for ${displayClass(classes[predicted])}`, onclick: () => showCell(truth, predicted).catch(showProblem) }, formatNumber(n)) : "")]);
  const matrix = table(["", ...classes.map(displayClass)], rows, ["value", ...classes.map(() => "number")]);
  matrix.classList.add("matrix");
  return matrix;
}

// Lists the rows of a cell of the confusion matrix. truth, predicted: class numbers.
async function showCell(truth, predicted) {
  const mistakes = await get(`/inspect/rows?truth=${truth}&predicted=${predicted}`);
  fill("cell", node("h3", {}, `${displayClass(mistakes.truth)} mistaken for ${displayClass(mistakes.predicted)}`), table(["row", "holds", "probability"], mistakes.rows.map((mistake) => [mistake.id, displayText(mistake.row, 200), formatPercent(mistake.probability)]), ["value", "value", "number"]));
  document.getElementById("cell").setAttribute("tabindex", "-1");
  document.getElementById("cell").focus();
}

function drawInformativeValues(overview) {
  const cards = overview.informative.map((group) => node("div", {}, node("h3", {}, displayClass(group.class)), node("ol", {},
    group.ratios.map((ratio) => node("li", {}, `${ratio.word ? "" : `${ratio.feature}: `}${displayText(ratio.value, 40)} `, node("span", { class: "soft" }, `${ratio.ratio} : 1`))))));
  return cards.length ? [node("h2", {}, "Most informative values"), node("p", { class: "soft" }, "How many times more probable a value is in the class than in all other classes together, most informative first."), node("div", { class: "cards" }, cards)] : [];
}

function drawColumns(overview) {
  const weights = overview.weights || {};
  const head = ["column", "counted as", "why", ...(overview.weights ? ["weight"] : [])];
  const rows = about.features.map((f) => [f.name, f.family, f.why || "", ...(overview.weights ? [Object.hasOwn(weights, f.name) ? weights[f.name].toFixed(2) : ""] : [])]);
  return [node("h2", {}, "Columns"), table(head, rows.slice(0, 300), ["value", "value", "value", "number"])];
}

function drawDrift(overview) {
  if (!overview.drift) return [];
  const rows = overview.drift.differences.map((difference) => [difference.feature, displayText(difference.value, 60), `${difference.ratio} : 1`]);
  return [node("h2", {}, "Drift"), node("p", {}, overview.drift.message),
    rows.length ? table(["column", "value", "times as probable in the last rows"], rows, ["value", "value", "number"]) : null];
}
