// The model: evidence tables that are added up for a row, as docs/tutorials/export.md describes them. It stands in for a service.

const COUNTED = { count: (n) => n, log: Math.log1p, root: Math.sqrt, presence: () => 1 };
const WORD = "[\\p{L}\\p{N}_]";
const PATTERNS = { word: `${WORD}{2,}`, word1: `${WORD}+`, mail: `${WORD}+(?:[-.@'+&]${WORD}+)*` };
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const FARTHEST = 2 ** 400;
const DECIBANS = 10 / Math.log(10);
const model = {};

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const content = await new Response(stream).arrayBuffer();
  const size = new DataView(content).getUint32(0, true);
  Object.assign(model, JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, size))));
  const k = model.names.length;
  let at = 4 + size;
  for (const column of model.columns) {
    column.place = new Map(column.entries.map((entry, i) => [entry.key, i]));
    if (!column.words) continue;
    const nats = new Float64Array(content.slice(at, (at += 8 * k * column.words.length)));
    column.known = new Map(column.words.map((word, i) => [word, { scale: column.scale ? column.scale[i] : 1, nats: nats.subarray(k * i, k * (i + 1)) }]));
  }
}

// The tokens of a text in order, each with where it stands, in characters of the text as it was written.
function tokens(text, column) {
  const written = [];
  Array.from(text).forEach((letter, i) => { for (const _ of column.lowercase ? letter.toLowerCase() : letter) written.push(i); });
  const lowered = column.lowercase ? text.toLowerCase() : text;
  let words = [];
  if (column.unit === "characters") {
    let spaced = false;
    Array.from(lowered).forEach((letter, i) => {
      const space = SPACE.test(letter);
      if (space && spaced) words[words.length - 1].word = " ";
      else words.push({ word: letter, start: written[i], end: written[i] + 1 });
      spaced = space;
    });
  } else {
    let letters = 0;
    let read = 0;
    const length = (part) => Array.from(part).length;
    for (const found of lowered.matchAll(new RegExp(PATTERNS[column.tokens], "gu"))) {
      const start = letters + length(lowered.slice(read, found.index));
      read = found.index + found[0].length;
      letters = start + length(found[0]);
      if (column.tokens !== "mail" || letters - start > 1) words.push({ word: found[0], start: written[start], end: written[letters - 1] + 1 });
    }
    const stops = new Set(column.stop_words);
    words = words.filter(({ word }) => !stops.has(word));
  }
  const grams = [];
  const between = column.unit === "characters" ? "" : " ";
  for (let n = column.shortest; n <= column.longest; n += 1) {
    for (let i = 0; i + n <= words.length; i += 1) {
      grams.push({ word: words.slice(i, i + n).map((each) => each.word).join(between), start: words[i].start, end: words[i + n - 1].end });
    }
  }
  const only = column.only && new Set(column.only);
  return only ? grams.filter(({ word }) => only.has(word)) : grams;
}

// What a row's values say of each class, piece by piece; and its scores.
function evidenceOf(row) {
  const pieces = [];
  const cells = [];
  const unknown = [];
  const piece = (feature, value, nats, more = {}) => pieces.push({ feature, value, nats, times: 1, seen: true, positions: [], ...more });
  model.columns.forEach((column, j) => {
    if (column.words) bagged(column, row, piece, unknown);
    else {
      const x = column.kind === "string" ? (row[column.name] ?? null) : number(row[column.name], column);
      const [i, seen] = placed(column, x);
      cells[j] = i < 0 ? -1 : column.entries[i].cell;
      const nats = column.curves.length && x !== null ? curved(column, x) : i < 0 ? model.names.map(() => 0) : column.entries[i].nats;
      if (x !== null || nats.some((each) => each !== 0)) piece(column.name, x, nats, { seen });
    }
  });
  for (const { first, second, cells: table } of model.pairs) {
    const nats = table[`${cells[first]},${cells[second]}`];
    if (nats) piece(`${model.columns[first].name} with ${model.columns[second].name}`, "", nats);
  }
  const scores = model.prior.map((prior, c) => pieces.reduce((sum, each) => sum + each.nats[c], prior));
  return { pieces, scores: scores.every((score) => score === -Infinity) ? model.prior : scores, unknown };
}

function placed(column, x) {
  if (column.steps && x !== null) {
    let [low, high] = [0, column.steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column.steps[middle].from <= x) low = middle + 1;
      else high = middle;
    }
    const step = column.steps[low - 1];
    return [step && x < step.to ? step.entry : -1, true];
  }
  if (column.place.has(x)) return [column.place.get(x), true];
  return [column.unseen ?? -1, column.curves.length > 0 || x === null];
}

