// The model: evidence tables that are added up for a row, as docs/reference/evidence-table.md describes them. It stands in for a service.

const AMOUNTS = { count: (n) => n, log: Math.log1p, root: Math.sqrt, presence: () => 1 };
const FARTHEST = 2 ** 400;
const TINY = 2.2250738585072014e-308;
const CERTAIN = 1e300; // log-odds
const DECIBANS = 10 / Math.log(10);
const model = {};
const clip = (low, x, high) => Math.max(low, Math.min(high, x));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  Object.assign(model, await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
  for (const column of model.columns) column.entries = new Map(column.entries);
  model.pairs = new Map(model.pairs);
}

// The tokens of a text in order, each with where it stands, in characters of the text as it was written.
function tokens(text, { pattern, reading }) {
  const lower = (letters) => (reading.lowercase ? letters.toLowerCase() : letters);
  const places = Array.from(text).flatMap((letter, i) => Array(lower(letter).length).fill(i)); // of each unit of UTF-16
  const words = Array.from(lower(text).matchAll(new RegExp(pattern, "gu")), ({ 0: word, 1: spaces, index }) => ({
    word: spaces ? " " : word, start: places[index], end: places[index + word.length - 1] + 1 }))
    .filter(({ word }) => !reading.stop_words?.includes(word));
  const [shortest, longest] = reading.ngrams;
  const grams = [];
  for (let n = shortest; n <= longest; n += 1) {
    for (let i = 0; i + n <= words.length; i += 1) {
      const gram = words.slice(i, i + n);
      grams.push({ ...gram[0], word: gram.map(({ word }) => word).join(reading.unit === "words" ? " " : ""), end: gram[n - 1].end });
    }
  }
  const only = reading.only && new Set(reading.only);
  return only ? grams.filter(({ word }) => only.has(word)) : grams;
}

// The keys of a column's entries that a row has, each with how often and where it occurs: one value or interval, or all words.
function occurrences(column, row) {
  const { name, kind, entries, threshold } = column;
  const value = row[name] ?? null;
  const once = { key: null, value: "(any text)", times: 1, positions: [] };
  if (kind === "counts") {
    const block = [...entries.keys()].filter((word) => word !== null).map((word) => ({ ...once, key: word, value: word, times: numberOf(row[word], word) ?? 0 }));
    return [once, ...block.filter(({ times }) => times > threshold)];
  }
  if (kind === "string") return [{ ...once, key: value, value }];
  if (kind === "number") {
    const x = [...entries.values()].find((entry) => entry.value && entry.value === String(value))?.from ?? numberOf(value, name);
    return [{ ...once, key: x === null ? null : [...entries.keys()].findLast((start) => start !== null && start <= x), value, x }];
  }
  const bag = new Map(value === null ? [] : [[null, once]]);
  for (const { word, start, end } of value === null ? [] : tokens(String(value), column)) {
    if (!bag.has(word)) bag.set(word, { key: word, value: word, times: 0, positions: [] });
    bag.get(word).times += 1;
    bag.get(word).positions.push([start, end]);
  }
  return [...bag.values()];
}

function numberOf(value, name) {
  const text = String(value ?? "").trim();
  if (!Number.isFinite(Number(text))) throw new Error(`${name}: ${shown(value)} is not a number. Leave it empty if it is missing.`);
  return text ? Number(text) : null;
}

// The log density of a number in each class; of labels the log-odds.
function curved(curves, x) {
  const nats = model.names.map(() => 0);
  for (const curve of curves) {
    const u = clip(-FARTHEST, (x - curve.origin) / curve.unit, FARTHEST) / curve.width;
    const z = u - curve.centre;
    nats[curve.class] += curve.one + curve.x * z + curve.x2 * z * z + curve.log * (Math.log(Math.max(u, TINY)) - z);
  }
  const most = model.labels ? 0 : Math.max(...nats);
  return nats.map((each) => each - most);
}

// What a row's values say of each class, piece by piece; the scores of classes; and the words that are not known.
function evidenceOf(row) {
  const pieces = [];
  const cells = [];
  for (const column of model.columns) {
    const hits = occurrences(column, row).map((hit) => {
      const entry = column.entries.get(hit.key) || column.unseen;
      return { ...hit, feature: column.name, entry, seen: entry !== column.unseen, amount: AMOUNTS[column.count](hit.times) * entry.scale };
    });
    const length = (column.length && Math.sqrt(sum(hits.map(({ amount }) => amount * amount)))) || 1;
    for (const { entry, amount, ...hit } of hits) {
      cells.push(`${column.column} ${entry.cell}`);
      const isCurve = column.curves.length && hit.x !== null;
      pieces.push({ ...hit, nats: isCurve ? curved(column.curves, hit.x) : entry.nats.map((nats) => (amount ? (amount / length) * nats : 0)) });
    }
  }
  const pairs = cells.flatMap((cell) => cells.map((other) => model.pairs.get(`${cell} ${other}`))).filter(Boolean);
  pieces.push(...pairs.map((pair) => ({ ...pair, value: "", times: 1, seen: true, positions: [] })));
  const scores = model.prior.map((prior, c) => prior + sum(pieces.map(({ nats }) => nats[c])));
  const unknown = pieces.filter(({ seen, positions }) => !seen && positions.length).map(({ key }) => key);
  return { pieces, scores: scores.every((score) => score === -Infinity) ? model.prior : scores, unknown };
}

