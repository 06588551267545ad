// Explains why a row gets its class: a waterfall of decibans, and texts whose words are shaded by their evidence.
import { formatDecibans, svgNode, displayClass, node, displayText, toNumber, table } from "./service.js";

const MOST_BARS = 25; // the strongest pieces of evidence; the rest share a bar
const MOST_CHARACTERS = 20000; // the rest of a text is not shown

export function waterfall(why, strike) {
  const steps = [["prior", "", why.prior]];
  if (why.calibration) steps.push(["calibration", "", why.calibration]);
  const relevant = why.evidence.filter((e) => Math.abs(toNumber(e.decibans)) >= 0.005);
  const bars = relevant.slice(0, MOST_BARS).map((e) => [e.feature, e, e.decibans]);
  const rest = [...relevant.slice(MOST_BARS), ...why.evidence.filter((e) => Math.abs(toNumber(e.decibans)) < 0.005)];
  const sums = rest.reduce((sum, e) => sum + toNumber(e.decibans), 0);
  steps.push(...bars, ...(rest.length ? [[`and ${rest.length} more`, "", sums]] : []));
  let at = 0;
  let [low, high] = [0, 0];
  const spans = steps.map(([, , weight]) => {
    const from = at;
    at += toNumber(weight);
    [low, high] = [Math.min(low, at), Math.max(high, at)];
    return [from, at];
  });
  const place = (x) => (100 * (x - low)) / (high - low || 1);
  const fall = ([from, to]) => svgNode("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svgNode("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 10, "vector-effect": "non-scaling-stroke" }),
    svgNode("rect", { class: to >= from ? "for" : "against", x: Math.min(place(from), place(to)), y: 1.5,
      width: Math.max(Math.abs(place(to) - place(from)), 0.4), height: 7 }));
  const rows = steps.map(([name, e, weight], k) => {
    const value = e && e.positions.length && strike
      ? node("button", { class: "word", type: "button", onclick: () => strike(e), "aria-label": `Leave out ${e.value}`, title: "Leave out" }, describeValue(e))
      : e ? describeValue(e) : "";
    return [name, value, formatDecibans(weight), fall(spans[k])];
  });
  rows.push({ kind: "sum", cells: ["sum", "", formatDecibans(why.decibans), fall([0, at])] });
  return table(["evidence", "value", "decibans", `for ${displayClass(why.winner)}, against ${displayClass(why.against)}`], rows,
    ["value", "value", "number", "fall"]);
}

function describeValue(e) {
  const times = e.times > 1 ? ` × ${e.times}` : "";
  return `${displayText(e.value)}${times}${e.seen ? "" : " (never seen)"}`;
}

// Shades the words of a row's texts. strike, if given, is called when the user clicks a word.
export function shadeTexts(why, strike) {
  const sizes = why.evidence.flatMap((e) => e.positions.map(() => Math.abs(toNumber(e.decibans)) / Math.max(e.times, 1))).sort((a, b) => a - b);
  const strongest = sizes.length ? Math.max(sizes[Math.floor(0.98 * (sizes.length - 1))], 1e-300) : 1;
  return Object.entries(why.texts).map(([feature, text]) => {
    const letters = Array.from(text.slice(0, 4 * MOST_CHARACTERS)); // positions count characters, as Python does
    const places = splitAtWords(why.evidence.filter((e) => e.feature === feature), Math.min(letters.length, MOST_CHARACTERS));
    const box = node("div", { class: "shaded", dir: "auto", tabindex: "0", "aria-label": `${feature}, with shaded words`, role: "group" });
    let at = 0;
    for (const [start, end, words] of places) {
      box.append(letters.slice(at, start).join(""), shadeText(letters.slice(start, end).join(""), words, strongest, strike));
      at = end;
    }
    const nHidden = text.length - letters.slice(0, MOST_CHARACTERS).join("").length;
    box.append(letters.slice(at, MOST_CHARACTERS).join(""), nHidden > 0 ? `… and ${nHidden.toLocaleString("en")} more characters` : "");
    return box;
  });
}

// Cuts a text of n letters where words begin or end: [start, end, evidence of the words there], which may overlap.
function splitAtWords(evidence, n) {
  const cuts = new Map();
  const at = (place) => cuts.get(place) || cuts.set(place, { open: [], close: [] }).get(place);
  evidence.forEach((e, k) => e.positions.forEach(([start, end]) => {
    if (start < n) {
      at(start).open.push(k);
      at(Math.min(end, n)).close.push(k);
    }
  }));
  const intervals = [];
  const open = [];
  let from = 0;
  for (const place of [...cuts.keys()].sort((a, b) => a - b)) {
    if (open.length && place > from) intervals.push([from, place, open.map((k) => evidence[k])]);
    for (const k of cuts.get(place).close) open.splice(open.indexOf(k), 1);
    open.push(...cuts.get(place).open);
    from = place;
  }
  return intervals;
}

function shadeText(text, words, strongest, strike) {
  const weight = words.reduce((sum, e) => sum + toNumber(e.decibans) / Math.max(e.times, 1), 0);
  const strength = Math.min(Math.abs(weight) / strongest, 1);
  const byStrength = [...words].sort((a, b) => Math.abs(toNumber(b.decibans)) - Math.abs(toNumber(a.decibans)));
  const title = byStrength.slice(0, 3).map((e) => `${e.value}: ${formatDecibans(e.decibans)} decibans`).join("\n");
  const kind = weight < 0 && strength >= 0.15 ? "word against" : "word";
  const span = node("span", { class: kind, title, ...(strike ? { onclick: () => strike(byStrength[0]) } : {}) }, text);
  span.style.background = `rgba(var(--${weight > 0 ? "blue" : "orange"}), ${(strength * 0.55).toFixed(3)})`;
  return span;
}
