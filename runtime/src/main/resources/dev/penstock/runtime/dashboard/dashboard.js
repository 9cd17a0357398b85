// The page of one run. Everything that came from a run is put in as text, never as markup.

import { Gantt, duration } from "./gantt.js";

const [STEP, LOSS, NORM, RATE, SPEED, BUBBLE, IDEAL, PEAK] = [0, 1, 2, 3, 5, 6, 7, 9];
const SILENT_AFTER_MS = 30_000;
const CHART_HEIGHT = 190;
const byId = id => document.getElementById(id);
const finite = value => typeof value === "number" && Number.isFinite(value) ? value : null;

const run = { head: null, facts: null, columns: null, evaluations: [], happenings: [], program: null, picture: null,
  standing: null, files: [] };
const others = new Map(); // runs beside this one: name to { steps, losses }
const OTHER_COLORS = ["#009e73", "#cc79a7", "#e69f00", "#8c6bb1", "#56b4e9", "#7f7f7f"];
const gantt = new Gantt(byId("gantt"), byId("tip"));
const charts = [];

// ---- words -----------------------------------------------------------------------------------

function count(value) {
  if (finite(value) === null) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(2) + " B";
  if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (size >= 1e3) return Math.round(value).toLocaleString("en");
  return String(+value.toPrecision(5));
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (value >= 1024 && i < units.length - 1) { value /= 1024; i++; }
  return (i === 0 ? value : value.toFixed(1)) + " " + units[i];
}

function clock(seconds) {
  if (finite(seconds) === null || seconds < 0) return "–";
  const s = Math.round(seconds), pad = n => String(n).padStart(2, "0");
  return s >= 3600 ? `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`
    : `${Math.floor(s / 60)}:${pad(s % 60)}`;
}

const percent = share => finite(share) === null ? "–" : (100 * share).toFixed(1) + " %";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function pairs(list, entries) {
  list.replaceChildren(...entries.map(([term, value, className, title]) => {
    const pair = element("div", undefined, className);
    pair.append(element("dt", term), element("dd", value));
    if (title) pair.title = title;
    return pair;
  }));
}

// ---- header ----------------------------------------------------------------------------------

function showHead() {
  const head = run.head;
  if (!head) return;
  const silent = head.state === "running" && head.lastSign && Date.now() - head.lastSign > SILENT_AFTER_MS;
  const state = head.recovering ? "recovering" : silent ? "silent" : head.state;
  byId("name").textContent = head.name || "Penstock";
  document.title = `${head.name} ${head.step}/${head.lastStep} · Penstock`;
  byId("state").textContent = head.recovering ? head.health
    : silent ? `no sign of life for ${clock((Date.now() - head.lastSign) / 1e3)}` : state;
  byId("state").className = "badge " + state;
  byId("progress").max = Math.max(1, head.lastStep);
  byId("progress").value = head.step;
  byId("told").hidden = !head.told;
  byId("told").textContent = head.told;
  const last = column => run.columns?.[column].at(-1);
  const unwell = silent || head.health !== "good";
  pairs(byId("figures"), [
    ["loss", finite(head.loss) === null ? "–" : head.loss.toFixed(4), "lead"],
    ["validation loss", run.evaluations.length ? (+run.evaluations.at(-1)[1]).toFixed(4) : "–", "lead"],
    ["health", (unwell ? "▲ " : "● ") + (silent ? "silent" : head.health), unwell ? "warn" : "good",
      unwell ? byId("state").textContent : "no stall, no straggler, no failed or damaged checkpoint lately"],
    ["step", `${head.step} of ${head.lastStep}`],
    ["tokens per second", count(head.tokensPerSecond)],
    ["bubble (predicted)", `${percent(last(BUBBLE))} (${percent(last(IDEAL))})`],
    head.state === "running" ? ["time left", clock(head.etaSeconds)] : ["took", clock((head.lastSign - head.beganAt) / 1e3)],
  ]);
}

// ---- curves ----------------------------------------------------------------------------------

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** Distances of an axis' lines that are round numbers of KiB, MiB and so on. */
const BINARY = Array.from({ length: 50 }, (_, i) => 2 ** i);

