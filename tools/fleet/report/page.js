// Fills the page from its data.  Text only ever goes in through textContent.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const make = (tag, text, cls) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (cls) node.className = cls;
  return node;
};
// Control characters would otherwise be invisible in a name, and a name that is written from
// right to left would take what stands beside it along.  A topic may have 65,535 letters.
const none = (value) => (value ?? null) === null;
const shown = (value) => typeof value === "number" ? value.toLocaleString("en")
  : none(value) ? ""
  : apart(brief(String(value)).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
const LONG = 400;
const brief = (text) => text.length > LONG ? text.slice(0, LONG - 100) + ` … (${shown(text.length)} characters)` : text;
const apart = (text) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(text) ? "\u2068" + text + "\u2069" : text;
const words = (name) => name.replace(/_/g, " ").replace("client id", "device");
const BAD = new Set(["lost", "missed", "violations", "overtaking", "duplicates", "incomplete", "errors", "refused", "late", "troubles", "unwell", "messages", "missing"]);
const STATES = Object.keys(data.states);

// What nobody can know, and what QoS 0 allows, is told and counts as nothing.
const isCounted = (row) => row.sure !== "not_knowable" && row.qos !== 0;
function cell(name, value, counts) {
  const number = typeof value === "number";
  const bad = number && value > 0 && counts && BAD.has(name);
  const state = name === "state" && STATES.includes(value) ? value : "";
  const length = String(value ?? "").length;  // a date may stand in two lines
  const size = number ? "n " : length < 19 ? "short " : length < 30 ? "date " : "long ";
  const node = make("td", shown(value), size + (value === 0 && name !== "qos" ? "zero " : "") + (bad ? "bad" : state));
  node.dataset.name = words(name);
  return node;
}
function fill(table, names, rows, { onHead, onRow } = {}) {
  const head = make("tr", null, "head");
  names.forEach((name, at) => {
    const isNumber = rows.some((row) => typeof row[at] === "number");
    const th = make("th", words(name), (isNumber ? "n " : "") + (onHead ? "sorts" : ""));
    if (onHead) th.addEventListener("click", () => onHead(at));
    head.append(th);
  });
  table.replaceChildren(head, ...rows.map((row, place) => {
    const tr = make("tr", null, onRow ? "opens" : "");
    row.forEach((value, at) => tr.append(cell(names[at], value, isCounted(row.of ?? {}))));
    if (onRow) {
      tr.tabIndex = 0;
      tr.addEventListener("click", () => onRow(row, place));
      tr.addEventListener("keydown", (event) => { if (event.key === "Enter") onRow(row, place); });
    }
    return tr;
  }));
}
// Those of these columns that hold anything.
const filled = (names, rows) => names.filter((name) => rows.some((row) => !none(row[name])));
// The values of these columns, and the row that they are of.
const picked = (rows, names) => rows.map((row) => Object.assign(names.map((name) => row[name]), { of: row }));
function sorted(rows, at, up) {
  const compare = (a, b) => {
    const x = a[at], y = b[at];
    if (none(x) || none(y)) return none(x) - none(y);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return up ? order : -order;
  };
  return [...rows].sort(compare);
}
// A cell that begins like a formula would be one in a spreadsheet.
const csvCell = (value) => {
  const text = none(value) ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value !== "number" ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
};
const toCsv = (names, rows) => [names, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
function save(name, names, rows) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([toCsv(names, rows)], { type: "text/csv" }));
  link.download = name + ".csv";
  link.click();
  URL.revokeObjectURL(link.href);
}
// A table that sorts at a click on its head, with its CSV.
function sortable(id, rows, names, nothing = "nothing", onOpen = null) {
  const table = byId(id);
  if (!rows.length) { table.closest(".scroll").replaceWith(make("p", nothing)); return; }
  names = filled(names || Object.keys(rows[0]), rows);
  let list = picked(rows, names), last = -1, up = false;
  const draw = (at) => {
    if (at !== undefined) { up = at === last ? !up : typeof list[0][at] === "string"; last = at; list = sorted(list, at, up); }
    fill(table, names, list, { onHead: draw, onRow: onOpen && ((values) => onOpen(values.of)) });
  };
  const button = make("button", "CSV", "csv");
  button.addEventListener("click", () => save(id, names, list));
  const isBefore = (one) => one.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING;
  [...table.closest("section").querySelectorAll("h2, h3")].filter(isBefore).pop().append(button);
  const [part, of] = data.taken[id] ?? [0, 0];
  if (of > part) table.closest(".scroll").after(make("p", `${shown(part)} of ${shown(of)}: the tables hold all.`, "more"));
  draw();
}

