"use strict";
const byId = (name) => document.getElementById(name);
const token = byId("token");
token.value = sessionStorage.getItem("token") || "";

async function ask(op, fields) {
  const answer = await fetch("/v1/" + op, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: "Bearer " + token.value },
    body: JSON.stringify(fields),
  });
  return answer.json();
}

function fill(list, values) {
  list.replaceChildren();
  for (const [name, value] of Object.entries(values)) {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = String(value);
    list.append(term, text);
  }
}

function draw(levels) {
  const most = Math.max(1, ...levels);
  byId("levels").replaceChildren(...levels.map((count, level) => {
    const row = document.createElement("div"), bar = document.createElement("progress");
    const name = document.createElement("span"), text = document.createElement("span");
    row.className = "row";
    bar.max = most;
    bar.value = count;
    name.textContent = level;
    text.textContent = count;
    row.append(name, bar, text);
    return row;
  }));
}

const milliseconds = (seconds) => seconds === null ? "–" : (seconds * 1e3).toFixed(3) + " ms";

function duration(seconds) {
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours) return hours + " h " + minutes % 60 + " min";
  return minutes ? minutes + " min" : seconds.toFixed(0) + " s";
}

/* What is served, in words of those who run the service. */
function about(graph) {
  const engine = graph.engine || {}, lines = {
    folder: graph.store, vertices: graph.vertices,
    edges: graph.edges + (graph.directed ? ", directed" : ""),
    processes: graph.ranks, "search program": engine.engine,
  };
  if (engine.threads) lines["threads a process"] = engine.threads;
  if (engine.mode === "stepwise") lines["a search runs"] = "level by level";
  if (engine.exchange && engine.exchange !== "none") lines["processes exchange data by"] = engine.exchange;
  return lines;
}

const where = "It is in the file that --token-file named when the service was started; " +
  "cat FILE shows it.";
function helpFor(code) {
  if (code === "no answer") return "The service does not answer. It may have ended.";
  if (code !== "unauthorized") return "";
  if (token.value) return "This is not the token of the service. " + where;
  return "Paste the token of the service into the field above and press Enter. " + where;
}

function show(stats) {
  const state = byId("state"), code = stats.ok ? "" : stats.error.code;
  state.textContent = stats.ok ? stats.state : code;
  state.className = "state " + (stats.ok ? stats.state : "refused");
  byId("help").textContent = helpFor(code);
  byId("help").hidden = !helpFor(code);
  if (stats.ok) byId("content").hidden = false;
  if (code === "unauthorized") byId("content").hidden = true;
  if (!stats.ok) return;
  fill(byId("graph"), about(stats.graph));
  fill(byId("rates"), {
    searches: stats.searches, "searches a second": stats.rate.toFixed(1),
    "a search takes": milliseconds(stats.search.p50) + " (99 % at most " + milliseconds(stats.search.p99) + ")",
    "a request waits": milliseconds(stats.queue_wait.p50), "requests waiting": stats.queue,
    "running for": duration(stats.uptime),
  });
  if (stats.last) draw(stats.last.levels);
}

async function refresh() {
  try {
    show(await ask("stats", {}));
  } catch (error) {
    show({ ok: false, error: { code: "no answer" } });
  }
}

/* An id that is no number, or a long one, goes as text. */
function vertex(text) {
  return /^(0|-?[1-9]\d{0,14})$/.test(text.trim()) ? Number(text) : text.trim();
}

byId("query").addEventListener("submit", async (event) => {
  event.preventDefault();
  const op = byId("op").value, fields = { source: vertex(byId("source").value) };
  const targets = byId("targets").value.split(",").map(vertex);
  if (op === "bfs") fields.result = "summary";
  else if (op === "path") fields.target = targets[0];
  else fields.targets = targets;
  byId("answer").textContent = JSON.stringify(await ask(op, fields), null, 1);
  await refresh();
});
token.addEventListener("change", () => {
  sessionStorage.setItem("token", token.value);
  refresh();
});
refresh();
setInterval(refresh, 2000);