function posteriorOf(scores) {
  const { rules } = model;
  const line = (x, c) => (Math.abs(x) < CERTAIN ? rules[c].slope * x + rules[c].shift : x);
  if (model.labels) return scores.map((score, c) => 1 / (1 + Math.exp(-line(score, c))));
  const most = Math.max(...scores);
  const heated = scores.map((score, c) => (score === -Infinity ? score : Math.max(score - most, rules[c].floor) / rules[c].temperature));
  const odds = heated.map((score, c) => {
    const rivals = heated.filter((_, o) => o !== c);
    const top = Math.max(...rivals);
    return top === -Infinity ? CERTAIN : clip(-CERTAIN, score - top - Math.log(sum(rivals.map((rival) => Math.exp(rival - top)))), CERTAIN);
  });
  const logs = odds.map(line).map((y) => Math.min(y, 0) - Math.log1p(Math.exp(-Math.abs(y))));
  const highest = Math.max(...logs);
  const shares = odds.map((x, c) => {
    const stair = model.stairs.find(([k, from, to]) => k === c && from <= x && x < to);
    return stair ? stair[3] + stair[4] * (x - stair[1]) : Math.exp(logs[c] - highest);
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
  const labels = order.filter((c) => posterior[c] >= model.rules[c].threshold).map((c) => model.names[c]);
  const posteriors = Object.fromEntries(model.names.map((name, c) => [name, posterior[c]]));
  return { class: model.names[order[0]], probability: posterior[order[0]], labels, posteriors };
}

function explained(row, { against, label }) {
  const { names, prior, columns } = model;
  const { pieces, posterior, order, unknown } = answerOf(row);
  const winner = label === undefined ? order[0] : names.indexOf(label);
  const other = model.labels ? undefined : [names.indexOf(against), ...order].find((c) => c >= 0 && c !== winner);
  const single = other === undefined;
  const weight = (nats) => DECIBANS * (single ? nats[winner] : nats[winner] === nats[other] ? 0 : nats[winner] - nats[other]);
  const evidence = pieces.map(({ nats, ...piece }) => ({ ...piece, decibans: weight(nats) })).filter(({ decibans }) => decibans);
  evidence.sort((a, b) => Math.abs(b.decibans) - Math.abs(a.decibans));
  const plain = sum(evidence.map(({ decibans }) => decibans)) + weight(prior);
  const rest = single ? 1 - posterior[winner] : posterior[other];
  const decibans = model.calibrated ? DECIBANS * Math.log(posterior[winner] / rest) : plain;
  const texts = columns.filter(({ kind, name }) => kind === "text" && row[name]).map(({ name }) => [name, row[name]]);
  return { winner: names[winner], against: single ? `not ${names[winner]}` : names[other], probability: posterior[winner],
    probability_against: rest, prior: weight(prior), calibration: decibans - plain, decibans, evidence, texts: Object.fromEntries(texts), unknown };
}

const rowOf = (cells) => Object.assign(Object.create(null), cells); // a column may be called __proto__

const fetch = async (path, { body }) => {
  const { row, ...setting } = JSON.parse(body);
  return { ok: true, json: async () => (path === "/predict" ? { predictions: [predicted(rowOf(row))] } : explained(rowOf(row), setting)) };
};

// A table that is dropped on the page

function cellsOf(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.replace(/^\ufeff/, "").matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

const namesOf = ({ kind, name, entries }) => (kind === "counts" ? [...entries.keys()].filter((word) => word !== null) : [name]);

async function take(file) {
  const [head = [], ...rows] = cellsOf(await file.text());
  const known = model.columns.flatMap(namesOf);
  if (!head.some((name) => known.includes(name))) throw new Error(`The first line of the file names no column of the model. Its columns are ${known.slice(0, 20).join(", ")}.`);
  const answers = rows.map((cells) => {
    const row = Object.fromEntries(head.map((name, k) => [name, cells[k]]).filter(([, cell]) => cell));
    const { class: best, labels, posteriors } = predicted(rowOf(row));
    return [...head.map((_, k) => cells[k] ?? ""), model.labels ? labels.join("|") : best, ...model.names.map((name) => posteriors[name])];
  });
  const first = [...head, model.labels ? "labels" : "class", ...model.names.map((name) => `P(${name})`)];
  const csv = [first, ...answers].map((row) => row.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n");
  const link = node("a", { href: URL.createObjectURL(new Blob([csv], { type: "text/csv" })), download: `answers-${file.name}` }, "Save the answers");
  fill("scored", node("p", {}, `${figure(rows.length)} rows. `, link), table(first, answers.slice(0, 100)));
}

async function begin() {
  await unpack("model");
  const { names, labels, target, columns } = model;
  const fields = columns.flatMap((column) => {
    const listed = column.reading ? [] : [...column.entries.values()].map(({ value }) => value).filter(Boolean);
    const kind = column.kind === "text" ? "text" : listed.length ? "category" : "number";
    return namesOf(column).slice(0, 300).map((name) => ({ name, kind, values: listed.length ? listed : null, low: null, high: null }));
  });
  Object.assign(about, { fields, names, labels: labels ? names : null, target, bare: true });
  fill("served", names.slice(0, 4).map(named).join(", "));
  drawAsk();
  const receive = ([file]) => take(file).catch(say);
  document.getElementById("file").addEventListener("change", (event) => receive(event.target.files));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); receive(event.dataTransfer.files); });
  document.body.dataset.ready = "yes";
}
