// Ops of every rank over the time of one step, on a canvas. Bars are painted pixel by pixel, since a hundred thousand
// calls of the canvas take a tenth of a second; only names are its own.

const LOWEST = 22, HIGHEST = 40, ALL = 240, GAP = 3, AXIS = 18, LABEL_SPACE = 6;

export class Gantt {
  constructor(canvas, tip) {
    this.canvas = canvas;
    this.tip = tip;
    this.context = canvas.getContext("2d");
    this.program = null;
    this.picture = null;
    this.simulated = false;
    this.from = 0;
    this.to = 1;
    this.waiting = false;
    this.image = null;
    this.palette = null;
    this.widths = new Map();
    this.listen();
  }

  setProgram(program) {
    this.program = program;
    this.palette = null;
    this.widths.clear();
    this.redraw();
  }

  /** Another step; what is in sight stays in sight unless the whole step was. */
  setPicture(picture) {
    const whole = !this.picture || (this.from <= this.start && this.to >= this.end);
    this.picture = picture;
    let start = Infinity, end = -Infinity;
    for (const lane of picture.measured.concat(picture.simulated)) {
      for (let i = 0; i < lane.starts.length; i++) {
        if (lane.starts[i] < start) start = lane.starts[i];
        if (lane.ends[i] > end) end = lane.ends[i];
      }
      if (lane.update.length) end = Math.max(end, lane.update[1]);
    }
    this.start = Number.isFinite(start) ? start : 0;
    this.end = Math.max(this.start + 1, end);
    if (whole) this.showWhole();
    this.redraw();
  }

  showSimulated(on) {
    this.simulated = on;
    this.redraw();
  }

