// The model: evidence tables that are added up for a row, as docs/reference/evidence-table.md describes them. It stands in for a service.

const AMOUNTS = { count: (n) => n, log: Math.log1p, root: Math.sqrt, presence: () => 1 };
const FARTHEST = 2 ** 400;
const TINY = 2.2250738585072014e-308;
const CERTAIN = 1e300; // log-odds
const DECIBANS = 10 / Math.log(10);
const model = {};
const clip = (low, x, high) => Math.max(low, Math.min(high, x));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

async function unpack() {
  const bytes = Uint8Array.from(atob(document.getElementById("model").textContent), (letter) => letter.charCodeAt(0));
  Object.assign(model, await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
  for (const column of model.columns) column.entries = new Map(column.entries);
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

const columnNames = ({ kind, name, entries }) => (kind === "counts" ? [...entries.keys()].filter((word) => word !== null) : [name]);

// The keys of a column's entries that a row has, each with how often and where it occurs: one value or interval, or all words.
function occurrences(column, row) {
  const { name, kind, entries, threshold } = column;
  const value = row.get(name) ?? null;
  const once = { key: null, value: "(any text)", times: 1, positions: [] };
  if (kind === "counts") {
    const block = columnNames(column).map((word) => ({ ...once, key: word, value: word, times: numberOf(row.get(word), word) ?? 0 }));
    return [once, ...block.filter(({ times }) => times > threshold)];
  }
  if (kind === "string") return [{ ...once, key: value, value }];
  if (kind === "number") {
    const x = [...entries.values()].find((entry) => entry.value && entry.value === String(value))?.from ?? numberOf(value, name);
    return [{ ...once, key: x === null ? null : [...entries.keys()].findLast((start) => start !== null && start <= x), value, x }];
  }
  if (value === null) return [];
  const bag = Map.groupBy(tokens(String(value), column), ({ word }) => word);
  const words = Array.from(bag, ([key, hits]) => ({ key, value: key, times: hits.length, positions: hits.map(({ start, end }) => [start, end]) }));
  return [once, ...words];
}

function numberOf(value, name) {
  const text = String(value ?? "").trim();
  if (!Number.isFinite(Number(text))) throw new Error(`${name}: ${displayText(value)} is not a number. Leave it empty if it is missing.`);
  return text ? Number(text) : null;
}

// The log density of a number in each class; of labels the log-odds.
function curveNats(curves, x) {
  const nats = model.names.map(() => 0);
  for (const curve of curves) {
    const u = clip(-FARTHEST, (x - curve.origin) / curve.unit, FARTHEST) / curve.width;
    const z = u - curve.centre;
    nats[curve.class] += curve.one + curve.x * z + curve.x2 * z * z + curve.log * (Math.log(Math.max(u, TINY)) - z);
  }
  const highest = model.labels ? 0 : Math.max(...nats);
  return nats.map((classNats) => classNats - highest);
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
      if (entry.cell !== null) cells.push(`${column.column} ${entry.cell}`);
      const isCurve = column.curves.length && hit.x !== null;
      pieces.push({ ...hit, nats: isCurve ? curveNats(column.curves, hit.x) : entry.nats.map((nats) => (amount / length) * nats || 0) });
    }
  }
  const pairs = cells.flatMap((cell) => cells.map((other) => model.pairs[`${cell} ${other}`])).filter(Boolean);
  pieces.push(...pairs.map((pair) => ({ ...pair, value: "", times: 1, seen: true, positions: [] })));
  const scores = model.prior.map((prior, c) => prior + sum(pieces.map(({ nats }) => nats[c])));
  const unknown = pieces.filter(({ seen, positions }) => !seen && positions.length).map(({ key }) => key);
  return { pieces, scores: scores.every((score) => score === -Infinity) ? model.prior : scores, unknown };
}

function logSumExp(numbers) {
  const highest = Math.max(...numbers);
  return highest === -Infinity ? highest : highest + Math.log(sum(numbers.map((x) => Math.exp(x - highest))));
}

function posteriorOf(scores) {
  const { rules } = model;
  const line = (x, c) => (Math.abs(x) < CERTAIN ? rules[c].slope * x + rules[c].shift : x);
  if (model.labels) return scores.map((score, c) => 1 / (1 + Math.exp(-line(score, c))));
  const best = Math.max(...scores);
  const heated = scores.map((score, c) => (score === -Infinity ? score : Math.max(score - best, rules[c].floor) / rules[c].temperature));
  const odds = heated.map((score, c) => clip(-CERTAIN, score - logSumExp(heated.filter((_, rival) => rival !== c)), CERTAIN));
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
  return { ...evidence, posterior, order: [...posterior.keys()].sort((a, b) => posterior[b] - posterior[a]) };
}

