// Requests to the service, and helpers that all views use.

export const about = {}; // the model and the fields of its rows
const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

// Sends a request; returns the response or throws an error with a message. If the service requires a token, asks for it until
// it is valid or the user gives up.
async function sendRequest(method, path, body) {
  for (;;) {
    const token = sessionStorage.getItem("token");
    const headers = { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
      .catch(() => { throw new Error("The service does not respond. Acknowledged changes are safe; restart the service to continue."); });
    if (response.ok) return response;
    if (response.status === 401 && await askForToken(token)) continue;
    const answer = await response.json().catch(() => ({}));
    throw Object.assign(new Error(answer.detail || `The service responded with ${response.status} ${response.statusText}`), { status: response.status });
  }
}

export const requestJson = async (method, path, body) => (await sendRequest(method, path, body)).json();

export const get = (path) => requestJson("GET", path);
export const post = (path, body) => requestJson("POST", path, body);

let tokenPrompt = null; // one dialog for all pending requests
// Resolves to whether the user has entered a token. rejected: the token that the service has refused, or null.
function askForToken(rejected) {
  if (rejected !== sessionStorage.getItem("token")) return true; // another request has asked for it meanwhile
  const dialog = document.getElementById("token");
  document.getElementById("token-why").textContent = rejected ? "This token is not valid, or no longer valid." : "This service requires a token.";
  tokenPrompt = tokenPrompt || new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      tokenPrompt = null;
      if (dialog.returnValue === "submit") sessionStorage.setItem("token", document.getElementById("token-input").value.trim());
      document.getElementById("token-input").value = "";
      resolve(dialog.returnValue === "submit");
    }, { once: true });
  });
  return tokenPrompt;
}

// Downloads a file. It takes a request with the token, so a plain link would not work.
export async function download(path, name) {
  const response = await sendRequest("GET", path);
  const link = node("a", { href: URL.createObjectURL(await response.blob()), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function showProblem(problem) {
  const place = document.getElementById("problem");
  place.textContent = problem ? problem.message || String(problem) : "";
  place.hidden = !problem;
}

// Nodes

export function node(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  return buildNode(element, attributes, inside);
}

export function svgNode(name, attributes = {}, ...inside) {
  return buildNode(document.createElementNS(SVG_NAMESPACE, name), attributes, inside);
}

function buildNode(element, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...inside.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function fill(id, ...inside) {
  document.getElementById(id).replaceChildren(...inside.flat(Infinity).filter(Boolean));
}

export function table(head, rows, kinds = []) {
  const cell = (name, value, k) => {
    const element = node(name, kinds[k] ? { class: kinds[k] } : {}, value instanceof Node ? value : displayText(value));
    if (name === "th") element.setAttribute("scope", k === 0 && rows ? "row" : "col");
    return element;
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

export function displayText(value, maxCharacters = 60) {
  if (value === null || value === undefined) return "missing";
  const text = typeof value === "number" ? formatNumber(value) : typeof value === "object" ? JSON.stringify(value) : String(value);
  return isolateText(text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text);
}

// Isolates a name from the text around it: right-to-left letters do not reorder other words, and control characters that would
// are made visible.
export function isolateText(name) {
  const text = String(name).replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\ud802\ud803\ud83a\ud83b]/.test(text) ? `\u2068${text}\u2069` : text;
}

export function formatNumber(number) {
  return Number.isInteger(number) ? number.toLocaleString("en") : String(Number(number.toPrecision(6)));
}

export function formatPercent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  if (share < 1 && share > 0.999) return "> 99.9 %";
  return `${(100 * share).toFixed(1)} %`;
}

export function formatDecibans(weight) {
  const number = typeof weight === "string" ? Number(weight.replace("inf", "Infinity")) : weight;
  if (!Number.isFinite(number)) return number > 0 ? "+∞" : "−∞";
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}

export const toNumber = (weight) => (typeof weight === "string" ? (weight.startsWith("-") ? -100 : 100) : weight);

// Returns the class or label of a key of the posteriors, because keys in JSON are texts.
export const labelOf = (key) => about.names.find((name) => name === key
  || (typeof name === "number" ? name === Number(key) : typeof name === "boolean" && String(name) === key.toLowerCase())) ?? key;

// Displays a class or labels; a number, true or false together with its target.
export function displayClass(label) {
  if (Array.isArray(label)) return label.map(isolateText).join(", ") || "no label";
  return about.target && (about.bare || typeof label !== "string") ? `${isolateText(about.target)} = ${isolateText(label)}` : isolateText(label);
}