  showWhole() {
    const margin = (this.end - this.start) * .01;
    this.from = this.start - margin;
    this.to = this.end + margin;
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // ---- drawing ----------------------------------------------------------------------------

  /** As the page's style has them; asked for once per theme. */
  colors() {
    if (this.palette) return this.palette;
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue("--" + name).trim() || "#888";
    const kinds = this.program.kinds.map(kind => pixel(of(kind.label)));
    this.palette = {
      kinds, faint: kinds.map(faint), dark: kinds.map(darker), update: pixel(of("update")),
      inks: this.program.kinds.map(kind => kind.label === "receive" ? of("ink") : kind.label === "forward" ? of("forward-ink") : "#111"),
      frame: pixel(of("line")), muted: of("muted"), line: of("line"),
    };
    return this.palette;
  }

  lanes() {
    if (!this.simulated) return this.picture.measured.map(lane => ({ lane, simulated: false }));
    const ideal = new Map(this.picture.simulated.map(lane => [lane.rank, lane]));
    return this.picture.measured.flatMap(lane => ideal.has(lane.rank)
      ? [{ lane, simulated: false }, { lane: ideal.get(lane.rank), simulated: true }]
      : [{ lane, simulated: false }]);
  }

  draw() {
    if (!this.program || !this.picture) return;
    const started = performance.now();
    const rows = this.lanes();
    // few ranks have high lanes; a simulated lane has room for its name
    const lane = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(ALL / rows.length)));
    const heights = rows.map(row => row.simulated ? Math.max(14, lane >> 1) : lane);
    const height = AXIS + heights.reduce((sum, h) => sum + h + GAP, 0);
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    this.fit(Math.round(width * ratio), Math.round(height * ratio), height);
    const c = this.context;
    const colors = this.colors();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "11px system-ui, sans-serif";
    this.left = Math.min(width * .35, Math.max(...rows.map(row => this.textWidth(nameOf(row)))) + 10);
    this.width = width;
    this.rows = [];
    this.bars.fill(0);
    let y = 0;
    rows.forEach((row, i) => {
      this.rows.push({ ...row, y, height: heights[i] });
      this.paintLane(row, Math.round(y * ratio), Math.round(heights[i] * ratio), ratio, colors);
      y += heights[i] + GAP;
    });
    c.putImageData(this.image, 0, 0);
    for (const row of this.rows) this.writeLane(row, colors);
    this.drawAxis(y, colors);
    this.canvas.dataset.range = `${this.from} ${this.to}`;
    this.canvas.dataset.drawMillis = (performance.now() - started).toFixed(1);
  }

  fit(width, height, cssHeight) {
    if (this.image && this.image.width === width && this.image.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.canvas.style.height = cssHeight + "px";
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.bars = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(this.image.width);
    this.share = new Float32Array(this.image.width);
  }

  textWidth(text) {
    let known = this.widths.get(text);
    if (known === undefined) this.widths.set(text, known = this.context.measureText(text).width);
    return known;
  }

  x(micros) {
    return this.left + (micros - this.from) / (this.to - this.from) * (this.width - this.left);
  }

  opsOf(lane) {
    const ops = this.program.programs[lane.program];
    return ops && ops.kinds.length === lane.starts.length ? ops : null;
  }

  /** The first op that ends in sight or later: a rank's ops come one after the other. */
  firstInSight(lane) {
    let low = 0, high = lane.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.ends[middle] < this.from) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** One row of pixels, repeated: bars by the thousand cost no more than the pixels that they fill. */
  paintLane({ lane, simulated }, top, height, ratio, colors) {
    const { line, share } = this, left = Math.round(this.left * ratio), width = this.image.width;
    line.fill(0);
    share.fill(-1);
    const ops = this.opsOf(lane);
    for (let i = ops ? this.firstInSight(lane) : lane.starts.length; i < lane.starts.length; i++) {
      if (lane.starts[i] > this.to) break;
      const x = this.x(lane.starts[i]) * ratio, end = this.x(lane.ends[i]) * ratio, kind = ops.kinds[i];
      paint(line, share, left, x, end, (simulated ? colors.faint : colors.kinds)[kind]);
      if (end - x > 3 * ratio && x >= left) line[Math.floor(x)] = colors.dark[kind];
    }
    if (lane.update.length) {
      paint(line, share, left, this.x(lane.update[0]) * ratio, this.x(lane.update[1]) * ratio, colors.update);
    }
    for (let row = 1; row < height - 1; row++) this.bars.set(line, (top + row) * width);
    for (let x = left; x < width; x++) line[x] ||= colors.frame;
    this.bars.set(line, top * width);
    this.bars.set(line, (top + height - 1) * width);
  }

  /** Names, where there is room. */
  writeLane(row, colors) {
    const { lane, y, height } = row, c = this.context, ops = row.simulated ? null : this.opsOf(lane);
    c.textBaseline = "middle";
    c.fillStyle = colors.muted;
    c.fillText(nameOf(row), 0, y + height / 2, this.left - 6);
    for (let i = ops ? this.firstInSight(lane) : lane.starts.length; i < lane.starts.length; i++) {
      if (lane.starts[i] > this.to) break;
      const x = Math.max(this.left, this.x(lane.starts[i])), w = Math.min(this.width, this.x(lane.ends[i])) - x;
      if (w > 20 && this.textWidth(ops.names[i]) + LABEL_SPACE < w) {
        c.fillStyle = colors.inks[ops.kinds[i]];
        c.fillText(ops.names[i], x + LABEL_SPACE / 2, y + height / 2);
      }
    }
  }

  drawAxis(y, colors) {
    const c = this.context, span = this.to - this.from;
    const rough = span / Math.max(2, (this.width - this.left) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const tick = [1, 2, 5, 10].map(f => f * power).find(t => t >= rough);
    c.fillStyle = colors.muted;
    c.strokeStyle = colors.line;
    c.textBaseline = "top";
    for (let at = Math.ceil((this.from - this.start) / tick) * tick; at + this.start < this.to; at += tick) {
      const x = this.x(at + this.start);
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x, y + 4);
      c.stroke();
      const text = duration(at);
      if (x + 2 + c.measureText(text).width <= this.width) c.fillText(text, x + 2, y + 3);
    }
  }

  // ---- moving about -------------------------------------------------------------------------

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return; // let the page scroll
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * .002), this.micros(event.offsetX));
    }, { passive: false });
    let grabbed = null;
    canvas.addEventListener("pointerdown", event => {
      grabbed = { x: event.offsetX, from: this.from, to: this.to };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => grabbed = null);
    canvas.addEventListener("pointercancel", () => grabbed = null);
    canvas.addEventListener("pointermove", event => {
      if (grabbed) {
        const moved = (grabbed.x - event.offsetX) / (this.width - this.left) * (grabbed.to - grabbed.from);
        this.show(grabbed.from + moved, grabbed.to + moved);
      }
      this.tell(event);
    });
    canvas.addEventListener("pointerleave", () => this.tip.hidden = true);
    canvas.addEventListener("dblclick", () => this.showWhole());
    canvas.addEventListener("keydown", event => {
      const span = this.to - this.from, middle = this.from + span / 2;
      const moves = {
        ArrowLeft: () => this.show(this.from - span / 8, this.to - span / 8),
        ArrowRight: () => this.show(this.from + span / 8, this.to + span / 8),
        "+": () => this.zoom(.7, middle), "=": () => this.zoom(.7, middle), "-": () => this.zoom(1.4, middle),
        "0": () => this.showWhole(),
      };
      if (moves[event.key]) {
        event.preventDefault();
        moves[event.key]();
      }
    });
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette = null;
      this.redraw();
    });
  }

  micros(x) {
    return this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from);
  }

  zoom(factor, around) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  show(from, to) {
    const whole = this.end - this.start;
    if (to - from < whole * 1e-5 || to - from > whole * 3) return;
    this.from = from;
    this.to = to;
    this.redraw();
  }

  /** The op under the pointer. */
  tell(event) {
    const row = this.rows?.find(each => event.offsetY >= each.y && event.offsetY < each.y + each.height);
    const at = this.micros(event.offsetX);
    const text = row && event.offsetX > this.left ? this.opAt(row.lane, at) : null;
    this.tip.hidden = !text;
    if (text) {
      this.tip.textContent = (row.simulated ? "simulated: " : "") + text;
      this.tip.style.left = Math.min(event.clientX + 12, innerWidth - 220) + "px";
      this.tip.style.top = event.clientY + 14 + "px";
    }
  }

  opAt(lane, at) {
    const ops = this.program.programs[lane.program];
    for (let i = 0; ops && i < lane.starts.length; i++) {
      if (lane.starts[i] <= at && at <= lane.ends[i]) {
        return `${ops.names[i]} · ${this.program.kinds[ops.kinds[i]].words} · stage ${ops.stages[i]}`
          + (ops.units[i] < 0 ? "" : ` · micro-batch ${ops.units[i]}`)
          + ` · ${duration(lane.ends[i] - lane.starts[i])}`;
      }
    }
    return lane.update.length && lane.update[0] <= at && at <= lane.update[1]
      ? `optimizer · ${duration(lane.update[1] - lane.update[0])}` : null;
  }
}