function predict(row) {
  const { names, rules } = model;
  const { posterior, order } = answerOf(row);
  const labels = order.filter((c) => posterior[c] >= rules[c].threshold).map((c) => names[c]);
  return { class: names[order[0]], probability: posterior[order[0]], labels, posteriors: Object.fromEntries(names.map((name, c) => [name, posterior[c]])) };
}

function explain(row, { against, label }) {
  const { names, prior, columns } = model;
  const { pieces, posterior, order, unknown } = answerOf(row);
  const winner = label === undefined ? order[0] : names.indexOf(label);
  const rival = model.labels ? undefined : [names.indexOf(against), ...order].find((c) => c >= 0 && c !== winner);
  const isAlone = rival === undefined;
  const weight = (nats) => DECIBANS * (isAlone ? nats[winner] : nats[winner] - nats[rival] || 0); // both may be impossible
  const evidence = pieces.map(({ nats, ...piece }) => ({ ...piece, decibans: weight(nats) })).filter(({ decibans }) => decibans);
  evidence.sort((a, b) => Math.abs(b.decibans) - Math.abs(a.decibans));
  const plain = sum(evidence.map(({ decibans }) => decibans)) + weight(prior);
  const probability = posterior[winner];
  const probability_against = isAlone ? 1 - probability : posterior[rival];
  const decibans = model.calibrated ? DECIBANS * Math.log(probability / probability_against) : plain;
  const texts = columns.filter(({ kind, name }) => kind === "text" && row.get(name)).map(({ name }) => [name, row.get(name)]);
  return { winner: names[winner], against: isAlone ? `not ${names[winner]}` : names[rival], probability, probability_against,
    prior: weight(prior), calibration: decibans - plain, decibans, evidence, texts: Object.fromEntries(texts), unknown };
}

const fetch = async (path, { body }) => {
  const { row, ...setting } = JSON.parse(body);
  const values = new Map(Object.entries(row));
  return { ok: true, json: async () => (path === "/predict" ? { predictions: [predict(values)] } : explain(values, setting)) };
};

// A table that is dropped on the page

function cellsOf(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/g)) {
    rows.at(-1).push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

async function scoreFile(file) {
  const [head = [], ...rows] = cellsOf(await file.text());
  const columns = model.columns.flatMap(columnNames);
  if (!head.some((name) => columns.includes(name))) throw new Error(`The first line must name columns of the model: ${columns.slice(0, 20).join(", ")}.`);
  const answers = rows.map((cells) => {
    const { class: best, labels, posteriors } = predict(new Map(head.map((name, k) => [name, cells[k] || null])));
    return [...head.map((_, k) => cells[k] ?? ""), model.labels ? labels.join("|") : best, ...model.names.map((name) => posteriors[name])];
  });
  const first = [...head, model.labels ? "labels" : "class", ...model.names.map((name) => `P(${name})`)];
  const csv = [first, ...answers].map((row) => row.map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n");
  const link = node("a", { href: URL.createObjectURL(new Blob([csv], { type: "text/csv" })), download: `answers-${file.name}` }, "Save the answers");
  fill("scored", node("p", {}, `${formatNumber(rows.length)} rows. `, link), table(first, answers.slice(0, 100)));
}

async function begin() {
  await unpack();
  const { names, labels, target, columns } = model;
  const fields = columns.flatMap((column) => {
    const listed = column.reading ? [] : [...column.entries.values()].map(({ value }) => value).filter(Boolean);
    const kind = column.kind === "text" ? "text" : listed.length ? "category" : "number";
    return columnNames(column).slice(0, 300).map((name) => ({ name, kind, values: listed.length ? listed : null, low: null, high: null }));
  });
  Object.assign(about, { fields, names, labels: labels ? names : null, target, bare: true });
  fill("served", names.slice(0, 4).map(displayClass).join(", "));
  drawAsk();
  const receive = ([file]) => scoreFile(file).catch(showProblem);
  document.getElementById("file").addEventListener("change", (event) => receive(event.target.files));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); receive(event.dataTransfer.files); });
  document.body.dataset.ready = "yes";
}
