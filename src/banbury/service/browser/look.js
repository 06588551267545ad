// Look: what the model is, how good it is, what it goes by, where it errs, and whether the last rows are like the rest.
import { about, drawn, fill, figure, get, named, node, percent, say, shown, table } from "./service.js";

export async function openLook() {
  Object.assign(about, await get("/model"));
  fill("looked", node("p", {}, "Measuring…"));
  const told = await get("/look");
  fill("looked", facts(), measured(told), telling(told), columns(told), drift(told));
}

function facts() {
  const rows = [
    ["rows", figure(about.rows)],
    ["estimated by", `${about.how}, α = ${about.alpha}`],
    ["evidence", about.weighed ? `weighed${about.weights && about.weights.stale ? "; rows were learned or forgotten since" : ""}` : "as it was counted"],
    ["probabilities", about.calibrated ? "calibrated" : "as they come"],
    ["digest", about.digest],
    ["change", figure(about.change)],
  ];
  const counted = (about.labels || about.classes).map((each) => [each.label ?? each.class, each.rows]).sort((a, b) => b[1] - a[1]);
  return [node("dl", { class: "facts" }, rows.flatMap(([name, text]) => [node("dt", {}, name), node("dd", {}, text)])),
    node("h2", {}, about.labels ? "Labels" : "Classes"),
    table([about.labels ? "label" : "class", "rows"], counted.slice(0, 200).map(([name, n]) => [named(name), figure(n)]), ["value", "number"])];
}

function measured(told) {
  if (!told.measured) return [node("h2", {}, "How good it is"), node("p", { class: "soft" }, told.why)];
  const good = told.measured;
  const made = [node("h2", {}, "How good it is"), node("p", {}, `${good.what}: right on ${percent(good.accuracy)} ± ${(100 * good.error).toFixed(1)} of ${figure(good.rows)} rows; log loss ${good.log_loss.toFixed(4)}.`)];
  if (good.confusion) made.push(node("h3", {}, "Confusion"), node("p", { class: "soft" }, "Rows: what a row is. Columns: what it was taken for. Open a cell to see its rows."), confusion(good), node("div", { id: "cell" }));
  const charts = [];
  if (good.calibration) charts.push(node("figure", {}, node("figcaption", {}, "Right answers by confidence"), calibration(good.calibration)));
  if (told.curve && told.curve.length > 1) charts.push(node("figure", {}, node("figcaption", {}, "Accuracy by rows learned from"), curve(told.curve)));
  made.push(node("div", { class: "charts" }, charts));
  return made;
}

function confusion({ classes, confusion: counts }) {
  const rows = counts.map((row, truth) => [named(classes[truth]), ...row.map((n, answer) => n
    ? node("button", { class: "small", "aria-label": `${n} ${n === 1 ? "row" : "rows"} of ${named(classes[truth])} taken for ${named(classes[answer])}`, onclick: () => cell(truth, answer).catch(say) }, figure(n)) : "")]);
  const made = table(["", ...classes.map(named)], rows, ["value", ...classes.map(() => "number")]);
  made.classList.add("matrix");
  return made;
}

async function cell(truth, answer) {
  const told = await get(`/look/rows?truth=${truth}&answer=${answer}`);
  fill("cell", node("h3", {}, `${named(told.truth)} taken for ${named(told.answer)}`), table(["row", "holds", "probability"], told.rows.map((each) => [each.id, shown(each.row, 200), percent(each.probability)]), ["value", "value", "number"]));
  document.getElementById("cell").setAttribute("tabindex", "-1");
  document.getElementById("cell").focus();
}

function axes(inside, x, y) {
  return drawn("svg", { viewBox: "0 0 320 240", role: "img", "aria-label": `${y} by ${x}` },
    drawn("line", { class: "tick", x1: 40, x2: 310, y1: 200, y2: 200 }), drawn("line", { class: "tick", x1: 40, x2: 40, y1: 10, y2: 200 }),
    drawn("text", { x: 8, y: 18 }, "100"), drawn("text", { x: 14, y: 108 }, "50"), drawn("text", { x: 22, y: 204 }, "0"),
    drawn("text", { x: 175, y: 232, "text-anchor": "middle" }, x), inside);
}

function calibration(bins) {
  const x = (p) => 40 + 270 * p;
  const y = (p) => 200 - 190 * p;
  return axes([drawn("line", { class: "ideal", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }),
    drawn("polyline", { class: "line", points: bins.map((b) => `${x(b.confidence)},${y(b.right)}`).join(" ") }),
    bins.map((b) => drawn("circle", { class: "dot", cx: x(b.confidence), cy: y(b.right), r: 4 }, drawn("title", {}, `${figure(b.rows)} rows: ${percent(b.confidence)} sure, ${percent(b.right)} right`)))], "how sure it was, 0 to 100", "right answers");
}

function curve(points) {
  const most = Math.log(points[points.length - 1].rows);
  const least = Math.log(Math.max(points[0].rows, 1));
  const x = (n) => 45 + (260 * (Math.log(n) - least)) / Math.max(most - least, 1e-9);
  const y = (p) => 200 - 190 * p;
  return axes([drawn("polyline", { class: "line", points: points.map((p) => `${x(p.rows)},${y(p.accuracy)}`).join(" ") }),
    points.map((p) => drawn("circle", { class: "dot", cx: x(p.rows), cy: y(p.accuracy), r: 4 }, drawn("title", {}, `${figure(p.rows)} rows: ${percent(p.accuracy)}`))),
    drawn("text", { x: 45, y: 216 }, figure(points[0].rows)), drawn("text", { x: 305, y: 216, "text-anchor": "end" }, figure(points[points.length - 1].rows))], "rows learned from", "accuracy");
}

function telling(told) {
  const cards = told.informative.map((own) => node("div", {}, node("h3", {}, named(own.class ?? own.label)), node("ol", {},
    own.ratios.map((each) => node("li", {}, `${each.word ? "" : `${each.feature}: `}${shown(each.value, 40)} `, node("span", { class: "soft" }, `${each.shown} : 1`))))));
  return cards.length ? [node("h2", {}, "What tells"), node("p", { class: "soft" }, "How many times as probable a value is in the class as in all others together."), node("div", { class: "cards" }, cards)] : [];
}

function columns(told) {
  const weights = told.weights || {};
  const head = ["column", "counted as", "why", ...(told.weights ? ["weight"] : [])];
  const rows = about.features.map((f) => [f.name, f.family, f.why || "", ...(told.weights ? [Object.hasOwn(weights, f.name) ? weights[f.name].toFixed(2) : ""] : [])]);
  return [node("h2", {}, "Columns"), table(head, rows.slice(0, 300), ["value", "value", "value", "number"])];
}

function drift(told) {
  if (!told.drift) return [];
  const rows = told.drift.telling.map((each) => [each.feature, shown(each.value, 60), `${each.shown} : 1`]);
  return [node("h2", {}, "Drift"), node("p", {}, told.drift.said),
    rows.length ? table(["column", "value", "so many times as probable in the last rows"], rows, ["value", "value", "number"]) : null];
}
