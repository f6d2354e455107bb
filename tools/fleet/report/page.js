// Fills the page from its data.  Text only ever goes in through textContent.
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read("data"), charts = read("charts");
const byId = (id) => document.getElementById(id);
const make = (tag, text, cls) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (cls) node.className = cls;
  return node;
};
// Control characters would otherwise be invisible in a name.
const shown = (value) => typeof value === "number" ? value.toLocaleString("en")
  : value === null || value === undefined ? ""
  : String(value).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
const BAD = new Set(["lost", "violations", "overtaking", "delivered twice", "incomplete", "errors", "number"]);

function cell(name, value) {
  const number = typeof value === "number";
  const node = make("td", shown(value), (number ? "n" : "") + (number && value > 0 && BAD.has(name) ? " bad" : ""));
  if (!number && node.textContent.length > 24) node.title = node.textContent;
  return node;
}
function fill(table, names, rows, onHead) {
  const head = make("tr");
  names.forEach((name, at) => {
    const th = make("th", name, rows.length && typeof rows[0][at] === "number" ? "n" : "");
    if (onHead) th.addEventListener("click", () => onHead(at));
    head.append(th);
  });
  const body = rows.map((row) => {
    const tr = make("tr");
    row.forEach((value, at) => tr.append(cell(names[at], value)));
    return tr;
  });
  table.replaceChildren(head, ...body);
}
// A table that sorts at a click on its head.
function sortable(id, rows, names) {
  if (!rows.length) { byId(id).replaceWith(make("p", "nothing")); return; }
  names = names || Object.keys(rows[0]);
  let list = rows.map((row) => names.map((name) => row[name])), last = -1, up = false;
  const draw = (at) => {
    if (at !== undefined) { up = at === last ? !up : typeof list[0][at] === "string"; last = at; list = sorted(list, at, up); }
    fill(byId(id), names, list, draw);
  };
  draw();
}
function sorted(rows, at, up) {
  const compare = (a, b) => {
    const x = a[at], y = b[at];
    if (x === null || y === null) return (x === null) - (y === null) || 0;
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return up ? order : -order;
  };
  return [...rows].sort(compare);
}

function summary() {
  byId("span").textContent = (data.span[0] || "?") + " to " + (data.span[1] || "?") + " UTC";
  const tile = (name, value, bad) => {
    const node = make("div", undefined, "tile" + (bad ? " bad" : ""));
    node.append(make("b", shown(value)), make("span", name));
    byId("tiles").append(node);
  };
  Object.entries(data.findings).forEach(([name, value]) => tile(name, value, value > 0));
  tile("clients", data.device_count);
  ["packets", "connections", "readings"].forEach((name) => tile(name, data.rows[name]));
}

// The device table: only one page of rows is in the document.
const PAGE = 100;
function devices() {
  const names = data.devices.columns, all = data.devices.data;
  let rows = all, begin = 0, last = -1, up = false;
  const draw = () => {
    fill(byId("devices"), names, rows.slice(begin, begin + PAGE), (at) => {
      up = at === last ? !up : at < 3; last = at; rows = sorted(rows, at, up); begin = 0; draw();
    });
    byId("place").textContent = rows.length ? `${begin + 1} to ${Math.min(rows.length, begin + PAGE)}` : "none";
    byId("count").textContent = `${shown(rows.length)} of ${shown(data.device_count)}`;
  };
  const step = (by) => { const to = begin + by; if (to >= 0 && to < rows.length) { begin = to; draw(); } };
  byId("next").addEventListener("click", () => step(PAGE));
  byId("back").addEventListener("click", () => step(-PAGE));
  byId("filter").addEventListener("input", (event) => {
    rows = all.filter(matcher(event.target.value, names)); begin = 0; last = -1; draw();
  });
  draw();
}
function matcher(text, names) {
  const asked = /^\s*([a-z0-9 ]+?)\s*([<>=])\s*(-?[\d.]+)\s*$/i.exec(text);
  const at = asked ? names.indexOf(asked[1].toLowerCase()) : -1;
  if (at >= 0) {
    const limit = Number(asked[3]);
    return (row) => row[at] !== null && (asked[2] === ">" ? row[at] > limit : asked[2] === "<" ? row[at] < limit : row[at] === limit);
  }
  const wanted = text.trim().toLowerCase();
  return (row) => row.slice(0, 3).some((value) => String(value ?? "").toLowerCase().includes(wanted));
}

function strips() {
  if (!data.strips.length) byId("strips").append(make("p", "every subscriber saw 1, 2, 3"));
  data.strips.forEach((strip) => {
    const line = make("div", undefined, "strip");
    if (strip.before) line.append(make("span", "… "));
    strip.cells.forEach(([label, kind]) => line.append(make("b", label, "cell " + kind)));
    byId("strips").append(make("div", `${shown(strip.client)}: ${shown(strip.topic)}, QoS ${strip.qos}`, "name"), line);
  });
}

function violations() {
  sortable("violations", data.violations.map((row) => ({ ...row, statement: data.statements[row.requirement] || "" })));
  data.examples.forEach((example) => {
    const box = make("details");
    const text = `${example.requirement}  ${example.ts}  ${shown(example.client_id)} (${example.by}): ${shown(example.detail)}`;
    box.append(make("summary", text), make("p", data.statements[example.requirement] || ""));
    const place = example.capture ? `${shown(example.capture)}, byte ${example.offset}` : "";
    box.append(make("p", `${shown(example.connection)}  ${place}`));
    const names = ["ts", "direction", "packet_type", "qos", "dup", "packet_id", "topic", "payload_bytes"];
    const table = make("table");
    fill(table, names, example.around.map((packet) => names.map((name) => packet[name])));
    example.around.forEach((packet, at) => { if (packet.number === example.number) table.rows[at + 1].className = "this"; });
    box.append(table);
    byId("examples").append(box);
  });
}

const root = document.documentElement;
const isDark = () => root.classList.contains("dark");
function draw() {
  const ink = isDark() ? "#e4e8ee" : "#1c2430", line = isDark() ? "#38424f" : "#d3d9e2";
  const config = { background: "transparent", axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
    legend: { labelColor: ink, titleColor: ink }, view: { stroke: line } };
  return Promise.all(Object.entries(charts).map(([id, spec]) => {
    const name = spec.data.name;
    if (!data[name].length) { byId(id).textContent = "nothing"; return null; }
    const whole = { ...spec, config: { ...spec.config, ...config }, datasets: { [name]: data[name] } };
    return window.vegaEmbed(byId(id), whole, { actions: false, renderer: "svg" });
  }));
}
root.classList.add(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
byId("theme").addEventListener("click", () => { root.classList.toggle("dark"); root.classList.toggle("light"); draw(); });
summary(); devices(); strips(); violations();
sortable("firmware", data.groups.firmware); sortable("site", data.groups.site); sortable("files", data.files);
draw().then(() => { root.dataset.ready = "yes"; });
