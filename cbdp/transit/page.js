
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const TRAIL = 300, FRAME = 40;
  const at = (id) => document.getElementById(id);
  /* report/numbers.js */
  const many = (n, one, more) => counted(n, one, more || one + "s");
  const clock = (s, fine) => [Math.floor(s / 3600), Math.floor(s / 60) % 60, ...(fine ? [Math.floor(s) % 60] : [])].map((n) => String(n).padStart(2, "0")).join(":");
  const hue = (zone) => zone % 8;

  /* report/elements.js */

  // Hops are told by the seconds since the one before.
  const shuttles = data.shuttles.map(([number, zone, start, told]) => {
    const n = told.length / 4, leaves = new Float64Array(n), arrives = new Float64Array(n), stop = new Int32Array(n), load = new Int32Array(n);
    let now = data.begin;
    for (let k = 0; k < n; k++) {
      leaves[k] = now + told[4 * k];
      now = arrives[k] = leaves[k] + told[4 * k + 1];
      stop[k] = told[4 * k + 2];
      load[k] = told[4 * k + 3];
    }
    return { number, zone, start, n, leaves, arrives, stop, load };
  });
  // The hop that began last, -1 before the first.
  const hopAt = (s, t) => {
    let low = 0, high = s.n;
    while (low < high) { const middle = (low + high) >> 1; if (s.leaves[middle] <= t) low = middle + 1; else high = middle; }
    return low - 1;
  };
  const from = (s, k) => (k > 0 ? s.stop[k - 1] : s.start);
  const riders = data.riders, minute = (t) => Math.max(0, Math.min(riders.aboard.length - 1, Math.floor((t - data.begin) / 60)));
  const state = { t: data.start, playing: false, zone: -1, chosen: -1, ways: false, pace: 60 };
  let map = null, chart = null;

  /* report/tip.js */
  const hint = (element, words) => {
    element.addEventListener("pointermove", (e) => show(words(), e.clientX, e.clientY));
    element.addEventListener("pointerleave", hide);
  };

  function drawMap() {
    const place = at("chart-map"), W = Math.max(260, Math.floor(place.clientWidth)), narrow = W < 500, pad = narrow ? 20 : 36;
    const xs = data.stops.map((s) => s[1]), ys = data.stops.map((s) => s[2]), least = (v) => v.reduce((a, b) => Math.min(a, b)), most = (v) => v.reduce((a, b) => Math.max(a, b));
    const low = [least(xs), least(ys)], high = [most(xs), most(ys)], span = [0, 1].map((k) => Math.max(high[k] - low[k], 0.1));
    const H = Math.round(Math.max(W * 0.4, Math.min(narrow ? W * 1.25 : W * 0.68, ((W - 2 * pad) * span[1]) / span[0] + 2 * pad)));
    const scale = Math.min((W - 2 * pad) / span[0], (H - 2 * pad) / span[1]);
    const seat = (x, y) => [W / 2 + (x - (low[0] + high[0]) / 2) * scale, H / 2 - (y - (low[1] + high[1]) / 2) * scale];
    const seats = data.stops.map((s) => seat(s[1], s[2])), path = (points) => "M" + points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join("L");
    const parts = [svg("rect", { width: W, height: H, rx: 10, class: "ground" })];
    data.zones.forEach(([, hull], z) => {
      if (hull.length) parts.push(svg("path", { d: path(hull.map((p) => seat(...p))) + "Z", class: `zone c${hue(z)} s${hue(z)}`, "stroke-width": narrow ? 14 : 24 }));
    });
    const ways = svg("g", { id: "drawn-ways" }), busy = data.ways.length ? data.ways[0][2] : 1;
    data.ways.forEach(([a, b, n]) => ways.append(svg("line", { x1: seats[a][0].toFixed(1), y1: seats[a][1].toFixed(1), x2: seats[b][0].toFixed(1), y2: seats[b][1].toFixed(1),
      class: "way", "stroke-width": (0.6 + 4 * Math.sqrt(n / busy)).toFixed(2), "stroke-opacity": (0.1 + 0.6 * Math.sqrt(n / busy)).toFixed(2) })));
    const dot = Math.max(1, (narrow ? 1.7 : 2.6) * Math.min(1, Math.sqrt(400 / data.stops.length)));
    data.stops.forEach(([name, , , zone, hub], i) => {
      if (!hub) parts.push(svg("circle", { cx: seats[i][0].toFixed(1), cy: seats[i][1].toFixed(1), r: dot.toFixed(1), class: `place c${hue(zone)}` }, svg("title", null, `${name}, zone ${data.zones[zone][0]}`)));
    });
    parts.push(ways);
    data.lines.forEach(([name, stops, headway]) => {
      const d = path(stops.map((s) => seats[s])), words = () => `bus line ${name}\nevery ${say(Math.round(headway / 6) / 10)} min`, line = svg("path", { d, class: "bus" });
      hint(line, words);
      parts.push(svg("path", { d, class: "bus-under" }), line);
    });
    data.stops.forEach(([name, , , zone, hub], i) => {
      if (!hub) return;
      const mark = svg("rect", { x: (seats[i][0] - 5).toFixed(1), y: (seats[i][1] - 5).toFixed(1), width: 10, height: 10, rx: 2, class: "hub" });
      hint(mark, () => `hub ${name}\nzone ${data.zones[zone][0]}`);
      parts.push(mark);
    });
    const trails = svg("g", null), moving = svg("g", null), size = narrow ? 4.2 : 5.5;
    const marks = shuttles.map((s, i) => {
      const trail = svg("path", { class: `trail s${hue(s.zone)}` }), mark = svg("circle", { r: size, "data-shuttle": s.number, tabindex: -1, role: "button" });
      trails.append(trail);
      moving.append(mark);
      hint(mark, () => words(s));
      const choose = () => { state.chosen = state.chosen === i ? -1 : i; paint(); };
      mark.addEventListener("click", choose);
      mark.addEventListener("keydown", (e) => {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); }
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
        if (step && map.marks[i + step]) { e.preventDefault(); map.marks[i + step].mark.focus(); }
      });
      mark.addEventListener("focus", () => { const box = mark.getBoundingClientRect(); show(words(s), box.left, box.top); });
      mark.addEventListener("blur", hide);
      return { mark, trail };
    });
    if (marks.length) marks[0].mark.setAttribute("tabindex", 0);
    // A zone's name stands at its outer edge, where few shuttles are.
    const names = data.zones.map(([name, hull]) => {
      if (!hull.length || data.zones.length > 40) return "";
      const corners = hull.map((p) => seat(...p)), middle = [0, 1].map((k) => corners.reduce((a, c) => a + c[k], 0) / corners.length);
      const out = [middle[0] - W / 2, middle[1] - H / 2], far = Math.hypot(...out), way = far < 8 ? [0, -1] : out.map((v) => v / far);
      const reach = corners.reduce((a, c) => Math.max(a, (c[0] - middle[0]) * way[0] + (c[1] - middle[1]) * way[1]), 0) + (narrow ? 8 : 18);
      const label = text(name, 0, 0, { "text-anchor": "middle", class: "halo name", "pointer-events": "none" });
      label.wish = [0, 1].map((k) => middle[k] + way[k] * reach);
      return label;
    });
    const bar = [100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1].find((k) => k * scale <= W * 0.3);
    if (bar) parts.push(svg("path", { d: `M12,${H - 14}v5H${12 + bar * scale}v-5`, class: "axis" }), text(`${bar} km`, 18 + bar * scale, H - 8, { class: "muted" }));
    place.replaceChildren(svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "group", "aria-label": "Map of the service" }, ...parts, trails, moving, ...names));
    for (const label of names.filter((n) => n)) {
      const half = label.getBBox().width / 2 + 6;
      label.setAttribute("x", Math.max(half, Math.min(W - half, label.wish[0])).toFixed(1));
      label.setAttribute("y", Math.max(18, Math.min(H - 10, label.wish[1] + 5)).toFixed(1));
    }
    map = { seats, marks, ways, path };
  }

  function drawRiders() {
    const place = at("chart-riders"), W = Math.max(260, Math.floor(place.clientWidth)), H = 130, left = 40, right = 8, base = H - 24, n = riders.aboard.length;
    const top = Math.max(1, ...riders.aboard, ...riders.waiting), x = (i) => left + (i / Math.max(1, n - 1)) * (W - left - right), y = (v) => base - (v / top) * (base - 14);
    const curve = (values) => "M" + values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join("L");
    const parts = [0, top].map((v) => svg("line", { x1: left, x2: W - right, y1: y(v), y2: y(v), class: v ? "grid" : "axis" }));
    parts.push(text("0", left - 6, base + 4, { "text-anchor": "end", class: "muted" }), text(say(top), left - 6, y(top) + 4, { "text-anchor": "end", class: "muted" }));
    const span = data.end - data.begin, step = [600, 1200, 1800, 3600, 7200, 10800, 14400, 21600].find((s) => (span / s) * 58 <= W - left - right) || 43200;
    for (let s = Math.ceil(data.begin / step) * step; s <= data.end; s += step) {
      const at = x((s - data.begin) / 60);
      if (at <= W - right - 20 && at >= left + 16) parts.push(text(clock(s), at, H - 6, { "text-anchor": "middle", class: "muted" }));
    }
    parts.push(svg("path", { d: curve(riders.aboard), class: "curve s0" }), svg("path", { d: curve(riders.waiting), class: "curve s1" }));
    const cursor = svg("line", { y1: 8, y2: base, class: "cursor" });
    place.replaceChildren(svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "img", "aria-label": "Riders on board and waiting, over time" }, ...parts, cursor));
    chart = { cursor, x };
  }

  const words = (s) => {
    const k = hopAt(s, state.t), drives = k >= 0 && state.t < s.arrives[k], zone = data.zones[s.zone][0];
    const where = drives ? `${data.stops[from(s, k)][0]} → ${data.stops[s.stop[k]][0]}\n${many(s.load[k], "rider")} on board` : `parked at ${data.stops[k < 0 ? s.start : s.stop[k]][0]}`;
    return `shuttle ${s.number}, zone ${zone}\n${where}`;
  };

  // Where a shuttle is, and its way since some second.
  function place(s, since) {
    const { seats } = map, t = state.t, k = hopAt(s, t), points = [];
    if (k < 0) return { p: seats[s.start], points, load: 0, parked: true };
    const a = seats[from(s, k)], b = seats[s.stop[k]], share = Math.min(1, (t - s.leaves[k]) / (s.arrives[k] - s.leaves[k])), parked = t >= s.arrives[k];
    const p = [0, 1].map((c) => a[c] + (b[c] - a[c]) * share);
    let j = k;
    for (; j >= 0 && s.arrives[j] > since; j--) points.push(j === k ? p : seats[s.stop[j]]);
    const j0 = j + 1;
    if (j0 <= k) {
      const c = seats[from(s, j0)], d = seats[s.stop[j0]], cut = Math.max(0, Math.min(1, (since - s.leaves[j0]) / (s.arrives[j0] - s.leaves[j0])));
      points.push([0, 1].map((q) => c[q] + (d[q] - c[q]) * cut));
    }
    return { p, points, load: parked ? 0 : s.load[k], parked };
  }

  function paint() {
    const t = state.t;
    let carrying = 0, parked = 0, seen = 0;
    shuttles.forEach((s, i) => {
      const { mark, trail } = map.marks[i], chosen = state.chosen === i, visible = state.zone < 0 || s.zone === state.zone;
      mark.style.display = trail.style.display = visible ? "" : "none";
      if (!visible) return;
      const found = place(s, chosen ? data.begin - 1 : t - TRAIL);
      seen += 1;
      carrying += found.load > 0;
      parked += found.parked;
      mark.setAttribute("cx", found.p[0].toFixed(1));
      mark.setAttribute("cy", found.p[1].toFixed(1));
      mark.setAttribute("class", `shuttle s${hue(s.zone)} ${found.load ? `c${hue(s.zone)}` : "empty"}${found.parked ? " parked" : ""}${chosen ? " chosen" : ""}`);
      if (!state.playing || chosen) mark.setAttribute("aria-label", words(s).replace(/\n/g, ", "));
      trail.setAttribute("class", `trail s${hue(s.zone)}${chosen ? " chosen" : ""}`);
      trail.setAttribute("d", found.points.length > 1 ? map.path(found.points) : "M0,0");
    });
    map.ways.style.display = state.ways ? "" : "none";
    at("time").value = t;
    at("time").setAttribute("aria-valuetext", clock(t));
    at("now").textContent = clock(t, true);
    at("said").textContent = `${many(seen, "shuttle")}: ${say(carrying)} with riders, ${say(seen - carrying - parked)} driving empty, ${say(parked)} parked. ` +
      `${many(riders.aboard[minute(t)], "rider")} on board, ${say(riders.waiting[minute(t)])} waiting${state.zone < 0 ? "" : ", all zones together"}.`;
    const x = chart.x((t - data.begin) / 60);
    chart.cursor.setAttribute("x1", x);
    chart.cursor.setAttribute("x2", x);
  }

  function legend() {
    const row = (picture, words) => { const item = document.createElement("li"); item.append(svg("svg", { width: 22, height: 14, "aria-hidden": "true" }, picture), words); return item; };
    const disc = (kind) => svg("circle", { cx: 11, cy: 7, r: 5, class: `shuttle ${kind}` });
    at("legend").append(
      row(disc("s7 c7"), "shuttle with riders"), row(disc("s7 empty"), "drives empty"), row(disc("s7 empty parked"), "parked"),
      row(svg("rect", { x: 6, y: 2, width: 10, height: 10, rx: 2, class: "hub" }), "hub"), row(svg("line", { x1: 1, x2: 21, y1: 7, y2: 7, class: "bus" }), "bus line"),
      row(svg("line", { x1: 1, x2: 21, y1: 7, y2: 7, class: "curve s0" }), "riders on board"), row(svg("line", { x1: 1, x2: 21, y1: 7, y2: 7, class: "curve s1" }), "riders waiting"));
  }

  function play(on) {
    state.playing = on;
    at("play").textContent = on ? "Pause" : "Play";
    if (!on) { paint(); return; }
    if (state.t >= data.end) state.t = data.begin;
    let before = performance.now();
    const step = (now) => {
      if (!state.playing) return;
      if (now - before >= FRAME) {
        state.t = Math.min(data.end, state.t + (state.pace * (now - before)) / 1000);
        before = now;
        if (state.t >= data.end) { play(false); return; }
        paint();
      }
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  at("play").addEventListener("click", () => play(!state.playing));
  at("time").addEventListener("input", (e) => { state.t = Number(e.target.value); paint(); });
  at("zone").addEventListener("change", (e) => { state.zone = Number(e.target.value); paint(); });
  at("pace").addEventListener("change", (e) => { state.pace = Number(e.target.value); });
  at("ways").addEventListener("change", (e) => { state.ways = e.target.checked; paint(); });
  legend();
  const banner = document.querySelector(".internal");
  const drawAll = () => {
    if (banner) document.querySelector(".time").style.top = banner.offsetHeight + "px";
    drawMap();
    drawRiders();
    paint();
  };
  drawAll();
  let before = document.body.clientWidth;
  new ResizeObserver(() => {
    if (document.body.clientWidth === before) return;
    before = document.body.clientWidth;
    drawAll();
  }).observe(document.body);
})();