/**
 * A chart that follows its data.
 *
 * @param series [label, colour or its name, "dots" | "faint"] of each curve
 * @param logarithmic whether it may have a logarithmic axis
 */
function chart(title, series, data, words = count, logarithmic = false) {
  const holder = element("div", undefined, "chart");
  holder.append(element("h3", title));
  byId("curves").append(holder);
  const color = name => name.startsWith("#") ? name : style(name);
  const faint = name => color(name) + "55";
  const axis = size => ({
    stroke: () => style("muted"), grid: { stroke: () => style("line"), width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif", size,
  });
  const said = (_, value) => value === null || value === undefined ? "" : words(value);
  const log = logarithmic && byId("logarithmic").checked;
  const plot = new uPlot({
    width: holder.clientWidth || 400, height: CHART_HEIGHT, cursor: { sync: { key: "run" } },
    scales: { x: { time: false }, y: log ? { distr: 3 } : {} },
    axes: [axis(28), { ...axis(58), ...(words === bytes && { incrs: BINARY }), values: (_, ticks) => ticks.map(tick => tick === null ? "" : words(tick)) }],
    legend: { markers: { width: 0, fill: (_, i) => series[i - 1][2] === "faint" ? faint(series[i - 1][1]) : color(series[i - 1][1]) } },
    series: [{ label: "\u00a0", value: (_, step) => step === null || step === undefined ? "" : "step " + step }, ...series.map(([label, name, kind]) => ({
      label, stroke: () => kind === "faint" ? faint(name) : color(name), width: kind === "dots" ? 0 : kind === "faint" ? 1 : 1.7, spanGaps: true,
      points: kind === "dots" ? { show: true, size: 7, fill: () => color(name), stroke: () => style("panel") } : { show: false },
      value: said,
    }))],
    hooks: { draw: [marks] },
  }, data(), holder);
  const picture = holder.querySelector(".u-wrap");
  picture.setAttribute("role", "img");
  const described = () => {
    const [steps, ...curves] = plot.data;
    const told = series.map(([label], i) => [label, curves[i].findLast(value => value !== null && value !== undefined)])
      .filter(([, value]) => value !== undefined).map(([label, value]) => `${label} ${words(value)}`);
    picture.setAttribute("aria-label", `${title} over ${steps.length} steps; last: ${told.join(", ") || "nothing yet"}`);
  };
  described();
  const seen = new ResizeObserver(() => {
    if (holder.clientWidth && holder.clientWidth !== plot.width) plot.setSize({ width: holder.clientWidth, height: CHART_HEIGHT });
  });
  seen.observe(holder);
  charts.push({ plot, update: () => { plot.setData(data()); described(); },
    remove: () => { seen.disconnect(); plot.destroy(); holder.remove(); } });
}

/** An exponential mean that starts without a bias; gaps stay. */
function smoothed(values) {
  const weight = Number(byId("smoothing").value);
  let mean = 0, sum = 0;
  return values.map(value => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return mean / sum;
  });
}

/** A line where the run came back from something. */
function marks(plot) {
  const c = plot.ctx;
  c.save();
  c.strokeStyle = style("second");
  c.setLineDash([4, 4]);
  for (const each of run.happenings) {
    if (each.kind !== "recovery" && each.kind !== "resumed") continue;
    const x = Math.round(plot.valToPos(each.step, "x", true)) + .5;
    if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
    c.beginPath();
    c.moveTo(x, plot.bbox.top);
    c.lineTo(x, plot.bbox.top + plot.bbox.height);
    c.stroke();
  }
  c.restore();
}

