// Look: what the model is, how good it is, what it goes by, where it errs, and whether the last rows are like the rest.
import { about, fill, figure, get, named, node, percent, say, shown, table } from "./service.js";

export async function openLook() {
  Object.assign(about, await get("/model"));
  fill("looked", node("p", {}, "Measuring…"));
  const told = await get("/look");
  fill("looked", facts(), measured(told), shapes(told), telling(told), columns(told), drift(told));
}

function facts() {
  const rows = [
    ["rows", figure(about.rows)],
    ["estimation", `${about.how}, α = ${about.alpha}`],
    ["evidence", about.weighed ? `weighed${about.weights && about.weights.stale ? "; rows have been learned or forgotten since" : ""}` : "plain"],
    ["probabilities", about.calibrated ? "calibrated" : "not calibrated"],
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
  const made = [node("h2", {}, "How good it is"), node("p", {}, `${good.what}: accuracy ${percent(good.accuracy)} ± ${(100 * good.error).toFixed(1)} on ${figure(good.rows)} rows; log loss ${good.log_loss.toFixed(4)}.`)];
  if (good.confusion) made.push(node("h3", {}, "Confusion"), node("p", { class: "soft" }, "Rows: true class. Columns: predicted class. Open a cell to see its rows."), confusion(good), node("div", { id: "cell" }));
  made.push(charts(told.charts));
  return made;
}

// The pictures that the report has, too: they come as SVG, and are parsed as such rather than as a page.
function charts(pictures, kind = "charts") {
  return node("div", { class: kind }, pictures.map(({ caption, svg }) => {
    const parsed = new DOMParser().parseFromString(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '), "image/svg+xml");
    return node("figure", {}, node("figcaption", {}, caption), document.importNode(parsed.documentElement, true));
  }));
}

function shapes(told) {
  const groups = told.shapes.filter((group) => group.charts.length);
  if (!groups.length) return [];
  const note = "The evidence of every value, in decibans: blue is evidence for the class, orange is evidence against it. Bands and lines are 95 % intervals; the strip shows where the rows are.";
  return [node("h2", {}, "What it has learned"), node("p", { class: "soft" }, note),
    groups.map((group, k) => node("details", { open: k === 0 }, node("summary", {}, `for ${named(group.class)}`), charts(group.charts, "charts shapes")))];
}

function confusion({ classes, confusion: counts }) {
  const rows = counts.map((row, truth) => [named(classes[truth]), ...row.map((n, answer) => n
    ? node("button", { class: "small", "aria-label": `${n} ${n === 1 ? "row" : "rows"} of ${named(classes[truth])} mistaken for ${named(classes[answer])}`, onclick: () => cell(truth, answer).catch(say) }, figure(n)) : "")]);
  const made = table(["", ...classes.map(named)], rows, ["value", ...classes.map(() => "number")]);
  made.classList.add("matrix");
  return made;
}

async function cell(truth, answer) {
  const told = await get(`/look/rows?truth=${truth}&answer=${answer}`);
  fill("cell", node("h3", {}, `${named(told.truth)} mistaken for ${named(told.answer)}`), table(["row", "holds", "probability"], told.rows.map((each) => [each.id, shown(each.row, 200), percent(each.probability)]), ["value", "value", "number"]));
  document.getElementById("cell").setAttribute("tabindex", "-1");
  document.getElementById("cell").focus();
}

function telling(told) {
  const cards = told.informative.map((own) => node("div", {}, node("h3", {}, named(own.class ?? own.label)), node("ol", {},
    own.ratios.map((each) => node("li", {}, `${each.word ? "" : `${each.feature}: `}${shown(each.value, 40)} `, node("span", { class: "soft" }, `${each.shown} : 1`))))));
  return cards.length ? [node("h2", {}, "Most informative values"), node("p", { class: "soft" }, "How many times more probable a value is in the class than in all other classes together, most informative first."), node("div", { class: "cards" }, cards)] : [];
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
    rows.length ? table(["column", "value", "times as probable in the last rows"], rows, ["value", "value", "number"]) : null];
}