const nameOf = row => row.simulated ? "simulated" : row.lane.place;

// ---- pixels: red, green, blue and alpha from the lowest byte up -----------------------------------

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** A colour of the style as one pixel. */
function pixel(color) {
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
}

const faint = color => color === 0 ? 0 : ((color & 0xffffff) | 0xbf000000) >>> 0;

function darker(color) {
  const part = shift => Math.round((color >>> shift & 0xff) * .65) << shift;
  return color === 0 ? 0 : (part(0) | part(8) | part(16) | 0xff000000) >>> 0;
}

/** A bar; of several that share a pixel, the one that has most of it shows. */
function paint(line, share, left, x, end, color) {
  const first = Math.floor(x), last = Math.floor(end);
  const edge = (at, covered) => {
    if (at >= left && at < line.length && covered >= share[at]) {
      share[at] = covered;
      line[at] = color;
    }
  };
  if (first === last) {
    edge(first, end - x);
    return;
  }
  edge(first, first + 1 - x);
  const from = Math.max(left, first + 1), to = Math.min(line.length, last);
  if (from < to) {
    line.fill(color, from, to);
    share.fill(1, from, to);
  }
  edge(last, end - last);
}

export function duration(micros) {
  const size = Math.abs(micros);
  if (size >= 1e6) return (micros / 1e6).toFixed(2) + " s";
  if (size >= 1e3) return (micros / 1e3).toFixed(size < 1e4 ? 2 : 1) + " ms";
  return Math.round(micros) + " µs";
}