function makeCharts() {
  const columns = (...wanted) => () => wanted.map(column => run.columns[column]);
  const noisy = column => () => [run.columns[STEP], smoothed(run.columns[column]), run.columns[column]];
  const besides = [...others].map(([name], i) => [name, OTHER_COLORS[i % OTHER_COLORS.length]]);
  chart("loss", [["training", "accent"], ["each step", "accent", "faint"], ["validation", "second", "dots"], ...besides], () => {
    const known = run.evaluations.map(([step, loss]) => [step, finite(loss)]);
    return uPlot.join([
      [run.columns[STEP], smoothed(run.columns[LOSS]), run.columns[LOSS]],
      [known.map(each => each[0]), known.map(each => each[1])],
      ...[...others.values()].map(({ steps, losses }) => [steps, smoothed(losses.map(finite))]),
    ]);
  }, count, true);
  chart("tokens per second", [["smoothed", "accent"], ["each step", "accent", "faint"]], noisy(SPEED));
  chart("bubble: share of the ranks' time without forward or backward",
    [["measured", "accent"], ["each step", "accent", "faint"], ["predicted", "second"]],
    () => [run.columns[STEP], smoothed(run.columns[BUBBLE]), run.columns[BUBBLE], smoothed(run.columns[IDEAL])],
    share => +(100 * share).toFixed(1) + " %");
  chart("gradient norm", [["smoothed", "accent"], ["each step", "accent", "faint"]], noisy(NORM), count, true);
  chart("learning rate", [["rate", "accent"]], columns(STEP, RATE), value => String(+value.toPrecision(3)));
  chart("peak memory of the fullest rank", [["bytes", "accent"]], columns(STEP, PEAK), bytes);
}

function showCurves() {
  if (!charts.length) makeCharts();
  else charts.forEach(each => each.update());
}

function remakeCharts() {
  charts.splice(0).forEach(each => each.remove());
  if (run.columns) makeCharts();
}

/** Runs of the same folder, to be drawn beside this one. */
async function offerOthers() {
  const names = await get("api/runs") ?? [];
  byId("beside").hidden = !names.length;
  const option = (value, text) => Object.assign(element("option", text), { value });
  byId("other").replaceChildren(option("", "another run .."), ...names.map(name => option(name, name)), option("-", "none"));
}

async function drawBeside(name) {
  if (name === "-") others.clear();
  else if (others.has(name)) others.delete(name);
  else if (name) {
    const curve = await get("api/loss?run=" + encodeURIComponent(name));
    if (curve) others.set(name, curve);
  }
  byId("other").value = "";
  byId("others").hidden = !others.size;
  byId("others").textContent = "Beside it: " + [...others.keys()].join(", ") + ". Choose one again to take it away.";
  remakeCharts();
}

// ---- ranks -----------------------------------------------------------------------------------

const SHARES = [["forward", "forward"], ["backward", "backward"], ["reduce", "gathers and reductions"],
  ["send", "sending, blocked by the receiver"], ["receive", "waiting for a neighbour"], ["idle", "idle"]];

function showRanks() {
  const { head, facts } = run, micros = head.rankMicros;
  const ranks = Math.max(head.peakBytes.length, facts?.plannedBytes.length ?? 0);
  const lanes = (micros.forward ?? []).length;
  const table = byId("ranks");
  const top = element("tr");
  const wired = facts?.microBatches.length > 0;
  for (const title of ["rank", ...(wired ? ["micro-batches"] : []), "last step", "busy", "waiting", "peak / planned memory", "device"]) {
    top.append(element("th", title));
  }
  const rows = [top];
  for (let rank = 0; rank < Math.max(ranks, lanes); rank++) {
    const row = element("tr");
    const place = run.picture?.measured[rank]?.place ?? "rank " + rank;
    row.append(element("td", place));
    if (wired) {
      const done = facts.microBatches[rank] ?? [];
      row.append(facts.absent.includes(rank) ? element("td", "absent", "told")
        : element("td", done.length ? `${done.length}: ${ranges(done)}` : "none"));
    }
    const spans = SHARES.map(([label]) => micros[label]?.[rank] ?? 0);
    const all = spans.reduce((sum, value) => sum + value, 0);
    const cell = element("td"), stack = element("div", undefined, "stack");
    SHARES.forEach(([label, words], i) => {
      const part = element("span");
      part.style.width = all ? 100 * spans[i] / all + "%" : "0";
      part.style.background = `var(--${label})`;
      part.title = `${words}: ${duration(spans[i])}`;
      stack.append(part);
    });
    cell.append(stack);
    row.append(cell,
      element("td", all ? percent((spans[0] + spans[1]) / all) : "–"),
      element("td", all ? percent(spans[4] / all) : "–"));
    row.append(memory(head.peakBytes[rank], facts?.plannedBytes[rank]), element("td", facts?.devices[rank] ?? "–"));
    rows.push(row);
  }
  table.replaceChildren(...rows);
}

