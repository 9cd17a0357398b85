// Ops of every rank over the time of one step, on a canvas. Draws what is in sight only: thousands of ops that share
// a pixel cost no more than the pixel.

const LANE = 22, GAP = 3, HALF = 9, AXIS = 18, LABEL_SPACE = 6;

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
    this.listen();
  }

  setProgram(program) {
    this.program = program;
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

  colors() {
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue("--" + name).trim() || "#888";
    return {
      kinds: this.program.kinds.map(kind => of(kind.label)),
      update: of("update"), ink: of("ink"), muted: of("muted"), line: of("line"),
    };
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
    const heights = rows.map(row => row.simulated ? HALF : LANE);
    const height = AXIS + heights.reduce((sum, h) => sum + h + GAP, 0);
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = height + "px";
    }
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const colors = this.colors();
    c.font = "11px system-ui, sans-serif";
    this.left = Math.min(width * .35, Math.max(...rows.map(row => c.measureText(row.lane.place).width)) + 10);
    this.width = width;
    this.rows = [];
    let y = 0;
    rows.forEach((row, i) => {
      this.rows.push({ ...row, y, height: heights[i] });
      this.drawLane(row, y, heights[i], colors);
      y += heights[i] + GAP;
    });
    this.drawAxis(y, colors);
    this.canvas.dataset.range = `${this.from} ${this.to}`;
    this.canvas.dataset.drawMillis = (performance.now() - started).toFixed(1);
  }

  x(micros) {
    return this.left + (micros - this.from) / (this.to - this.from) * (this.width - this.left);
  }

  drawLane({ lane, simulated }, y, height, colors) {
    const c = this.context;
    c.fillStyle = colors.muted;
    c.textBaseline = "middle";
    if (!simulated) c.fillText(lane.place, 0, y + height / 2, this.left - 6);
    c.save();
    c.beginPath();
    c.rect(this.left, y, this.width - this.left, height);
    c.clip();
    c.strokeStyle = colors.line;
    c.strokeRect(this.left + .5, y + .5, this.width - this.left - 1, height - 1);
    const ops = this.program.programs[lane.program];
    if (ops && ops.kinds.length === lane.starts.length) this.drawOps(lane, ops, y, height, colors, simulated);
    if (lane.update.length) {
      c.fillStyle = colors.update;
      c.fillRect(this.x(lane.update[0]), y, Math.max(.5, this.x(lane.update[1]) - this.x(lane.update[0])), height);
    }
    c.restore();
  }

  drawOps(lane, ops, y, height, colors, simulated) {
    const c = this.context;
    c.globalAlpha = simulated ? .75 : 1;
    let painted = -1, kind = -1;
    for (let i = 0; i < lane.starts.length; i++) {
      if (lane.ends[i] < this.from || lane.starts[i] > this.to) continue;
      const x = this.x(lane.starts[i]), end = this.x(lane.ends[i]);
      if (end <= painted && ops.kinds[i] === kind) continue;
      const w = Math.max(end - x, .6);
      c.fillStyle = colors.kinds[ops.kinds[i]];
      c.fillRect(x, y, w, height);
      kind = ops.kinds[i];
      painted = w < 1 ? Math.floor(x) + 1 : -1;
      if (w > 3) {
        c.strokeStyle = "rgba(0,0,0,.35)";
        c.strokeRect(x + .5, y + .5, w - 1, height - 1);
      }
      if (!simulated && w > 20) {
        const name = ops.names[i];
        if (c.measureText(name).width + LABEL_SPACE < w) {
          c.fillStyle = "#111";
          c.fillText(name, x + LABEL_SPACE / 2, y + height / 2);
        }
      }
    }
    c.globalAlpha = 1;
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
      c.fillText(duration(at), x + 2, y + 3);
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
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
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

export function duration(micros) {
  const size = Math.abs(micros);
  if (size >= 1e6) return (micros / 1e6).toFixed(2) + " s";
  if (size >= 1e3) return (micros / 1e3).toFixed(size < 1e4 ? 2 : 1) + " ms";
  return Math.round(micros) + " µs";
}
