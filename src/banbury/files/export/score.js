// The model: evidence tables that are added up for a row, as docs/reference/evidence-table.md describes them. It stands in for a service.

const COUNTED = { count: (n) => n, log: Math.log1p, root: Math.sqrt, presence: () => 1 };
const WORD = "[\\p{L}\\p{N}_]";
const PATTERNS = { word: `${WORD}{2,}`, word1: `${WORD}+`, mail: `${WORD}+(?:[-.@'+&]${WORD}+)*` };
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const FARTHEST = 2 ** 400;
const DECIBANS = 10 / Math.log(10);
const model = {};
const clip = (low, x, high) => Math.max(low, Math.min(high, x));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const empty = (x) => x === null || x === undefined || x === "";

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const tables = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const rows = (name) => {
    const fields = Object.entries(tables[name]);
    return fields[0][1].map((_, i) => Object.fromEntries(fields.map(([field, values]) => [field, values[i]])));
  };
  // The entries of a table by what they stand for, each with what it says of every class.
  const entries = (name, field) => {
    const by = new Map();
    for (const row of rows(name)) {
      const key = field(row);
      if (!by.has(key)) by.set(key, { ...row, nats: prior.map(() => 0) });
      by.get(key).nats[row.class] = row.nats;
    }
    return by;
  };
  const prior = rows("prior");
  const labels = tables.answers === "labels";
  Object.assign(model, { labels, target: labels ? null : tables.target, names: prior.map((row) => row.name), prior: prior.map((row) => row.nats), columns: rows("columns"), rules: {} });
  for (const row of rows("calibration")) (model.rules[row.method] = model.rules[row.method] || []).push(row);
  for (const column of model.columns) Object.assign(column, { values: new Map(), steps: [], curves: [], words: new Map() });
  for (const row of rows("curves")) model.columns[row.column].curves.push(row);
  for (const entry of entries("steps", (row) => `${row.column} ${row.from}`).values()) model.columns[entry.column].steps.push(entry);
  for (const entry of entries("values", (row) => `${row.column} ${row.unseen} ${row.value === null} ${row.value}`).values()) {
    model.columns[entry.column].values.set(entry.unseen ? undefined : entry.value, entry);
  }
  const { column, word, scale, class: classes, nats } = tables.words; // there are many
  word.forEach((text, i) => {
    const { words } = model.columns[column[i]];
    if (!words.has(text)) words.set(text, { scale: scale[i], nats: prior.map(() => 0) });
    words.get(text).nats[classes[i]] = nats[i];
  });
  model.pairs = entries("pairs", (row) => `${row.first} ${row.first_cell} ${row.second} ${row.second_cell}`);
}

// The tokens of a text in order, each with where it stands, in characters of the text as it was written.
function tokens(text, column) {
  const written = [];
  Array.from(text).forEach((letter, i) => { for (const _ of column.lowercase ? letter.toLowerCase() : letter) written.push(i); });
  const lowered = column.lowercase ? text.toLowerCase() : text;
  const words = [];
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
    for (const { 0: word, index } of lowered.matchAll(new RegExp(PATTERNS[column.tokens], "gu"))) {
      const start = letters + Array.from(lowered.slice(read, index)).length;
      letters = start + Array.from(word).length;
      read = index + word.length;
      const short = column.tokens === "mail" && letters - start < 2;
      if (!short && !(column.stop_words || []).includes(word)) words.push({ word, start: written[start], end: written[letters - 1] + 1 });
    }
  }
  const grams = [];
  for (let n = column.shortest; n <= column.longest; n += 1) {
    for (let i = 0; i + n <= words.length; i += 1) {
      const word = words.slice(i, i + n).map((each) => each.word).join(column.unit === "characters" ? "" : " ");
      grams.push({ word, start: words[i].start, end: words[i + n - 1].end });
    }
  }
  const only = column.only && new Set(column.only);
  return only ? grams.filter(({ word }) => only.has(word)) : grams;
}