/** Rising numbers, such as 0-3, 6. */
function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([from, to]) => from === to ? from : from + "-" + to).join(", ");
}

function memory(peak, planned) {
  const cell = element("td");
  if (peak === undefined) return cell;
  cell.append(element("span", bytes(peak) + (planned ? ` of ${bytes(planned)}` : "")));
  if (planned) {
    const meter = element("div", undefined, "meter"), fill = element("span");
    fill.style.width = Math.min(100, 100 * peak / planned) + "%";
    meter.append(fill);
    meter.title = percent(peak / planned);
    cell.append(meter);
  }
  return cell;
}

// ---- stages, members, links, checkpoints -----------------------------------------------------

/** Rows of cells; a cell is text or an element. */
function table(id, titles, rows, none) {
  const line = (cells, name) => {
    const row = element("tr");
    for (const cell of cells) {
      if (cell instanceof Node) {
        const holder = element(name);
        holder.append(cell);
        row.append(holder);
      } else row.append(element(name, cell));
    }
    return row;
  };
  byId(id).replaceChildren(...(rows.length ? [line(titles, "th"), ...rows.map(row => line(row, "td"))] : [line([none], "td")]));
}

const WAITS = { receive: "input", send: "blocked", gather: "shared", release: "shared", reduce: "shared" };

/** Where the time of each stage went in the step that is shown, over all ranks that hold it. */
/** What the picture shows, for those who do not see it; made when somebody opens it. */
function showLanes() {
  const { picture, program } = run;
  if (!picture || !program || !byId("lanes-fold").open) return;
  const first = Math.min(...picture.measured.filter(lane => lane.starts.length).map(lane => lane.starts[0]));
  table("lanes", ["rank", "first op begins", "last op ends", "optimizer", "ops in their order, each with what it took"],
    picture.measured.map(lane => {
      const ops = program.programs[lane.program];
      const known = ops && ops.kinds.length === lane.starts.length && lane.starts.length;
      return [lane.place,
        known ? duration(lane.starts[0] - first) : "–", known ? duration(lane.ends.at(-1) - first) : "–",
        lane.update.length ? duration(lane.update[1] - lane.update[0]) : "–",
        known ? ops.names.map((name, i) => `${name} ${duration(lane.ends[i] - lane.starts[i])}`).join(", ") : "–"];
    }), "no step sampled yet");
}

function showStages() {
  const { picture, program } = run;
  if (!picture || !program) return;
  const stages = new Map();
  let start = Infinity, end = -Infinity;
  for (const lane of picture.measured) {
    const ops = program.programs[lane.program];
    if (!ops || ops.kinds.length !== lane.starts.length) continue;
    lane.starts.forEach((from, i) => {
      start = Math.min(start, from);
      end = Math.max(end, lane.ends[i]);
      let stage = stages.get(ops.stages[i]);
      if (!stage) stages.set(ops.stages[i], stage = { ranks: new Set(), busy: 0, input: 0, blocked: 0, shared: 0 });
      stage.ranks.add(lane.rank);
      stage[WAITS[program.kinds[ops.kinds[i]].label] ?? "busy"] += lane.ends[i] - from;
    });
  }
  const rows = [...stages].sort(([a], [b]) => a - b).map(([number, stage]) => {
    const share = micros => percent(micros / (end - start) / stage.ranks.size);
    return [String(number), [...stage.ranks].join(", "), share(stage.busy), share(stage.input), share(stage.blocked), share(stage.shared)];
  });
  table("stages", ["stage", "ranks", "busy", "waiting for input", "blocked by the receiver", "gathers and reductions"], rows,
    "no step sampled yet");
}

