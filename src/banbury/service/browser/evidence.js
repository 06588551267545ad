// Why a row gets its class: a waterfall of decibans, and texts whose words are shaded by what they say.
import { decibans, drawn, named, node, shown, size, table } from "./service.js";

const MOST = 25; // pieces of evidence that have a bar
const CHARACTERS = 20000; // of a text that are shaded

export function waterfall(why, strike) {
  const before = [["prior", "", why.prior]];
  if (why.calibration) before.push(["calibration", "", why.calibration]);
  const tells = why.evidence.filter((e) => Math.abs(size(e.decibans)) >= 0.005);
  const told = tells.slice(0, MOST).map((e) => [e.feature, e, e.decibans]);
  const rest = [...tells.slice(MOST), ...why.evidence.filter((e) => Math.abs(size(e.decibans)) < 0.005)];
  const sums = rest.reduce((sum, e) => sum + size(e.decibans), 0);
  const steps = [...before, ...told, ...(rest.length ? [[`and ${rest.length} more`, "", sums]] : [])];
  let at = 0;
  let [low, high] = [0, 0];
  const spans = steps.map(([, , weight]) => {
    const from = at;
    at += size(weight);
    [low, high] = [Math.min(low, at), Math.max(high, at)];
    return [from, at];
  });
  const place = (x) => (100 * (x - low)) / (high - low || 1);
  const fall = ([from, to]) => drawn("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 10, "vector-effect": "non-scaling-stroke" }),
    drawn("rect", { class: to >= from ? "for" : "against", x: Math.min(place(from), place(to)), y: 1.5,
      width: Math.max(Math.abs(place(to) - place(from)), 0.4), height: 7 }));
  const rows = steps.map(([name, e, weight], k) => {
    const value = e && e.positions.length && strike
      ? node("button", { class: "word", type: "button", onclick: () => strike(e), "aria-label": `Leave out ${e.value}`, title: "Leave out" }, said(e))
      : e ? said(e) : "";
    return [name, value, decibans(weight), fall(spans[k])];
  });
  rows.push({ kind: "sum", cells: ["sum", "", decibans(why.decibans), fall([0, at])] });
  return table(["evidence", "value", "decibans", `for ${named(why.winner)}, against ${named(why.against)}`], rows,
    ["value", "value", "number", "fall"]);
}

function said(e) {
  const often = e.times > 1 ? ` × ${e.times}` : "";
  return `${shown(e.value)}${often}${e.seen ? "" : " (never seen)"}`;
}

// The texts of a row; a word that is chosen is struck out, if that is wanted.
export function shaded(why, strike) {
  const sizes = why.evidence.flatMap((e) => e.positions.map(() => Math.abs(size(e.decibans)) / Math.max(e.times, 1))).sort((a, b) => a - b);
  const full = sizes.length ? Math.max(sizes[Math.floor(0.98 * (sizes.length - 1))], 1e-300) : 1;
  return Object.entries(why.texts).map(([feature, text]) => {
    const letters = Array.from(text.slice(0, 4 * CHARACTERS)); // positions count characters, as Python does
    const places = stretches(why.evidence.filter((e) => e.feature === feature), Math.min(letters.length, CHARACTERS));
    const box = node("div", { class: "shaded", dir: "auto", tabindex: "0", "aria-label": `${feature}, with shaded words`, role: "group" });
    let at = 0;
    for (const [start, end, words] of places) {
      box.append(letters.slice(at, start).join(""), shade(letters.slice(start, end).join(""), words, full, strike));
      at = end;
    }
    const left = text.length - letters.slice(0, CHARACTERS).join("").length;
    box.append(letters.slice(at, CHARACTERS).join(""), left > 0 ? `… and ${left.toLocaleString("en")} more characters` : "");
    return box;
  });
}

function stretches(evidence, most) {
  const cuts = new Map();
  const at = (place) => cuts.get(place) || cuts.set(place, { open: [], close: [] }).get(place);
  evidence.forEach((e, k) => e.positions.forEach(([start, end]) => {
    if (start < most) {
      at(start).open.push(k);
      at(Math.min(end, most)).close.push(k);
    }
  }));
  const found = [];
  const open = [];
  let from = 0;
  for (const place of [...cuts.keys()].sort((a, b) => a - b)) {
    if (open.length && place > from) found.push([from, place, open.map((k) => evidence[k])]);
    for (const k of cuts.get(place).close) open.splice(open.indexOf(k), 1);
    open.push(...cuts.get(place).open);
    from = place;
  }
  return found;
}

function shade(text, words, full, strike) {
  const weight = words.reduce((sum, e) => sum + size(e.decibans) / Math.max(e.times, 1), 0);
  const strength = Math.min(Math.abs(weight) / full, 1);
  const strongest = [...words].sort((a, b) => Math.abs(size(b.decibans)) - Math.abs(size(a.decibans)));
  const title = strongest.slice(0, 3).map((e) => `${e.value}: ${decibans(e.decibans)} decibans`).join("\n");
  const kind = weight < 0 && strength >= 0.15 ? "word against" : "word";
  const made = node("span", { class: kind, title, ...(strike ? { onclick: () => strike(strongest[0]) } : {}) }, text);
  made.style.background = `rgba(var(--${weight > 0 ? "blue" : "orange"}), ${(strength * 0.55).toFixed(3)})`;
  return made;
}