function curved(column, x) {
  const nats = model.names.map(() => 0);
  for (const curve of column.curves) {
    const z = (Math.max(-FARTHEST, Math.min(FARTHEST, (x - curve.origin) / curve.unit)) - curve.centre) / curve.width;
    nats[curve.class] += curve.one + curve.x * z + curve.x2 * z * z + (curve.log_x ? curve.log_x * Math.log(z) : 0);
  }
  const most = model.answers === "classes" ? Math.max(...nats) : 0;
  return nats.map((each) => each - most);
}

function number(value, column) {
  if (value === null || value === undefined || value === "") return null;
  const named = column && column.entries.find((entry) => entry.value === String(value));
  const x = named ? named.key : Number(value);
  if (Number.isNaN(x)) throw new Error(`${column ? column.name : "a number"}: ${shown(value)} is not a number. Leave it empty if it is missing.`);
  return x;
}

function bagged(column, row, piece, unknown) {
  const bag = new Map();
  if (column.kind === "text") {
    const text = row[column.name];
    if (text === null || text === undefined) return;
    for (const { word, start, end } of tokens(String(text), column)) {
      const own = bag.get(word) || bag.set(word, { n: 0, positions: [] }).get(word);
      own.n += 1;
      own.positions.push([start, end]);
    }
  } else {
    for (const word of column.words) {
      const x = number(row[word]) ?? 0;
      if (column.threshold === null ? x !== 0 : x > column.threshold) bag.set(word, { n: column.threshold === null ? x : 1, positions: [] });
    }
  }
  let squares = 0;
  for (const [word, own] of bag) {
    own.known = column.known.get(word);
    own.a = COUNTED[column.count](own.n) * (own.known ? own.known.scale : 1);
    if (column.length === "all" || (column.length === "known" && own.known)) squares += own.a * own.a;
    if (!own.known) unknown.push(word);
  }
  const size = Math.sqrt(squares) || 1;
  if (column.common.some((nats) => nats !== 0)) piece(column.name, "(any text)", column.common);
  for (const [word, { known, a, n, positions }] of bag) {
    if (known && a) piece(column.name, word, Array.from(known.nats, (nats) => (a / size) * nats), { times: n, positions });
  }
}

// Posteriors

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const logSigmoid = (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));

function shares(logs) {
  const most = Math.max(...logs);
  const each = logs.map((log) => Math.exp((most === -Infinity ? 0 : log - most)));
  const total = each.reduce((a, b) => a + b);
  return each.map((share) => share / total);
}

function posteriorOf(scores) {
  const { method, rules } = model.calibration;
  if (model.answers === "labels") return scores.map((score, c) => sigmoid(rules[c].slope * score + rules[c].shift));
  const most = Math.max(...scores);
  const s = scores.map((score) => score - most);
  if (method === "temperature") return shares(s.map((score) => (score === -Infinity ? score : Math.max(score, rules.floor) / rules.temperature)));
  if (!method) return shares(s);
  const odds = s.map((score, c) => {
    const others = s.filter((_, o) => o !== c);
    const top = Math.max(...others);
    return top === -Infinity ? Infinity : score - top - Math.log(others.reduce((sum, other) => sum + Math.exp(other - top), 0));
  });
  if (method === "platt") {
    return shares(odds.map((x, c) => logSigmoid(Number.isFinite(x) ? rules[c].slope * x + rules[c].shift : x)));
  }
  const stair = (c) => {
    const { x, y } = rules[c];
    const i = x.findIndex((each) => each > odds[c]);
    return i === 0 ? y[0] : i < 0 ? y[y.length - 1] : y[i - 1] + ((odds[c] - x[i - 1]) / (x[i] - x[i - 1])) * (y[i] - y[i - 1]);
  };
  const each = s.map((_, c) => stair(c));
  const total = each.reduce((a, b) => a + b);
  return each.map((share) => (total > 0 ? share / total : 1 / s.length));
}

// What a service would answer

function predicted(row) {
  const posterior = posteriorOf(evidenceOf(row).scores);
  const order = posterior.map((_, c) => c).sort((a, b) => posterior[b] - posterior[a] || a - b);
  const posteriors = Object.fromEntries(posterior.map((share, c) => [model.names[c], share]));
  if (model.answers === "labels") {
    const labels = order.filter((c) => posterior[c] >= model.calibration.rules[c].threshold);
    return { labels: labels.map((c) => model.names[c]), probabilities: labels.map((c) => posterior[c]), posteriors };
  }
  return { class: model.names[order[0]], probability: posterior[order[0]], posteriors };
}