function showStanding() {
  const { standing, facts, head } = run;
  if (!standing) return;
  const told = standing.leasesAt && head.state === "running" ? `, updated ${clock((Date.now() - standing.leasesAt) / 1e3)} ago` : "";
  byId("leases").textContent = "Lease age: time since the rank was last heard from" + told + ".";
  table("members", ["role", "stages", "node", "pid", "version", "lease age", "device"], standing.members.map((member, i) => {
    const age = standing.leaseMillis[i], rank = member.rank;
    return [rank < 0 ? "spare" : "rank " + rank, facts?.stages[rank]?.join(", ") ?? "–", member.node, String(member.pid),
      member.version || "–", rank < 0 || age === undefined ? "–" : (age / 1e3).toFixed(1) + " s", facts?.devices[rank] ?? "–"];
  }), "no members yet");
  byId("links-as-of").textContent = standing.links.length
    ? `Since the links opened, as of step ${standing.linksStep}; a recovery reopens them.` : "";
  table("links", ["from", "to", "sent", "received from it", "met a full log", "waited for a slot", "frames sent again", "damaged frames"],
    standing.links.map(link => ["rank " + link[0], "rank " + link[1], bytes(link[2]), bytes(link[3]), ...link.slice(4).map(count)]),
    "nothing sent between ranks yet");
  table("checkpoints", ["step", "written", "size", "took", "verified"], standing.checkpoints.toReversed().map(each =>
    [String(each.step), new Date(each.time).toLocaleTimeString(), bytes(each.bytes), duration(each.micros),
      each.verified === "" ? "not verified yet" : each.verified === "whole" ? `whole, verified in ${duration(each.verifyMicros)}`
        : element("span", each.verified, "told")]),
    "none yet");
}

// ---- events and facts ------------------------------------------------------------------------

function showHappenings() {
  // checkpoints have a table of their own
  const rows = run.happenings.filter(each => each.kind !== "checkpoint").slice(-500).reverse().map(each => {
    const row = element("tr");
    row.append(element("td", new Date(each.time).toLocaleTimeString()), element("td", "step " + each.step),
      element("td", each.kind), element("td", each.text, "text"));
    return row;
  });
  if (!rows.length) {
    rows.push(element("tr"));
    rows[0].append(element("td", "only steps so far"));
  }
  byId("happenings").replaceChildren(...rows);
}

/** What there is one of needs no words. */
function ranksOf(grid) {
  const parts = [[grid.tensor, "shards"], [grid.context, "context parts"], [grid.data, "replicas"]];
  return [`${grid.pipeline} in the pipeline`, ...parts.filter(([n]) => n > 1).map(([n, words]) => `${n} ${words}`)].join(" × ");
}

function showFacts() {
  const facts = run.facts, grid = facts.grid;
  pairs(byId("facts"), [
    ["schedule", facts.schedule], ["parameters", count(facts.parameters)], ["tokens per step", count(facts.tokensPerStep)],
    ["ranks", ranksOf(grid)],
    ["kernels", facts.fingerprint || "–"], ["run directory", run.head.directory], ...Object.entries(facts.environment),
  ]);
  byId("configuration").textContent = facts.configuration;
}

// ---- a step ----------------------------------------------------------------------------------

async function showStep(step) {
  const picture = await get("api/step" + (step === null ? "" : "?step=" + step));
  if (!picture) return;
  run.picture = picture;
  gantt.setPicture(picture);
  byId("bubble").textContent = `step ${picture.step}: bubble ${percent(picture.bubbleMeasured)} measured, `
    + `${percent(picture.bubblePredicted)} in the simulated step with the same op times`;
  byId("simulated").disabled = !picture.simulated.length;
  showStages();
  showLanes();
}

function showSamples() {
  const select = byId("sample"), samples = run.head.samples;
  if (select.dataset.last === String(samples.at(-1)) && select.length === samples.length) return;
  const chosen = byId("live").checked ? samples.at(-1) : Number(select.value);
  select.replaceChildren(...samples.map(step => {
    const option = element("option", step);
    option.value = step;
    return option;
  }));
  select.value = chosen;
  select.dataset.last = samples.at(-1);
  if (byId("live").checked && samples.length) showStep(samples.at(-1));
}

function showLegend() {
  const used = new Set(run.program.programs.flatMap(program => [...new Set(program.kinds)]));
  const entries = run.program.kinds.map((kind, i) => [kind, i]).filter(([, i]) => used.has(i)).map(([kind]) => kind);
  byId("legend").replaceChildren(...[...entries, { label: "update", words: "optimizer" }].map(kind => {
    const entry = element("span"), patch = element("i");
    patch.style.background = `var(--${kind.label})`;
    entry.append(patch, kind.label === "receive" ? "receive: waiting for a neighbour" : kind.words);
    return entry;
  }));
}

