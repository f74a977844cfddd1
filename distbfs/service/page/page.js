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
  const graph = stats.graph, engine = graph.engine || {};
  fill(byId("graph"), {
    store: graph.store, vertices: graph.n, "stored edges": graph.m, parts: graph.parts,
    ranks: graph.ranks, engine: engine.engine, mode: engine.mode, exchange: engine.exchange,
  });
  fill(byId("rates"), {
    searches: stats.searches, "searches a second": stats.rate.toFixed(1),
    "search, median": milliseconds(stats.search.p50), "search, p99": milliseconds(stats.search.p99),
    "wait, median": milliseconds(stats.queue_wait.p50), queue: stats.queue,
    "uptime, s": stats.uptime.toFixed(0),
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