function explained(row, { against, label }) {
  const { pieces, scores, unknown } = evidenceOf(row);
  const posterior = posteriorOf(scores);
  const order = posterior.map((_, c) => c).sort((a, b) => posterior[b] - posterior[a] || a - b);
  const labels = model.answers === "labels";
  const winner = labels && label !== undefined ? model.names.indexOf(label) : order[0];
  const chosen = against === undefined ? -1 : model.names.indexOf(against);
  const other = chosen >= 0 && chosen !== winner ? chosen : order.find((c) => c !== winner);
  const weight = (nats) => (labels || other === undefined ? nats[winner] : nats[winner] === nats[other] ? 0 : nats[winner] - nats[other]);
  const evidence = pieces.map(({ nats, ...each }) => ({ ...each, decibans: DECIBANS * weight(nats) })).filter((each) => each.decibans !== 0);
  evidence.sort((a, b) => Math.abs(b.decibans) - Math.abs(a.decibans));
  const prior = DECIBANS * weight(model.prior);
  const plain = evidence.reduce((sum, each) => sum + each.decibans, prior);
  const rest = labels || other === undefined ? 1 - posterior[winner] : posterior[other];
  const decibans = model.calibration.method ? DECIBANS * Math.log(posterior[winner] / rest) : plain;
  const texts = Object.fromEntries(model.columns.filter((column) => column.kind === "text" && row[column.name]).map((column) => [column.name, row[column.name]]));
  return { winner: model.names[winner], against: labels ? `not ${model.names[winner]}` : other === undefined ? "nothing else" : model.names[other],
    probability: posterior[winner], probability_against: rest, prior, calibration: decibans - plain, decibans, evidence, texts, unknown, stale: false };
}

const fetch = async (path, { body }) => {
  const asked = JSON.parse(body);
  const row = Object.assign(Object.create(null), asked.row);
  return { ok: true, json: async () => (path === "/predict" ? { predictions: [predicted(row)] } : explained(row, asked)) };
};

// A table that is dropped on the page

function cellsOf(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.replace(/^\ufeff/, "").matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/g)) {
    rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== "," && end !== "") rows.push([]);
    if (end === "") break;
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

function answered(text) {
  const [head, ...rows] = cellsOf(text);
  if (!head) throw new Error("The file has no line. Its first line names the columns.");
  const known = model.columns.flatMap((column) => (column.kind === "counts" ? column.words : [column.name]));
  if (!head.some((name) => known.includes(name))) throw new Error(`The file has no column of the model. It asks for ${known.slice(0, 20).join(", ")}.`);
  const labels = model.answers === "labels";
  const answers = rows.map((cells) => {
    const row = Object.create(null);
    head.forEach((name, k) => { if (cells[k] !== undefined && cells[k] !== "") row[name] = cells[k]; });
    const told = predicted(row);
    const shares = model.names.map((name) => told.posteriors[name]);
    return [...head.map((_, k) => cells[k] ?? ""), labels ? told.labels.join("|") : told.class, ...shares];
  });
  return [[...head, labels ? "labels" : "class", ...model.names.map((name) => `P(${name})`)], ...answers];
}

const csv = (rows) => rows.map((row) => row.map((cell) => (/[",\r\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n");

async function take(file) {
  const rows = answered(await file.text());
  const link = node("a", { href: URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" })), download: `answers-${file.name}` }, "Save the answers");
  fill("scored", node("p", {}, `${figure(rows.length - 1)} rows. `, link), table(rows[0], rows.slice(1, 101)));
}

async function begin() {
  await unpacked("model");
  const field = (name, kind, values = null) => ({ name, kind, values, low: null, high: null });
  const fields = model.columns.flatMap((column) => {
    if (column.kind === "counts") return column.words.slice(0, 300).map((word) => field(word, "number"));
    if (column.kind === "text") return [field(column.name, "text")];
    const values = column.entries.filter((entry) => entry.value !== null && entry.value !== undefined).map((entry) => entry.value);
    return [values.length ? field(column.name, "category", values) : field(column.name, "number")];
  });
  Object.assign(about, { fields, names: model.names, labels: model.answers === "labels" ? model.names : null });
  document.getElementById("served").textContent = model.names.slice(0, 4).map(named).join(", ");
  drawAsk();
  const scored = document.getElementById("file");
  scored.addEventListener("change", () => take(scored.files[0]).catch(say));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]).catch(say); });
  document.body.dataset.ready = "yes";
}