// ---- life ------------------------------------------------------------------------------------

async function get(path) {
  const answer = await fetch(path);
  return answer.ok ? answer.json() : null;
}

async function loadAll() {
  take(...await Promise.all(["api/facts", "api/curves", "api/program", "api/standing", "api/files"].map(get)));
}

function take(facts, curves, program, standing, files) {
  run.standing = standing;
  run.files = files ?? [];
  run.facts = facts;
  run.columns = curves.columns.map(column => column.map(finite));
  run.evaluations = curves.evaluations;
  run.happenings = curves.happenings;
  if (program) {
    run.program = program;
    gantt.setProgram(program);
    showLegend();
    showStages();
    showLanes();
  }
}

const FILES = { "report.html": "report", "trace.json": "trace (open it in ui.perfetto.dev)", "metrics.jsonl": "metrics" };

function showFiles() {
  byId("files").replaceChildren(...run.files.map(name => {
    const link = element("a", FILES[name]);
    link.href = "files/" + name;
    if (name !== "report.html") link.download = name;
    return link;
  }));
}

function showAll() {
  showHead();
  showFiles();
  showSamples();
  showCurves();
  showRanks();
  showStanding();
  showHappenings();
  if (run.facts) showFacts();
}

let loading = null, waiting = [];

/** One after the other: what a load brings may be older than the call for the next. */
async function reload() {
  const mine = loading = (loading ?? Promise.resolve()).catch(() => {}).then(loadAll);
  try {
    await mine;
  } finally {
    if (mine === loading) loading = null;
  }
  if (loading) return; // which will show all
  waiting.splice(0).forEach(merge);
  showAll();
  document.body.dataset.loaded = "yes";
}

function merge(update) {
  run.head = update.head;
  if (update.standing) run.standing = update.standing;
  for (const row of update.rows) {
    const last = run.columns[STEP].at(-1);
    if (last === undefined || row[STEP] > last) row.forEach((value, i) => run.columns[i].push(finite(value)));
  }
  for (const each of update.evaluations) {
    const last = run.evaluations.at(-1);
    if (!last || each[0] > last[0]) run.evaluations.push(each);
  }
  for (const each of update.happenings) {
    if (!run.happenings.some(known => known.time === each.time && known.text === each.text)) run.happenings.push(each);
  }
}

function watch() {
  const stream = new EventSource("api/stream");
  let first = true;
  stream.onmessage = message => {
    const update = JSON.parse(message.data);
    run.head = update.head;
    if (first || update.reload || (!run.facts && update.head.name)) {
      first = false;
      reload();
    } else if (loading) {
      waiting.push(update);
    } else {
      merge(update);
      showHead();
      showSamples();
      if (update.rows.length || update.evaluations.length) { showCurves(); showRanks(); }
      if (update.standing) showStanding();
      if (update.happenings.length) { showHappenings(); charts.forEach(each => each.plot.redraw()); }
    }
  };
  stream.onerror = () => {
    first = true; // what came meanwhile is asked for again
    if (!run.head || run.head.state === "running") {
      byId("state").textContent = "the run's process does not answer";
      byId("state").className = "badge silent";
    }
  };
}

byId("lanes-fold").addEventListener("toggle", showLanes);
byId("whole").addEventListener("click", () => gantt.showWhole());
byId("simulated").addEventListener("change", event => gantt.showSimulated(event.target.checked));
byId("live").addEventListener("change", event => event.target.checked && showStep(null));
byId("sample").addEventListener("change", event => {
  byId("live").checked = false;
  showStep(Number(event.target.value));
});
byId("smoothing").addEventListener("input", () => run.columns && showCurves());
byId("logarithmic").addEventListener("change", remakeCharts);
byId("other").addEventListener("change", event => drawBeside(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(each => each.plot.redraw()));
setInterval(showHead, 5000);

const first = JSON.parse(byId("first").textContent);
if (first?.facts) {
  run.head = first.head;
  take(first.facts, first.curves, first.program, first.standing, first.files);
  showAll();
}
offerOthers();
watch();
