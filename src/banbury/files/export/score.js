// The model: evidence tables that are added up for a row, as docs/reference/evidence-table.md describes them. It stands in for a service.

const COUNTED = { count: (n) => n, log: Math.log1p, root: Math.sqrt, presence: () => 1 };
const SPACES = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]{2,}";
const FARTHEST = 2 ** 400;
const CERTAIN = 1e300; // log-odds
const DECIBANS = 10 / Math.log(10);
const model = {};
const clip = (low, x, high) => Math.max(low, Math.min(high, x));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const empty = (x) => x === null || x === undefined || x === "";

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  Object.assign(model, await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
  for (const column of model.columns) {
    column.values = new Map(column.values.map((entry) => [entry.unseen ? undefined : entry.value, entry]));
    column.words = new Map(column.words.map((entry) => [entry.word, entry]));
  }
  model.pairs = new Map(model.pairs.map((pair) => [`${pair.first} ${pair.first_cell} ${pair.second} ${pair.second_cell}`, pair.nats]));
}

// The tokens of a text in order, each with where it stands, in characters of the text as it was written.
function tokens(text, column) {
  const lower = (letters) => (column.lowercase ? letters.toLowerCase() : letters);
  const characters = column.unit === "characters";
  const written = Array.from(text).flatMap((letter, i) => Array(lower(letter).length).fill(i));
  const pattern = characters ? `(${SPACES})|[^]` : column.pattern;
  const words = Array.from(lower(text).matchAll(new RegExp(pattern, "gu")), ({ 0: word, 1: spaces, index }) => ({
    word: spaces ? " " : word, start: written[index], end: written[index + word.length - 1] + 1 }))
    .filter(({ word }) => !(column.stop_words || []).includes(word));
  const grams = [];
  for (let n = column.shortest; n <= column.longest; n += 1) {
    for (let i = 0; i + n <= words.length; i += 1) {
      const word = words.slice(i, i + n).map((each) => each.word).join(characters ? "" : " ");
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
      if (pair) piece(`${first.name} with ${second.name}`, "", pair);
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
    const z = clip(-FARTHEST, (x - curve.origin) / curve.unit, FARTHEST) - curve.centre;
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
  const line = (x, { slope, shift }) => (Math.abs(x) < CERTAIN ? slope * x + shift : x);
  if (model.labels) return scores.map((score, c) => 1 / (1 + Math.exp(-line(score, model.rules[c]))));
  const most = Math.max(...scores);
  const heated = scores.map((score, c) => (score === -Infinity ? score : Math.max(score - most, model.rules[c].floor) / model.rules[c].temperature));
  const odds = heated.map((score, c) => {
    const rivals = heated.filter((_, o) => o !== c);
    const top = Math.max(...rivals);
    return top === -Infinity ? CERTAIN : clip(-CERTAIN, score - top - Math.log(sum(rivals.map((rival) => Math.exp(rival - top)))), CERTAIN);
  });
  const logs = odds.map((x, c) => line(x, model.rules[c])).map((y) => Math.min(y, 0) - Math.log1p(Math.exp(-Math.abs(y))));
  const shares = odds.map((x, c) => {
    const step = model.stairs.find((each) => each.class === c && each.from <= x && x < each.to);
    return step ? step.share + step.slope * (x - step.from) : Math.exp(logs[c] - Math.max(...logs));
  });
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
  const labels = order.filter((c) => posterior[c] >= model.rules[c].threshold);
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
  const decibans = model.calibrated ? DECIBANS * Math.log(posterior[winner] / rest) : plain;
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
