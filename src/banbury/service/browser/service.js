// What the service is asked, and small things that every view needs.

export const about = {}; // the model, and the fields that its rows have
const svgs = "http://www.w3.org/2000/svg";

export async function ask(method, path, body, again = true) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const given = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (given.status === 401 && again) {
    await askForToken();
    return ask(method, path, body, false);
  }
  const kind = given.headers.get("content-type") || "";
  const answer = kind.includes("json") ? await given.json() : await given.text();
  if (!given.ok) throw Object.assign(new Error(answer.detail || given.statusText), { status: given.status });
  return answer;
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);

function askForToken() {
  const dialog = document.getElementById("token");
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", document.getElementById("token-given").value.trim());
      done();
    }, { once: true });
  });
}

// A file to keep: asked for with the token, so that a link alone does not do.
export async function keep(path, name) {
  const token = sessionStorage.getItem("token");
  const given = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (!given.ok) throw new Error((await given.json()).detail);
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
  return node("div", { class: "box", tabindex: "0" },
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
  return text.length > most ? `${text.slice(0, most)}…` : text;
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

export const named = (label) => (Array.isArray(label) ? label.map(String).join(", ") || "no label" : String(label));