// What a row's values say of each class, piece by piece; and its scores.
function evidenceOf(row) {
  const pieces = [];
  const unknown = [];
  const cells = [];
  const piece = (feature, value, nats, more = {}) => pieces.push({ feature, value, nats, times: 1, seen: true, positions: [], ...more });
  for (const column of model.columns) {
    if (column.count) addWords(column, row, piece, unknown);
    else {
      const x = column.kind === "string" ? row[column.name] ?? null : number(row[column.name], column);
      const entry = column.curves.length ? { nats: curved(column, x) } : entryOf(column, x);
      if (!entry) continue;
      if (entry.cell !== null && entry.cell !== undefined) cells.push([column, entry.cell]);
      if (x !== null || entry.nats.some((nats) => nats !== 0)) piece(column.name, x, entry.nats, { seen: !entry.unseen });
    }
  }
  for (const [first, a] of cells) {
    for (const [second, b] of cells) {
      const pair = model.pairs.get(`${first.column} ${a} ${second.column} ${b}`);
      if (pair) piece(`${first.name} with ${second.name}`, "", pair.nats);
    }
  }
  const scores = model.prior.map((prior, c) => prior + sum(pieces.map((each) => each.nats[c])));
  return { pieces, scores: scores.every((score) => score === -Infinity) ? model.prior : scores, unknown };
}

function entryOf({ values, steps }, x) {
  if (!steps.length) return values.get(x) || values.get(undefined);
  return x === null ? steps.find((step) => step.from === null) : steps.find((step) => step.from !== null && step.from <= x && x < step.to);
}

function curved(column, x) {
  const nats = model.names.map(() => 0);
  for (const curve of x === null ? [] : column.curves) {
    const z = (clip(-FARTHEST, (x - curve.origin) / curve.unit, FARTHEST) - curve.centre) / curve.width;
    nats[curve.class] += curve.one + curve.x * z + curve.x2 * z * z + (curve.log_x && curve.log_x * Math.log(z));
  }
  const most = model.labels ? 0 : Math.max(...nats);
  return nats.map((each) => each - most);
}

function number(value, { name, steps = [] }) {
  if (empty(value)) return null;
  const x = steps.find((step) => step.value === String(value))?.from ?? Number(value);
  if (Number.isNaN(x)) throw new Error(`${name}: ${shown(value)} is not a number. Leave it empty if it is missing.`);
  return x;
}

function addWords(column, row, piece, unknown) {
  const bag = new Map();
  if (column.kind === "text") {
    if (empty(row[column.name]) && row[column.name] !== "") return;
    for (const { word, start, end } of tokens(String(row[column.name]), column)) {
      if (!bag.has(word)) bag.set(word, { times: 0, positions: [] });
      bag.get(word).times += 1;
      bag.get(word).positions.push([start, end]);
    }
  } else {
    for (const word of [...column.words.keys()].filter((each) => each !== null)) {
      const x = number(row[word], { name: word }) ?? 0;
      if (x > (column.threshold ?? 0)) bag.set(word, { times: column.threshold === null ? x : 1, positions: [] });
    }
  }
  let squares = 0;
  for (const [word, own] of bag) {
    own.entry = column.words.get(word);
    own.a = COUNTED[column.count](own.times) * (own.entry ? own.entry.scale : 1);
    if (column.length === "all" || (column.length === "known" && own.entry)) squares += own.a * own.a;
    if (!own.entry) unknown.push(word);
  }
  const every = column.words.get(null);
  if (every && every.nats.some((nats) => nats !== 0)) piece(column.name, "(any text)", every.nats);
  for (const [word, { entry, a, times, positions }] of bag) {
    if (entry && a) piece(column.name, word, entry.nats.map((nats) => (a / (Math.sqrt(squares) || 1)) * nats), { times, positions });
  }
}

function posteriorOf(scores) {
  const { temperature: [heat] = [{ x: 1, y: -Infinity }], line, step } = model.rules;
  if (model.labels) return scores.map((score, c) => 1 / (1 + Math.exp(-(line[c].x * score + line[c].y))));
  const most = Math.max(...scores);
  const odds = (score, c) => {
    const others = scores.filter((_, o) => o !== c);
    const top = Math.max(...others);
    return top === -Infinity ? 1e300 : clip(-1e300, score - top - Math.log(sum(others.map((other) => Math.exp(other - top)))), 1e300);
  };
  const log = (score, c) => {
    if (!line) return score === -Infinity ? score : Math.max(score - most, heat.y) / heat.x;
    const x = odds(score, c);
    const at = Math.abs(x) < 1e300 ? line[c].x * x + line[c].y : x;
    return Math.min(at, 0) - Math.log1p(Math.exp(-Math.abs(at)));
  };
  const rise = (x, { x: low, y: high, share }) => share * clip(0, (x - low) / (high - low), 1);
  const stair = (x, c) => Math.round(1e12 * sum(step.filter((each) => each.class === c).map((each) => rise(x, each)))) / 1e12;
  const logs = scores.map(log);
  const shares = step ? scores.map((score, c) => stair(odds(score, c), c)) : logs.map((each) => Math.exp(each - Math.max(...logs)));
  const total = sum(shares);
  return shares.map((share) => (total > 0 ? share / total : 1 / shares.length));
}

