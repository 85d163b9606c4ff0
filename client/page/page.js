"use strict";
// Text of the job goes in as text, never as markup. What has focus or is scrolled stays where it is: rows are kept by their content.
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
function el(tag, props, ...kids) {
  const e = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const k in props || {}) {
    if (k === "text") e.textContent = props[k];
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), props[k]);
    else if (props[k] != null && props[k] !== "") e.setAttribute(k, props[k]);
  }
  e.append(...kids.filter(x => x != null));
  return e;
}
const bold = text => el("b", { text });
// Makes the children of `parent` those of `items`; an item whose key was there keeps its element.
function fill(parent, items, keyOf, make) {
  const old = parent.keyed || new Map(), now = new Map();
  let at = parent.firstChild;
  for (const item of items) {
    let key = keyOf(item);
    while (now.has(key)) key += "'";
    const e = old.get(key) || make(item);
    now.set(key, e);
    if (e === at) at = at.nextSibling;
    else parent.insertBefore(e, at);
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
  parent.keyed = now;
}
function say(e, ...parts) {
  const key = parts.map(p => p == null ? "" : p.nodeType ? p.outerHTML : p).join("\0");
  if (e.said !== key) { e.said = key; e.replaceChildren(...parts.filter(p => p != null && p !== "")); }
}
const number = new Intl.NumberFormat("en");
const num = x => x == null ? "–" : number.format(x);
const many = (n, one, more) => num(n) + " " + (n === 1 ? one : more || one + "s");
function dur(s) {
  if (s == null) return "–";
  if (s < 0.0005) return "< 1 ms";
  if (s < 0.9995) return Math.round(s * 1e3) + " ms";
  if (s < 59.95) return s.toFixed(s < 9.995 ? 2 : 1) + " s";
  const whole = Math.round(s), m = Math.floor(whole / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  return d ? d + " d " + h % 24 + " h" : h ? h + " h " + m % 60 + " min" : m + " min " + whole % 60 + " s";
}
const two = n => String(n).padStart(2, "0");
const clock = t => { const d = new Date(t * 1e3); return two(d.getUTCHours()) + ":" + two(d.getUTCMinutes()) + ":" + two(d.getUTCSeconds()); };
const day = t => new Date(t * 1e3).toISOString().slice(0, 10);
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part / whole > .9995 && part < whole ? 2 : 1) + " %" : "–";
const GOOD = new Set(["running", "training"]);
const CLASS = { running: "good", training: "good", starting: "start", joining: "start", waiting: "wait", stopping: "recover", recovering: "recover", ending: "wait", ended: "wait", torchrun: "wait", left: "wait", lost: "fail", hanging: "fail" };
const CAUSE = { worker_failed: "worker failed", node_lost: "node lost", node_left: "node left", scale_up: "more nodes" };
const cause = c => c == null ? "restart" : CAUSE[c] || c;
// Shapes as well as colours, for those who do not tell them apart.
function mark(kind) {
  const s = el("svg:svg", { viewBox: "0 0 12 12", class: "dot", "aria-hidden": "true" });
  const path = (d, c) => el("svg:path", { d, class: c }), circle = (r, c) => el("svg:circle", { cx: 6, cy: 6, r, class: c });
  s.append(kind === "lost" || kind === "error" || kind === "failed" ? path("M2 2L10 10M10 2L2 10", "s-fail")
    : kind === "warning" ? path("M6 1L11 11H1Z", "f-slow")
    : kind === "starting" || kind === "joining" ? path("M6 1L11 11H1Z", "f-start")
    : kind === "recovering" || kind === "stopping" ? path("M6 1L11 6L6 11L1 6Z", "f-recover")
    : kind === "failure" ? path("M1 2H11L6 11Z", "f-fail")
    : kind === "left" || kind === "ended" || kind === "ending" ? circle(4, "s-wait")
    : kind === "waiting" || kind === "info" ? circle(3, "f-wait")
    : el("svg:rect", { x: 1, y: 1, width: 10, height: 10, rx: 1.5, class: "f-" + (CLASS[kind] || kind) }));
  return s;
}
// As Slurm writes lists of hosts: gpu-n[000-051,053].
function ranges(names) {
  const by = new Map();
  for (const name of names) {
    const m = /^(.*?)(\d{1,15})$/.exec(name), key = m ? m[1] + "\0" + m[2].length : name + "\0x";
    if (!by.has(key)) by.set(key, []);
    if (m) by.get(key).push(m[2]);
  }
  const out = [];
  for (const [key, list] of by) {
    const head = key.slice(0, key.lastIndexOf("\0"));
    if (!list.length) { out.push(head); continue; }
    list.sort((a, b) => a - b);
    const parts = [];
    for (let i = 0, j; i < list.length; i = j) {
      for (j = i + 1; j < list.length && +list[j] - +list[j - 1] <= 1; j++);
      parts.push(list[i] + (j - i > 1 ? "-" + list[j - 1] : ""));
    }
    out.push(parts.length === 1 && !parts[0].includes("-") ? head + parts[0] : head + "[" + parts.join(",") + "]");
  }
  return out.join(",");
}
const cut = (text, most) => text.length > most ? text.slice(0, most) + "…" : text;

let D = null, S, J, nodes = [], view = "state", span = "all", chosen = "", cols = 1, cell = 1;
function take(data) {
  D = data; S = D.status; J = S.job;
  const n = S.nodes || { name: [] };
  nodes = n.name.map((name, i) => ({ name, rank: n.rank[i], first: n.first_rank[i], workers: n.workers[i], state: n.state[i], step: n.step[i], rate: n.rate[i], failed: n.failed_first[i] || 0, spares: n.spares[i], said: n.said[i] }));
  nodes.sort((a, b) => (a.rank == null || a.rank < 0 ? 1e9 : a.rank) - (b.rank == null || b.rank < 0 ? 1e9 : b.rank) || (a.name < b.name ? -1 : 1));
}
const isSpare = d => d.rank == null && d.state === "waiting";
const isOver = () => J.state === "ended";
const isOdd = d => !(GOOD.has(d.state) || isSpare(d) || (isOver() && (d.state === "ended" || d.state === "left"))) || (view === "failures" && d.failed > 0);
const now = () => S.seen.at, name = () => J.id == null || J.id === "" ? "a job" : J.id;
const took = r => Object.values(r.phases).reduce((sum, p) => sum + p.took, 0);
const failed = r => (r.rank != null ? "rank " + num(r.rank) + (r.node ? " on " + r.node : "") : r.node || cause(r.cause)) + (r.what ? ": " + r.what : r.exit != null ? (r.exit < 0 ? ": signal " + -r.exit : ": exit code " + r.exit) : "");

function head() {
  const kind = isOver() ? (J.result === "succeeded" ? "good" : "failed") : J.state, word = isOver() && J.result ? J.result : J.state;
  say($("job"), name());
  say($("state"), mark(kind), word);
  say($("where"), [J.round == null ? null : "round " + num(J.round), J.nodes.here == null ? null : many(J.nodes.here, "node"), J.workers == null ? null : many(J.workers, "worker"), J.began == null ? null : "for " + dur(S.account.wall)].filter(x => x).join(" · "));
  document.title = name() + ": " + word;
  const parts = [], put = (...x) => parts.push(...x), by = new Map();
  for (const d of nodes) if (!by.has(d.state)) by.set(d.state, [d]); else by.get(d.state).push(d);
  const runs = nodes.filter(d => GOOD.has(d.state)).length, verb = J.state === "training" ? "train" : "run";
  if (isOver()) {
    put(bold(J.result === "succeeded" ? "All workers have succeeded" : J.result === "stopped" ? "The job was stopped" : "The job has failed"), " after " + dur(S.account.wall) + ".");
  } else {
    put(bold(num(runs) + " of " + many(J.nodes.here == null ? nodes.length : J.nodes.here, "node") + " " + verb + (runs === 1 ? "s" : "")), S.progress.step == null ? "." : ", at step " + num(S.progress.step) + ".");
    const others = [...by].filter(([s]) => !GOOD.has(s)).map(([s, l]) => num(l.length) + (l.length === 1 ? " is " : " are ") + s + ": " + cut(ranges(l.map(d => d.name)), 120));
    if (others.length) put(" " + others.join("; ") + ".");
  }
  const r = S.recoveries[S.recoveries.length - 1];
  if (r) {
    put(isOver() ? " The last restart began at " + clock(r.at) + " UTC: " : " The last restart began " + dur(now() - r.at) + " ago: ", bold(cut(failed(r), 240)), ". ");
    if (r.over) put("All ran again after ", bold(dur(r.took == null ? took(r) : r.took)), r.redone == null ? "." : " and did " + many(r.redone, "step") + " again.");
    else put(isOver() ? "The job has ended instead of a restart." : "It is not over.");
    const d = nodes.find(x => x.name === r.node);
    if (d && d.failed > 1) put(" " + d.name + " has failed first " + d.failed + " times.");
  }
  if (S.seen.complete === false) put(" Only " + (S.seen.nodes.length ? cut(ranges(S.seen.nodes), 120) : "some nodes") + " could say this" + (S.seen.asked ? ", of " + many(S.seen.asked, "node") : "") + ".");
  say($("story"), ...parts);
}
function tiles() {
  const a = S.account, kept = a.training_kept, good = kept == null ? a.running : kept;
  const lost = a.wall - good, u = J.restarts.used, spares = nodes.reduce((n, d) => n + (d.spares || 0), 0), waiting = nodes.filter(isSpare).length;
  const recent = S.recoveries.filter(r => now() - r.at < 3600).length, worst = nodes.reduce((m, d) => d.failed > (m ? m.failed : 0) ? d : m, null), slow = S.progress.slowest;
  const list = [
    [kept == null ? "Running" : "Goodput", percent(good, a.wall), dur(lost) + " not, of " + dur(a.wall)],
    ["Step", num(S.progress.step), S.progress.rate == null ? "no steps are told" : S.progress.rate.toPrecision(3) + " a second"],
    ["Restarts used", u == null ? "–" : num(u) + (J.restarts.max == null ? "" : " of " + num(J.restarts.max)), recent ? num(recent) + " in the last hour" : "none in the last hour"],
    slow ? ["Slowest rank", num(slow.rank), "on " + slow.node] : ["Fails first", worst ? worst.name : "no node", worst ? many(worst.failed, "time") : "no worker has failed"],
    ["Spares", num(spares), (waiting ? many(waiting, "node") + " wait; " : "") + spares === 1 ? "standby worker ready" : "standby workers ready"]];
  fill($("tiles"), list, x => x.join("\0"), x => el("div", {}, el("dt", { text: x[0] }), el("dd", { class: "big", text: x[1] }), el("dd", { class: "more", text: x[2] })));
}
function timeline() {
  const box = $("time"), W = Math.max(300, Math.round(box.clientWidth || 1200)), rated = D.rates.length > 1;
  const states = D.states, last = S.recoveries[S.recoveries.length - 1], until = isOver() && states.length ? Math.max(states[states.length - 1][0], J.since || 0) : now();
  let from = J.began, to = until;
  if (span === "hour") from = Math.max(from, to - 3600);
  if (span === "last" && last) { const length = Math.max(took(last), .01); from = Math.max(J.began, last.at - length / 4); to = Math.min(until, last.at + length * 1.25); }
  if (from == null || !(to > from)) { fill(box, ["none"], x => x, () => el("p", { class: "soft", text: "Nothing has happened yet." })); return; }
  const base = rated ? 92 : 26, H = base + 46, x = t => Math.max(0, Math.min(W, (t - from) / (to - from) * W)), key = [W, span, from, to, states.length, D.rates.length, S.recoveries.length].join();
  const draw = () => {
    const s = el("svg:svg", { viewBox: "0 0 " + W + " " + H, height: H, role: "img", "aria-label": "What the job did from " + clock(from) + " to " + clock(to) + "; the tables of recoveries and of time say the same" });
    if (rated) {
      const rates = D.rates.filter(r => r[0] >= from && r[0] <= to), top = rates.reduce((m, r) => Math.max(m, r[2]), 0) * 1.1 || 1, y = v => base - 6 - v / top * (base - 34);
      let d = "";
      for (const r of rates) d += (d ? "L" : "M") + x(r[0]).toFixed(1) + " " + y(r[2]).toFixed(1);
      if (d) s.append(el("svg:path", { class: "under", d: d + "L" + x(rates[rates.length - 1][0]).toFixed(1) + " " + (base - 6) + "L" + x(rates[0][0]).toFixed(1) + " " + (base - 6) + "Z" }), el("svg:path", { class: "rate", d }));
      s.append(el("svg:text", { x: 0, y: 10, text: "steps a second, at most " + (top / 1.1).toPrecision(3) }));
    }
    const bars = [];
    for (let i = 0; i < states.length; i++) {
      const a = states[i][0], b = i + 1 < states.length ? states[i + 1][0] : until, kind = states[i][1];
      if (kind === "ended" || b < from || a > to) continue;
      const old = bars[bars.length - 1], left = x(a), width = Math.max(x(b) - left, GOOD.has(kind) ? 0 : 3);
      if (old && old.kind === kind && left - old.right < 1) { old.right = Math.max(old.right, left + width); old.length += b - a; continue; }
      bars.push({ kind, left, right: left + width, length: b - a });
    }
    bars.sort((a, b) => GOOD.has(b.kind) - GOOD.has(a.kind));
    for (const b of bars.slice(0, 700)) s.append(el("svg:rect", { x: b.left.toFixed(1), y: base, width: Math.min(b.right, W) - Math.min(b.left, W - 3), height: 22, class: "f-" + CLASS[b.kind] }, el("svg:title", { text: b.kind + ", " + dur(b.length) })));
    let free = -1e9;
    for (const r of S.recoveries) {
      if (r.at < from || r.at > to) continue;
      const at = x(r.at), word = cause(r.cause), length = word.length * 6.5 + 18;
      s.append(el("svg:path", { class: "f-fail", d: "M" + (at - 5) + " " + (base - 17) + "h10l-5 9z" }, el("svg:title", { text: clock(r.at) + " " + word })), el("svg:path", { class: "mark", d: "M" + at + " " + (base - 8) + "V" + (base + 22) }));
      if (at > free) { const flip = at + length > W; s.append(el("svg:text", { x: flip ? at - 9 : at + 9, y: base - 9, "text-anchor": flip ? "end" : "start", text: word })); free = at + length; }
    }
    const ticks = Math.max(1, Math.min(7, Math.floor(W / 130)));
    for (let i = 0; i <= ticks; i++) { const t = from + (to - from) * i / ticks; s.append(el("svg:text", { x: W * i / ticks, y: base + 38, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle", text: to - from < 10 ? (i ? "+" + dur(t - from) : clock(t)) : clock(t) })); }
    return s;
  };
  fill(box, [key], k => k, draw);
  const there = [...new Set(states.map(s => s[1]))].filter(s => s !== "ended");
  fill($("legend"), [...there.map(s => [s, s]), ...(S.recoveries.length ? [["failure", "what ended a round"]] : []), ["", clock(from) === clock(to) ? day(from) : day(from) + ", UTC"]], x => x[1], x => el("li", {}, x[0] ? mark(x[0]) : null, x[1]));
}
const PHASES = ["noticed", "stopped", "agreed", "started", "training"];
const PHASE_CLASS = ["fail", "recover", "slow", "start", "good"];
function row(head, cells) { fill(head, [cells.join("\0")], k => k, () => el("tr", {}, ...cells.map(c => el("th", { scope: "col", class: c.startsWith(">") ? "n" : "", text: c.replace(">", "") })))); }
function recoveries() {
  const list = S.recoveries.slice(-50).reverse(), some = PHASES.filter(p => list.some(r => r.phases[p])), redone = list.some(r => r.redone != null);
  if (!list.length) { fill($("rec-head"), [], x => x); fill($("rec"), [0], String, () => el("tr", {}, el("td", { class: "soft", text: "There was none." }))); $("rec-note").textContent = ""; return; }
  row($("rec-head"), ["When (UTC)", "What happened first", "Phases", ...some.map(p => ">" + (p === "training" ? "training again" : p)), ">Took", ...(redone ? [">Steps done again"] : [])]);
  fill($("rec"), list, r => JSON.stringify([r, some, redone]), r => {
    const sum = took(r), most = Math.max(...some.map(p => r.phases[p] ? r.phases[p].took : 0)), s = el("svg:svg", { viewBox: "0 0 150 14", height: 14, preserveAspectRatio: "none", "aria-hidden": "true" });
    let at = 0;
    for (const p of some) if (r.phases[p] && sum > 0) { const w = r.phases[p].took / sum * 150; s.append(el("svg:rect", { x: at, y: 2, width: w, height: 11, class: "f-" + PHASE_CLASS[PHASES.indexOf(p)] })); at += w; }
    return el("tr", {}, el("td", { class: "when" }, clock(r.at)), el("td", { class: "what" }, bold(cause(r.cause)), ": " + failed(r)), el("td", { class: "phases" }, s),
      ...some.map(p => { const f = r.phases[p]; return el("td", { class: "n" + (f && f.took === most && most > 0 ? " top" : ""), title: f && f.last ? "last: " + f.last : "", text: f ? dur(f.took) : "–" }); }),
      el("td", { class: "n top", text: r.over ? dur(r.took == null ? sum : r.took) : isOver() ? "ended" : "goes on" }), redone ? el("td", { class: "n", text: num(r.redone) }) : null);
  });
  say($("rec-note"), S.recoveries.length > 50 ? "The last 50 of " + num(S.recoveries.length) + "." : "");
}
function paint() {
  const c = $("map"), W = c.clientWidth, n = nodes.length, dpr = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement), C = k => style.getPropertyValue("--" + k).trim();
  const label = W > 600 ? Math.min(150, 16 + 7.2 * Math.max(6, ...nodes.slice(0, 1).map(d => d.name.length))) : 0, room = Math.max(40, W - label);
  const size = n > 4000 ? 8 : n > 1000 ? 10 : n > 200 ? 12 : n > 48 ? 18 : 26, fit = Math.max(1, Math.floor(room / size));
  cols = fit >= 100 ? Math.floor(fit / 100) * 100 : fit >= 10 ? Math.floor(fit / 10) * 10 : fit;
  cell = Math.min(28, room / cols);
  const rows = Math.max(1, Math.ceil(n / cols)), H = Math.ceil(rows * cell) + 8;
  c.width = Math.round(W * dpr); c.height = Math.round(H * dpr);
  const g = c.getContext("2d");
  g.scale(dpr, dpr); g.clearRect(0, 0, W, H);
  const s = Math.max(2, cell - (cell > 12 ? 3 : cell > 6 ? 2 : 1)), X = i => label + i % cols * cell, Y = i => 4 + Math.floor(i / cols) * cell, q = $("find").value.trim().toLowerCase();
  const rate = nodes.map(d => d.rate).filter(r => r != null).sort((a, b) => a - b), median = rate[rate.length >> 1];
  const colour = k => C(CLASS[k] || "wait"), hit = d => !q || d.name.toLowerCase().includes(q) || (/^\d+$/.test(q) && d.first != null && d.first >= 0 && +q >= d.first && +q < d.first + d.workers);
  g.fillStyle = C("soft"); g.font = "11px ui-monospace,'DejaVu Sans Mono',monospace"; g.textBaseline = "middle";
  if (label) for (let r = 0, step = Math.max(1, Math.ceil(15 / cell)); r < rows; r += step) g.fillText(cut(nodes[r * cols] ? nodes[r * cols].name : "", 18), 0, Y(r * cols) + s / 2);
  const shape = (d, x, y, z) => {
    g.lineWidth = Math.max(1.5, z / 6);
    if (d.state === "lost") { g.strokeStyle = C("fail"); g.beginPath(); g.moveTo(x + 1, y + 1); g.lineTo(x + z - 1, y + z - 1); g.moveTo(x + z - 1, y + 1); g.lineTo(x + 1, y + z - 1); g.stroke(); return; }
    g.fillStyle = view === "failures" ? C(d.failed ? "fail" : "wait") : view === "speed" && d.rate != null && d.rate < median * .9 ? C("slow") : colour(d.state);
    if (isSpare(d) || d.state === "left" || d.state === "ended") { g.strokeStyle = isSpare(d) ? C("spare") : isOver() && J.result === "succeeded" ? C("good") : C("edge"); g.strokeRect(x + 1.5, y + 1.5, z - 3, z - 3); return; }
    g.beginPath();
    if (d.failed && view === "failures") { g.moveTo(x, y); g.lineTo(x + z, y); g.lineTo(x + z / 2, y + z); }
    else if (d.state === "starting" || d.state === "joining") { g.moveTo(x + z / 2, y); g.lineTo(x + z, y + z); g.lineTo(x, y + z); }
    else if (d.state === "stopping") { g.moveTo(x + z / 2, y); g.lineTo(x + z, y + z / 2); g.lineTo(x + z / 2, y + z); g.lineTo(x, y + z / 2); }
    else g.rect(x, y, z, z);
    g.fill();
  };
  nodes.forEach((d, i) => { if (!isOdd(d)) { g.globalAlpha = hit(d) ? 1 : .15; shape(d, X(i), Y(i), s); } });
  const z = Math.max(s, 11);
  nodes.forEach((d, i) => { if (isOdd(d)) { const x = X(i) + s / 2 - z / 2, y = Y(i) + s / 2 - z / 2; g.globalAlpha = 1; g.fillStyle = C("card"); g.fillRect(x - 1.5, y - 1.5, z + 3, z + 3); g.globalAlpha = hit(d) ? 1 : .25; shape(d, x, y, z); } });
  g.globalAlpha = 1;
  const i = nodes.findIndex(d => d.name === chosen);
  if (i >= 0) { const z = Math.max(s, 11) + 4; g.lineWidth = 2; g.strokeStyle = C("accent"); g.strokeRect(X(i) + s / 2 - z / 2, Y(i) + s / 2 - z / 2, z, z); }
  c.label = label;
  c.setAttribute("aria-label", "Map of " + many(n, "node") + ", one mark each; arrow keys walk through them");
}
function tell(name) {
  const d = nodes.find(x => x.name === name);
  if (!d) { say($("tip"), nodes.length ? "Choose a node by a click, or by the arrow keys." : ""); return; }
  say($("tip"), bold(d.name), ": " + [d.rank == null || d.rank < 0 ? null : "node " + d.rank, d.first == null || d.first < 0 || !d.workers ? null : d.workers === 1 ? "rank " + d.first : "ranks " + d.first + " to " + (d.first + d.workers - 1), isSpare(d) ? "waits as a spare" : d.state, d.step == null ? null : "step " + num(d.step),
    d.rate == null ? null : d.rate.toPrecision(3) + " steps a second", d.failed ? "failed first " + many(d.failed, "time") : null, d.said == null ? null : "said " + dur(Math.max(0, now() - d.said)) + " before this"].filter(x => x).join(", ") + " ", J.log_dir ? el("code", { text: J.log_dir }) : "");
}
function groups() {
  const by = new Map(), worth = d => (d.state === "lost" ? 9 : GOOD.has(d.state) ? 0 : isSpare(d) ? -2 : 5) + (d.failed ? 3 : 0);
  for (const d of nodes) { const note = d.failed ? "failed first " + many(d.failed, "time") : isSpare(d) ? "spare" : "", key = d.state + "\0" + note; if (!by.has(key)) by.set(key, { state: d.state, note, worth: worth(d), list: [] }); by.get(key).list.push(d); }
  const list = [...by.values()].sort((a, b) => b.worth - a.worth || a.list.length - b.list.length).slice(0, 64), stepped = nodes.some(d => d.step != null);
  row($("groups-head"), [">Nodes", "State", "Note", ...(stepped ? ["Steps"] : []), "Which"]);
  const made = list.map(x => { let lo = Infinity, hi = -1; for (const d of x.list) if (d.step != null) { lo = Math.min(lo, d.step); hi = Math.max(hi, d.step); } return [num(x.list.length), x.state, x.note, ...(stepped ? [hi < 0 ? "–" : lo === hi ? num(hi) : num(lo) + " – " + num(hi)] : []), cut(ranges(x.list.map(d => d.name)), 400)]; });
  fill($("groups"), made, x => x.join("\0"), x => el("tr", {}, ...x.map((v, i) => i === 1 ? el("td", {}, el("span", { class: "state" }, mark(v), v)) : el("td", { class: i === 0 ? "n" : i === x.length - 1 ? "mono" : "", text: v }))));
}
const SKIP = new Set(["schema", "seq", "time", "node", "kind", "severity", "round", "pid"]);
const WORDS = { worker_failed: "worker failed", node_lost: "the node is lost", node_left: "the node has left" };
const about = e => (WORDS[e.kind] || e.kind.replaceAll("_", " ")) + Object.keys(e).filter(k => !SKIP.has(k) && e[k] !== false).map(k => k === "text" || k === "what" || k === "reason" ? ": " + e[k] : ", " + k.replaceAll("_", " ") + (e[k] === true ? "" : " " + (typeof e[k] === "number" ? +e[k].toPrecision(6) : e[k]))).sort((a, b) => (a[0] === ":") - (b[0] === ":")).join("");
function events() {
  const q = $("filter").value.trim().toLowerCase(), list = [];
  let count = 0;
  for (let i = D.events.length - 1; i >= 0; i--) {
    const e = D.events[i], text = about(e);
    if (q && !(e.node + " " + e.kind + " " + text).toLowerCase().includes(q)) continue;
    if (count++ < 200) list.push([e, text]);
  }
  row($("log-head"), ["Time", "Node", "Event"]);
  fill($("log"), list, x => x[0].node + "\0" + x[0].seq + "\0" + x[0].time, ([e, text]) => el("tr", {}, el("td", { text: clock(e.time), title: new Date(e.time * 1e3).toISOString() }), el("td", { text: e.node }), el("td", {}, mark(e.severity), text)));
  say($("log-note"), count > 200 ? "The last 200 of " + num(count) + (q ? " that match." : ".") : count ? "" : q ? "None matches." : "There is none.");
}
function lost() {
  const a = S.account, kinds = [["good", a.training_kept == null ? "Running" : "Training, kept", a.training_kept == null ? a.running : a.training_kept], ["slow", "Work done again", a.redone], ...Object.entries(a.recovering).map(([c, s]) => ["recover", "Recovering: " + cause(c), s]), ["start", "Starting", a.starting], ["wait", "Waiting for nodes", a.waiting], ["fail", "Hanging", a.hanging], ["wait", "Ending", a.ending]].filter(k => k[2] > 0);
  row($("lost-head"), ["What", ">Time", ">Share"]);
  fill($("lost"), kinds, k => k.join("\0") + a.wall, k => el("tr", {}, el("td", {}, el("span", { class: "state" }, mark(k[0]), k[1])), el("td", { class: "n", text: dur(k[2]) }), el("td", { class: "n", text: percent(k[2], a.wall) })));
  fill($("share"), [JSON.stringify(kinds)], k => k, () => {
    const s = el("svg:svg", { viewBox: "0 0 400 20", height: 20, preserveAspectRatio: "none", "aria-hidden": "true" });
    let at = 0;
    for (const k of kinds) { const w = k[2] / a.wall * 400; s.append(el("svg:rect", { x: at, y: 0, width: w, height: 16, class: "f-" + k[0] })); at += w; }
    return s;
  });
  say($("lost-note"), num(+a.worker_hours.toFixed(2)) + " worker hours; " + num(+a.missing_worker_hours.toFixed(2)) + " were missing, against the largest world.");
}
function draw() {
  if (!D) return;
  const began = performance.now();
  head(); tiles(); timeline(); recoveries(); paint(); tell(chosen); groups(); events(); lost();
  say($("foot"), "Muster " + D.version + (S.seen.from === "host" && S.seen.node ? " · told by " + S.seen.node : S.seen.nodes.length ? " · told by " + cut(ranges(S.seen.nodes), 160) : "") + " · read only · the same is said by muster status and muster events");
  document.documentElement.dataset.drawn = (performance.now() - began).toFixed(0);
}
function choices(id, list, get, set) {
  for (const value of list) $(id).append(el("button", { type: "button", "aria-pressed": String(get() === value[0]), text: value[1], onclick: e => { set(value[0]); for (const b of $(id).children) b.setAttribute("aria-pressed", String(b === e.currentTarget)); draw(); } }));
}
choices("by", [["state", "state"], ["speed", "speed"], ["failures", "failures"]], () => view, v => { view = v; });
choices("spans", [["all", "all"], ["hour", "last hour"], ["last", "last recovery"]], () => span, v => { span = v; });
function at(e) { const r = $("map").getBoundingClientRect(), x = Math.floor((e.clientX - r.left - $("map").label) / cell), y = Math.floor((e.clientY - r.top - 4) / cell), d = x >= 0 && x < cols ? nodes[y * cols + x] : null; return d ? d.name : null; }
$("map").addEventListener("mousemove", e => tell(at(e) || chosen));
$("map").addEventListener("mouseleave", () => tell(chosen));
$("map").addEventListener("click", e => { chosen = at(e) || chosen; paint(); tell(chosen); });
$("map").addEventListener("keydown", e => {
  const d = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: cols, ArrowUp: -cols, Home: -1e9, End: 1e9 }[e.key];
  if (!d || e.ctrlKey || e.altKey || e.metaKey || !nodes.length) return;
  e.preventDefault();
  const i = nodes.findIndex(x => x.name === chosen);
  chosen = nodes[i < 0 ? (d === 1e9 ? nodes.length - 1 : 0) : Math.max(0, Math.min(nodes.length - 1, i + d))].name;
  paint(); tell(chosen);
});
$("find").addEventListener("input", () => {
  const q = $("find").value.trim().toLowerCase(), d = q && D && nodes.find(d => d.name.toLowerCase() === q || (/^\d+$/.test(q) && d.first >= 0 && d.first != null && +q >= d.first && +q < d.first + d.workers));
  if (d) chosen = d.name;
  if (D) { paint(); tell(chosen); }
});
$("filter").addEventListener("input", () => D && events());
let waiting = 0;
addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw); });
matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);
function live(words, bad) { say($("live"), words); $("live").classList.toggle("bad", !!bad); }
const inside = JSON.parse($("data").textContent);
if (inside) {
  take(inside); draw();
  live("report of " + day(now()) + " " + clock(now()) + " UTC");
} else {
  const key = location.hash.slice(1);
  let failures = 0;
  const ask = async () => {
    let wait = 2000;
    try {
      const answer = await fetch("v1/page", { headers: { Authorization: "Bearer " + key }, cache: "no-store" });
      if (answer.status === 401) { say($("story"), "This page has not the key. Open the whole address that muster dashboard has printed."); live("no key", true); return; }
      if (!answer.ok) throw new Error((await answer.text()).slice(0, 300));
      take(await answer.json()); draw(); failures = 0;
      live(D.live ? "live, " + clock(now()) + " UTC" : "the job is over");
      if (!D.live) wait = 10000;
    } catch (error) {
      failures++; wait = Math.min(30000, 2000 * failures);
      live("no answer from muster dashboard" + (D ? "; this was so at " + clock(now()) + " UTC" : ""), true);
    }
    setTimeout(next, wait);
  };
  const next = () => { if (document.hidden) document.addEventListener("visibilitychange", next, { once: true }); else ask(); };
  say($("story"), key ? "Asking the job …" : "This page has not the key. Open the whole address that muster dashboard has printed.");
  if (key) next(); else live("no key", true);
}