const WHERE = { "violations": "broken", "lost messages": "lost", "duplicates at QoS 2": "broken", "overtaking messages": "order",
  "incomplete messages": "devices", "clients and brokers in trouble": "troubles",
  "places where bytes are missing": "files", "damaged places in files": "files" };
const FILTERS = { "incomplete messages": "incomplete > 0", "overtaking messages": "overtaking > 0" };
function summary() {
  byId("span").textContent = (data.span[0] || "?") + " to " + (data.span[1] || "?") + " UTC";
  const tile = (name, value, { bad, goes, note, filter } = {}) => {
    const node = make(goes ? "a" : "div", undefined, "tile" + (bad ? " bad" : ""));
    node.append(make("b", shown(value)), make("span", name));
    if (note) node.append(make("small", note));
    if (goes) node.href = "#" + goes;
    if (filter) node.addEventListener("click", () => search(filter));
    byId("tiles").append(node);
  };
  const unwell = data.device_count - data.states.well;
  const over = [];
  Object.entries(data.findings).forEach(([name, value]) => {
    const limit = data.limits[name];
    const isOver = value > (limit ?? 0);
    if (isOver) over.push(`${name}: ${shown(value)}`);
    const note = limit === undefined ? "" : (isOver ? "fails: " : "passes: ") + `at most ${shown(limit)}`;
    const filter = FILTERS[name];
    tile(name, value, { bad: isOver, goes: filter ? "devices" : WHERE[name] || "troubles", note, filter: value ? filter : "" });
  });
  tile("devices unwell", unwell, { bad: unwell > 0, goes: "devices", filter: unwell ? "unwell" : "", note: `of ${shown(data.device_count)}` });
  [["packets", "when"], ["connections", "when"], ["readings", "when"]].forEach(([name, goes]) => tile(name, data.rows[name], { goes }));
  tile("files", data.taken.captures[1], { goes: "files" });
  const verdict = byId("verdict");
  verdict.className = over.length ? "bad" : "good";
  verdict.textContent = over.length ? over.join(", ") : "Nothing found that should not be.";
  data.notes.forEach((note) => byId("notes").append(make("li", shown(note))));
}

