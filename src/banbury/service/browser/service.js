// What the service is asked, and small things that every view needs.

export const about = {}; // the model, and the fields that its rows have
const svgs = "http://www.w3.org/2000/svg";

// An answer, or an error in words. Where a token is wanted, it is asked for until one is known, or until the person gives up.
async function sent(method, path, body) {
  for (;;) {
    const token = sessionStorage.getItem("token");
    const headers = { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const given = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
      .catch(() => { throw new Error("The service does not respond. Acknowledged changes are safe; restart the service to continue."); });
    if (given.ok) return given;
    if (given.status === 401 && await askForToken(token)) continue;
    const answer = await given.json().catch(() => ({}));
    throw Object.assign(new Error(answer.detail || `The service responded with ${given.status} ${given.statusText}`), { status: given.status });
  }
}

export const ask = async (method, path, body) => (await sent(method, path, body)).json();

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);

let asking = null; // one dialog for all that wait
function askForToken(old) {
  if (old !== sessionStorage.getItem("token")) return true; // it was given meanwhile
  const dialog = document.getElementById("token");
  document.getElementById("token-why").textContent = old ? "This token is not valid, or no longer valid." : "This service requires a token.";
  asking = asking || new Promise((done) => {
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      asking = null;
      if (dialog.returnValue === "given") sessionStorage.setItem("token", document.getElementById("token-given").value.trim());
      document.getElementById("token-given").value = "";
      done(dialog.returnValue === "given");
    }, { once: true });
  });
  return asking;
}

// A file to keep: asked for with the token, so that a link alone does not do.
export async function keep(path, name) {
  const given = await sent("GET", path);
  const link = node("a", { href: URL.createObjectURL(await given.blob()), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function say(problem) {
  const place = document.getElementById("problem");
  place.textContent = problem ? problem.message || String(problem) : "";
  place.hidden = !problem;
}

// Nodes

export function node(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  return filled(made, attributes, inside);
}

export function drawn(name, attributes = {}, ...inside) {
  return filled(document.createElementNS(svgs, name), attributes, inside);
}

function filled(made, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return made;
}

export function fill(id, ...inside) {
  document.getElementById(id).replaceChildren(...inside.flat(Infinity).filter(Boolean));
}

export function table(head, rows, kinds = []) {
  const cell = (name, value, k) => {
    const made = node(name, kinds[k] ? { class: kinds[k] } : {}, value instanceof Node ? value : shown(value));
    if (name === "th") made.setAttribute("scope", k === 0 && rows ? "row" : "col");
    return made;
  };
  const body = rows.map((row) => {
    const cells = Array.isArray(row) ? row : row.cells;
    return node("tr", row.kind ? { class: row.kind } : {}, cells.map((value, k) => cell(k === 0 ? "th" : "td", value, k)));
  });
  const heads = head.map((value, k) => node("th", { scope: "col", class: kinds[k] || null }, value));
  return node("div", { class: "box", tabindex: "0", role: "region", "aria-label": head.filter(Boolean).join(", ") },
    node("table", {}, node("thead", {}, node("tr", {}, heads)), node("tbody", {}, body)));
}

export function bar(share) {
  const inside = node("i");
  inside.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return node("div", { class: "meter", "aria-hidden": "true" }, inside);
}

// Figures

export function shown(value, most = 60) {
  if (value === null || value === undefined) return "missing";
  const text = typeof value === "number" ? figure(value) : typeof value === "object" ? JSON.stringify(value) : String(value);
  return apart(text.length > most ? `${text.slice(0, most)}…` : text);
}

// A name among other words: letters that are written to the left turn nothing but themselves, and what turns letters is shown.
export function apart(name) {
  const text = String(name).replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\ud802\ud803\ud83a\ud83b]/.test(text) ? `\u2068${text}\u2069` : text;
}

export function figure(number) {
  return Number.isInteger(number) ? number.toLocaleString("en") : String(Number(number.toPrecision(6)));
}

export function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  if (share < 1 && share > 0.999) return "> 99.9 %";
  return `${(100 * share).toFixed(1)} %`;
}

export function decibans(weight) {
  const number = typeof weight === "string" ? Number(weight.replace("inf", "Infinity")) : weight;
  if (!Number.isFinite(number)) return number > 0 ? "+∞" : "−∞";
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}

export const size = (weight) => (typeof weight === "string" ? (weight.startsWith("-") ? -100 : 100) : weight);

// The class or label that a key of the posteriors stands for: JSON has no keys but texts.
export const labelOf = (key) => about.names.find((each) => each === key
  || (typeof each === "number" ? each === Number(key) : typeof each === "boolean" && String(each) === key.toLowerCase())) ?? key;

// A class or labels for people: a number, true or false is named with its target.
export function named(label) {
  if (Array.isArray(label)) return label.map(apart).join(", ") || "no label";
  return about.target && (about.bare || typeof label !== "string") ? `${apart(about.target)} = ${apart(label)}` : apart(label);
}