// What a service would answer

function answerOf(row) {
  const evidence = evidenceOf(row);
  const posterior = posteriorOf(evidence.scores);
  return { ...evidence, posterior, order: posterior.map((_, c) => c).sort((a, b) => posterior[b] - posterior[a] || a - b) };
}

function predicted(row) {
  const { posterior, order } = answerOf(row);
  const posteriors = Object.fromEntries(posterior.map((share, c) => [model.names[c], share]));
  if (!model.labels) return { class: model.names[order[0]], probability: posterior[order[0]], posteriors };
  const labels = order.filter((c) => posterior[c] >= model.rules.threshold[c].x);
  return { labels: labels.map((c) => model.names[c]), probabilities: labels.map((c) => posterior[c]), posteriors };
}

function explained(row, { against, label }) {
  const { pieces, posterior, order, unknown } = answerOf(row);
  const winner = label === undefined ? order[0] : model.names.indexOf(label);
  const other = [model.names.indexOf(against), ...order].find((c) => c >= 0 && c !== winner);
  const single = model.labels || other === undefined;
  const weight = (nats) => DECIBANS * (single ? nats[winner] : nats[winner] === nats[other] ? 0 : nats[winner] - nats[other]);
  const evidence = pieces.map(({ nats, ...each }) => ({ ...each, decibans: weight(nats) })).filter((each) => each.decibans !== 0);
  evidence.sort((a, b) => Math.abs(b.decibans) - Math.abs(a.decibans));
  const prior = weight(model.prior);
  const plain = prior + sum(evidence.map((each) => each.decibans));
  const rest = single ? 1 - posterior[winner] : posterior[other];
  const decibans = Object.keys(model.rules).length ? DECIBANS * Math.log(posterior[winner] / rest) : plain;
  const texts = Object.fromEntries(model.columns.filter((column) => column.kind === "text" && row[column.name]).map(({ name }) => [name, row[name]]));
  return { winner: model.names[winner], against: single ? `not ${model.names[winner]}` : model.names[other], probability: posterior[winner],
    probability_against: rest, prior, calibration: decibans - plain, decibans, evidence, texts, unknown, stale: false };
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
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

const namesOf = (column) => (column.kind === "counts" ? [...column.words.keys()].filter((word) => word !== null) : [column.name]);

async function take(file) {
  const [head, ...rows] = cellsOf(await file.text());
  const known = model.columns.flatMap(namesOf);
  if (!head || !head.some((name) => known.includes(name))) throw new Error(`The first line of the file names no column of the model. Its columns are ${known.slice(0, 20).join(", ")}.`);
  const answers = rows.map((cells) => {
    const row = Object.assign(Object.create(null), Object.fromEntries(head.map((name, k) => [name, cells[k]]).filter(([, cell]) => !empty(cell))));
    const told = predicted(row);
    return [...head.map((_, k) => cells[k] ?? ""), model.labels ? told.labels.join("|") : told.class, ...model.names.map((name) => told.posteriors[name])];
  });
  const lines = [[...head, model.labels ? "labels" : "class", ...model.names.map((name) => `P(${name})`)], ...answers];
  const csv = lines.map((row) => row.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n");
  const link = node("a", { href: URL.createObjectURL(new Blob([csv], { type: "text/csv" })), download: `answers-${file.name}` }, "Save the answers");
  fill("scored", node("p", {}, `${figure(rows.length)} rows. `, link), table(lines[0], lines.slice(1, 101)));
}

async function begin() {
  await unpack("model");
  const fields = model.columns.flatMap((column) => {
    const listed = [...column.values.keys(), ...column.steps.map((step) => step.value)].filter((value) => !empty(value));
    const kind = column.kind === "text" ? "text" : listed.length ? "category" : "number";
    return namesOf(column).slice(0, 300).map((name) => ({ name, kind, values: listed.length ? listed : null, low: null, high: null }));
  });
  Object.assign(about, { fields, names: model.names, labels: model.labels ? model.names : null, target: model.target, bare: true });
  document.getElementById("served").textContent = model.names.slice(0, 4).map(named).join(", ");
  drawAsk();
  const input = document.getElementById("file");
  input.addEventListener("change", () => take(input.files[0]).catch(say));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]).catch(say); });
  document.body.dataset.ready = "yes";
}