// Devices lie in packed blocks; only what is shown is unpacked.
const BLOCKS = [...document.querySelectorAll("script.block")], unpacked = new Map();
async function unpack(node) {
  const bytes = Uint8Array.from(atob(node.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}
function block(number) {
  if (!unpacked.has(number)) unpacked.set(number, unpack(BLOCKS[number]));
  return unpacked.get(number);
}
const ALL = data.devices.columns, PER_BLOCK = data.devices.block_rows;
const row = async (number) => (await block(Math.floor(number / PER_BLOCK)))[number % PER_BLOCK];
const every = async () => (await Promise.all(BLOCKS.map((_, number) => block(number)))).flat();
const total = Math.min(data.device_count, BLOCKS.length * PER_BLOCK);
const LISTED = ["client_id", "state", "why", "lost", "missed", "violations", "troubles", "last_seen", "firmware", "site"];
if ((data.groups.site || []).length > 1) LISTED.splice(1, 0, LISTED.pop());
const PLACES = LISTED.map((name) => ALL.indexOf(name));
const PAGE = 100;
const named = (name) => name === null ? "(no CONNECT seen)" : name || "(no client id)";
// Numbers of the devices shown, in their order; null is all of them, the worst first.
let chosen = null, begin = 0, sortedBy = -1, up = false, names = null, asked = 0;
const length = () => chosen ? chosen.length : total;
async function drawDevices() {
  const turn = ++asked;
  const numbers = chosen ? chosen.slice(begin, begin + PAGE)
    : Array.from({ length: Math.max(0, Math.min(PAGE, total - begin)) }, (_, at) => begin + at);
  const rows = await Promise.all(numbers.map(row));
  if (turn !== asked) return;
  fill(byId("list"), LISTED, rows.map((one) => PLACES.map((at, place) => place ? one[at] : named(one[at]))), {
    onHead: sortDevices, onRow: (_, place) => openDevice(rows[place]),
  });
  byId("place").textContent = length() ? `${shown(begin + 1)} to ${shown(Math.min(length(), begin + PAGE))}` : "none";
  byId("count").textContent = `${shown(length())} of ${shown(data.device_count)}`;
}
async function sortDevices(at) {
  up = at === sortedBy ? !up : ["client_id", "site", "why", "firmware"].includes(LISTED[at]);
  sortedBy = at;
  const rows = await every();
  const numbers = chosen || rows.map((_, number) => number);
  const pairs = numbers.map((number) => [rows[number][PLACES[at]], number]);
  chosen = sorted(pairs, 0, up).map((pair) => pair[1]);
  begin = 0;
  return drawDevices();
}
async function search(text) {
  if (byId("filter").value !== text) byId("filter").value = text;
  sortedBy = -1; begin = 0;
  const wanted = text.trim().toLowerCase();
  const question = /^([a-z0-9_ ]+?)\s*([<>=])\s*(-?[\d.]+)$/.exec(wanted);
  const at = question ? ALL.indexOf(question[1].replace(/ /g, "_")) : -1;
  if (!wanted) chosen = null;
  else if (at >= 0) {
    const limit = Number(question[3]);
    const is = { ">": (v) => v > limit, "<": (v) => v < limit, "=": (v) => v === limit }[question[2]];
    const rows = await every();
    chosen = rows.flatMap((one, number) => one[at] !== null && is(one[at]) ? [number] : []);
  } else {
    names = names || await unpack(byId("names"));
    const has = (value) => String(value ?? "").toLowerCase().includes(wanted);
    const is = STATES.includes(wanted) ? (one) => one[2] === wanted : wanted === "unwell" ? (one) => one[2] !== "well" : (one) => one.some(has);
    chosen = names.flatMap((one, number) => is(one) ? [number] : []);
  }
  document.querySelectorAll("#states button").forEach((node) => node.classList.toggle("on", node.value === wanted));
  return drawDevices();
}
// What is in a box: a head with a button that closes it, values by name, and the rest.
function open(box, head, names, of, ...rest) {
  const close = make("button", "close", "csv"), list = make("dl");
  close.addEventListener("click", () => box.replaceChildren());
  names.filter((name) => !none(of(name))).forEach((name) => {
    const pair = make("div");
    pair.append(make("dt", words(name)), make("dd", shown(of(name))));
    list.append(pair);
  });
  head.append(close);
  box.replaceChildren(head, list, ...rest);
}
function openDevice(one) {
  const of = (name) => one[ALL.indexOf(name)];
  const box = byId("device"), name = of("client_id"), site = of("site");
  const part = (title, rows, names) => {
    if (!rows.length) return [];
    const scroll = make("div", null, "scroll"), table = make("table");
    scroll.append(table);
    names = filled(names, rows);
    fill(table, names, picked(rows, names));
    return [make("h3", title), scroll];
  };
  // Where no name is known, a row without a name may be of anybody.
  const mine = (row) => row.site === site && (name === null ? row.about === "client" && row.client_id === null
    : row.client_id === name || row.published_by === name);
  const losses = data.losses.filter(mine);
  const told = losses.reduce((sum, row) => sum + (isCounted(row) ? row.messages : 0), 0);
  const more = Math.max(of("lost"), of("missed")) > told ? [make("p", "More lost messages of it are in the table losses.", "more")] : [];
  open(box, make("h2", `${shown(named(name))}: ${of("state")}`), ALL.filter((column) => !["client_id", "state", "why"].includes(column)), of,
    ...part("Lost messages", losses, LOSS), ...more, ...part("Findings", data.troubles.filter(mine), TROUBLE),
    ...part("Statements broken (examples)", data.examples.filter(mine), ["ts", "requirement", "by", "detail", "topic"]));
  box.firstChild.after(make("p", shown(of("why")) || "nothing is wrong"));
  box.scrollIntoView({ block: "nearest" });
}
function devices() {
  const step = (by) => { const to = begin + by; if (to >= 0 && to < length()) { begin = to; drawDevices(); } };
  byId("next").addEventListener("click", () => step(PAGE));
  byId("back").addEventListener("click", () => step(-PAGE));
  byId("filter").addEventListener("input", (event) => search(event.target.value));
  byId("csv").addEventListener("click", async () => {
    const rows = await every();
    save("devices", ALL, chosen ? chosen.map((number) => rows[number]) : rows);
  });
  Object.entries(data.states).forEach(([state, count]) => {
    const button = make("button", `${shown(count)} ${state}`);
    button.value = state;
    button.addEventListener("click", () => search(button.classList.contains("on") ? "" : state));
    byId("states").append(button, " ");
  });
  return drawDevices();
}

const LOSS = ["ts", "until", "published_by", "topic", "client_id", "messages", "qos", "sure", "why"];
const TROUBLE = ["finding", "client_id", "count", "first_seen", "detail", "sure", "why"];
// Of several sites each row says where it was: their clients may have the same names.
const SITE = (data.groups.site || []).length > 1 ? ["site"] : [];
const CAUSE = ["cause", "messages", "clients", "first_seen", "last_seen", "why", "advice"];
// A line for a terminal that shows the packet of a loss.
function tshark(row) {
  const ends = /^(.*):(\d+)-(.*):(\d+)@/.exec(row.connection ?? "");
  const id = row.packet_id ? ` && mqtt.msgid == ${row.packet_id}` : "";
  const file = "'" + row.capture.replace(/'/g, "'\\''") + "'";
  return ends ? `tshark -r ${file} -d tcp.port==${ends[4]},mqtt -Y "tcp.port == ${ends[2]} && tcp.port == ${ends[4]}${id}"` : "";
}
function openLoss(row) {
  const names = ["connection", "packet_id", "capture", "offset", "first_sequence", "last_sequence", "boot", "kind", "cause", "evidence", "site"];
  open(byId("loss"), make("h3", shown(row.why)), names, (name) => row[name], make("code", shown(tshark(row))));
}

function order() {
  const count = data.findings["overtaking messages"] || 0;
  const text = count ? `No reading came out of order; the ${shown(count)} overtaking messages carry no numbers: see the examples above.` : "No reading came out of order.";
  if (!data.strips.length) byId("strips").append(make("p", text));
  data.strips.forEach((strip) => {
    const line = make("div", undefined, "strip");
    if (strip.before) line.append(make("span", "… "));
    strip.cells.forEach(([label, kind]) => line.append(make("b", label, "cell " + kind)));
    byId("strips").append(make("div", `${shown(strip.client_id)}: ${shown(strip.topic)}, QoS ${strip.qos}`, "name"), line);
  });
}
function broken() {
  sortable("violations", data.violations.map((row) => ({ ...row, statement: data.statements[row.requirement] || "" })), null, "none");
  data.examples.forEach((example) => {
    const box = make("details");
    const text = `${example.requirement}  ${example.ts}  ${shown(example.client_id)} (${example.by}): ${shown(example.detail)}`;
    box.append(make("summary", text), make("p", data.statements[example.requirement] || ""));
    if (example.why) box.append(make("p", `${shown(example.sure)}: ${shown(example.why)}`));
    const place = example.capture ? `${shown(example.capture)}, byte ${shown(example.offset)}` : "";
    box.append(make("p", `${shown(example.connection)}  ${place}`));
    const around = example.around || [];
    if (around.length) {
      const columns = Object.keys(around[0]).filter((name) => name !== "number"), table = make("table");
      fill(table, columns, picked(around, columns));
      around.forEach((packet, at) => { if (packet.number === example.number) table.rows[at + 1].className = "this"; });
      box.append(table);
    }
    byId("examples").append(box);
  });
}

// Steps over time, each series scaled to the largest of all.
const UNITS = { lossplot: "messages", latency: "ms, logarithmic", traffic: "packets, readings", connects: "connects" };
const SERIES = { lossplot: { losses: "--bad", violations: "--late" }, latency: { p50: "--again", p95: "--twice", max: "--bad" },
  traffic: { packets: "--again", readings: "--good" }, connects: { connections: "--again" } };
const LABELS = { losses: "lost messages" };
function svg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  if (text !== undefined) node.textContent = text;
  return node;
}
const clock = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);
function chart(id) {
  const series = SERIES[id], moments = data.moments, box = byId(id);
  const values = moments.flatMap((one) => Object.keys(series).map((name) => one[name] || 0));
  const most = Math.max(0, ...values);
  if (!most) { box.replaceChildren(make("p", "none")); return; }
  const first = moments[0].at, last = moments[moments.length - 1].at + data.step_s;
  const wide = 1000, high = 130, xAt = (at) => (at - first) / (last - first) * wide, isLevel = id === "latency";
  // Latencies differ by powers of ten: their height is the logarithm.
  const part = (value) => isLevel ? Math.log(1 + value) / Math.log(1 + most) : value / most, yAt = (value) => high - part(value) * (high - 14);
  const draw = svg("svg", { viewBox: `0 0 ${wide} 150`, preserveAspectRatio: "none", role: "img" });
  draw.append(svg("line", { x1: 0, x2: wide, y1: high, y2: high }), svg("line", { x1: 0, x2: wide, y1: yAt(most), y2: yAt(most) }));
  const key = make("p", `${clock(first)} to ${clock(last)}, steps of ${shown(data.step_s)} s, largest ${shown(most)}: `, "key");
  Object.entries(series).forEach(([name, color]) => {
    moments.forEach((one) => {
      const value = one[name];
      if (value === undefined || (!isLevel && !value)) return;
      const left = xAt(one.at), width = Math.max(1.5, xAt(one.at + data.step_s) - left - .5);
      const top = yAt(value), tall = isLevel ? 2.5 : Math.max(2, high - top);
      const mark = svg("rect", { x: left, y: isLevel ? top - 1 : high - tall, width, height: tall, fill: `var(${color})`, opacity: isLevel ? 1 : .75 });
      mark.append(svg("title", {}, `${clock(one.at)}  ${LABELS[name] || name}: ${shown(value)}`));
      draw.append(mark);
    });
    const sample = make("b", "■ ");
    sample.style.color = `var(${color})`;
    key.append(sample, (LABELS[name] || name) + "  ");
  });
  const plot = make("div", null, "plot"), y = make("div", null, "y"), under = make("div", null, "x");
  y.append(make("span", `${shown(most)} ${UNITS[id]}`), make("span", "0"));
  [first, (first + last) / 2, last].forEach((at) => under.append(make("span", clock(at))));
  plot.append(y, draw);
  box.replaceChildren(plot, under, key);
}

const root = document.documentElement;
root.classList.add(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
byId("theme").addEventListener("click", () => { root.classList.toggle("dark"); root.classList.toggle("light"); });
summary();
if (data.since) {
  byId("changes").textContent = Object.entries(data.since.counts).map(([name, count]) => `${shown(count)} ${name}`).join(", ");
  sortable("changed", data.since.rows, null, "no device is otherwise than before");
} else byId("since").remove();
sortable("causes", data.causes, [...SITE, ...CAUSE], "none");
const named_so = (row) => ({ ...row, "published by": row.published_by, "did not arrive at": row.client_id });
sortable("losses", data.losses.map(named_so), [...SITE, "ts", "until", "published by", "topic", "did not arrive at", "messages", "qos", "sure", "why"], "none", openLoss);
if (!data.losses.every(isCounted)) byId("losses").closest(".scroll").before(make("p", "QoS 0 may get lost: it is told here and not counted.", "more"));
if (data.unknown.length) sortable("unknowable", data.unknown, [...SITE, "ts", "first_seen", "finding", "client_id", "topic", "messages", "detail", "evidence", "why"], "none");
else byId("unknown").remove();
sortable("findings", data.troubles, [...SITE, ...TROUBLE], "none");
broken(); order();
Object.keys(SERIES).forEach(chart);
sortable("firmware", data.groups.firmware); sortable("site", data.groups.site); sortable("captures", data.files);
export const ready = devices().then(() => { root.dataset.ready = "yes"; });
