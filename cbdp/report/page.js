
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { period: 0, level: null, listed: null, many: 20, zoom: -1, dots: -1, sort: null, down: true, find: "" };
  const LINES = 40, CROWD = 300;
  const at = (id) => document.getElementById(id);
  /* report/numbers.js */
  const [ONE, MANY] = (data || {}).noun || ["trip", "trips"];
  const short = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 3 });
  const trips = (n) => counted(n, ONE, MANY);
  const percent = (x) => (x > 0 && x < 0.0005 ? "< 0.1" : x >= 0.0995 || x === 0 ? Math.round(100 * x) : (100 * x).toFixed(1)) + " %";
  const sure = (data || {}).confidence + " %";

  /* report/elements.js */
  const draw = (width, height, label, ...children) =>
    svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, ...children);
  const letters = document.createElement("canvas").getContext("2d");
  const long = (content, size = 13) => {
    letters.font = `${size}px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif`;
    return letters.measureText(content).width;
  };
  const fit = (content, width, size = 13) => {
    if (long(content, size) <= width) return content;
    let cut = content;
    while (cut.length > 1 && long(cut + "…", size) > width) cut = cut.slice(0, -1);
    return cut + "…";
  };

  // What a mark stands for is shown on hover and on focus, and read by screen readers.
  /* report/tip.js */
  const mark = (element, words, choose) => {
    element.classList.add("mark");
    put(element, { "aria-label": words.replace(/\n/g, ", "), role: choose ? "button" : "img", tabindex: -1 }, []);
    element.addEventListener("pointermove", (e) => show(words, e.clientX, e.clientY));
    element.addEventListener("pointerleave", hide);
    element.addEventListener("focus", () => {
      const box = element.getBoundingClientRect();
      show(words, box.left + box.width / 2, box.top + box.height / 2);
    });
    element.addEventListener("blur", hide);
    if (choose) {
      element.classList.add("pick");
      element.addEventListener("click", choose);
      element.addEventListener("keydown", (e) => {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); }
      });
    }
    return element;
  };
  // One stop for the tab key per chart; arrows move inside it.
  const rove = (marks, columns) => {
    marks.forEach((one, place) => {
      one.setAttribute("tabindex", place === 0 ? 0 : -1);
      one.addEventListener("keydown", (e) => {
        const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
        if (e.key === "Escape") hide();
        const next = e.key === "Home" ? 0 : e.key === "End" ? marks.length - 1 : place + (steps[e.key] || 0);
        if (next !== place && marks[next]) {
          e.preventDefault();
          one.setAttribute("tabindex", -1);
          marks[next].setAttribute("tabindex", 0);
          marks[next].focus();
        }
      });
    });
  };
  const between = (low, high, exact) =>
    low === undefined ? "" : exact ? `\n${sure} interval: ${say(low)} to ${say(high)}` : `\nrange: ${say(low)} to ${say(high)}`;
  const ranges = (has, exact) =>
    !has ? " No intervals were published for these numbers."
      : exact ? ` Thin lines show ${sure} intervals.` : ` Thin lines show ranges: the ${sure} intervals of a more detailed table, added up, so wider than necessary.`;
  const steps = (most, wanted) => {
    const rough = Math.max(most, 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
    return Array.from({ length: Math.ceil(Math.max(most, 1) / step) + 1 }, (_, i) => i * step);
  };
  const wide = (element) => Math.max(260, Math.floor(element.clientWidth || 680));
  const whiskers = (x, low, high, reach, exact, flat) => {
    const path = flat
      ? `M${low},${x - reach}V${x + reach}M${low},${x}H${high}M${high},${x - reach}V${x + reach}`
      : `M${x - reach},${low}H${x + reach}M${x},${low}V${high}M${x - reach},${high}H${x + reach}`;
    return svg("g", { "pointer-events": "none" }, svg("path", { d: path, class: "whisker-under" }), svg("path", { d: path, class: exact ? "whisker" : "whisker added" }));
  };

  // Demand by period: bars for one series, curves with bands for several.
  function drawDemand() {
    const place = at("chart-demand"), chart = data.demand;
    if (!place) return;
    const W = wide(place), H = W < 500 ? 260 : 320, n = chart.labels.length;
    const most = Math.max(1, ...chart.series.flatMap((s) => s.high || s.count), ...chart.series.flatMap((s) => s.count));
    const ticks = steps(most, 5), top = ticks[ticks.length - 1];
    const left = Math.ceil(Math.max(...ticks.map((t) => long(say(t), 12)))) + 14, right = 10, base = H - 34;
    const slot = (W - left - right) / n, x = (i) => left + slot * (i + 0.5), y = (v) => base - (v / top) * (base - 24);
    const parts = [text(MANY, 0, 12, { class: "muted" })];
    for (const t of ticks) {
      parts.push(svg("line", { x1: left, x2: W - right, y1: y(t), y2: y(t), class: t ? "grid" : "axis" }));
      parts.push(text(say(t), left - 8, y(t) + 4, { "text-anchor": "end", class: "muted" }));
    }
    const room = Math.max(...chart.labels.map((l) => long(fit(l, 110, 12), 12))) + 14;
    const every = Math.max(1, Math.ceil(room / slot));
    const tidy = [1, 2, 3, 4, 6, 8, 12, 16, 24].find((k) => k >= every) || every;
    chart.labels.forEach((label, i) => {
      const words = fit(label, 110, 12), half = long(words, 12) / 2;
      if (i % tidy === 0 && x(i) + half <= W && x(i) - half >= 0) parts.push(text(words, x(i), base + 20, { "text-anchor": "middle", class: "muted" }));
    });
    const marks = [], choosable = data.periods.length > 1;
    const words = (s, i) => `${chart.names[i]}${s.label ? `, ${chart.by} ${s.label}` : ""}\n${trips(s.count[i])}` + (s.low ? between(s.low[i], s.high[i], chart.exact) : "");
    if (chart.series.length === 1) {
      const s = chart.series[0], thick = Math.min(64, slot * 0.78);
      s.count.forEach((count, i) => {
        const chosen = state.period === 0 || state.period === i + 1;
        const bar = svg("rect", { x: x(i) - thick / 2, y: y(count), width: thick, height: Math.max(base - y(count), 0.5), class: chosen ? "c0" : "c0 faded", "data-count": count });
        marks.push(mark(bar, words(s, i), choosable ? () => choose(state.period === i + 1 ? 0 : i + 1) : null));
        parts.push(bar);
        if (s.low) parts.push(whiskers(x(i), y(s.low[i]), y(s.high[i]), Math.min(6, thick / 3), chart.exact, false));
      });
    } else {
      chart.series.forEach((s, k) => {
        const line = (values) => values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
        if (s.low) parts.push(svg("path", { d: `M${line(s.high).join("L")}L${line(s.low).reverse().join("L")}Z`, class: `band c${k % 8}` }));
        parts.push(svg("path", { d: `M${line(s.count).join("L")}`, class: `curve s${k % 8}` }));
      });
      chart.series.forEach((s, k) => s.count.forEach((count, i) => {
        const dot = svg("circle", { cx: x(i), cy: y(count), r: Math.max(2, Math.min(5, slot / 3)), class: `c${k % 8}`, "data-count": count });
        marks.push(mark(dot, words(s, i)));
        parts.push(dot);
      }));
    }
    place.replaceChildren(draw(W, H, `${upper(MANY)} by period`, ...parts));
    if (chart.series.length > 1) place.append(legend(chart.series.map((s) => s.label)));
    rove(marks, n);
  }
  const legend = (labels) =>
    html("ul", { class: "legend" }, ...labels.map((label, k) =>
      html("li", null, svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { width: 12, height: 12, rx: 3, class: `c${k % 8}` })), label)));
  function listDemand() {
    const box = at("numbers-demand"), chart = data.demand;
    if (!box) return;
    box.addEventListener("toggle", () => {
      const rows = chart.series.flatMap((s) => s.count.map((n, i) => [chart.names[i], s.label, say(n), s.low ? say(s.low[i]) : null, s.low ? say(s.high[i]) : null]));
      const names = ["Period", chart.by, upper(MANY), "Low", "High"];
      const kept = names.map((name, c) => c).filter((c) => (c !== 1 || chart.series.length > 1) && (c < 3 || chart.series[0].low));
      const body = rows.map((row) => html("tr", null, ...kept.map((c) => html("td", { class: c > 1 ? "right" : null }, row[c]))));
      box.querySelector("div").replaceChildren(html("table", null,
        html("thead", null, html("tr", null, ...kept.map((c) => html("th", { scope: "col", class: c > 1 ? "right" : null }, names[c])))),
        html("tbody", null, ...body)));
    });
  }

  // The matrix: the same scale for every period but the first, so that periods can be compared.
  const cellsOf = (period) => data.matrix.cells[data.matrix.cells.length > 1 ? period : 0];
  function drawMatrix() {
    const place = at("chart-matrix"), chart = data.matrix;
    if (!place) return;
    const single = chart.cells.length > 1 ? state.period : 0, cells = cellsOf(state.period), exact = single ? chart.exact_each : chart.exact;
    const R = chart.rows.length, C = chart.columns.length, W = wide(place);
    const peers = single ? chart.cells.slice(1) : [chart.cells[0]];
    const most = Math.max(1, ...peers.map((c) => c.count.reduce((a, b) => Math.max(a, b), 0)));
    const left = Math.min(W < 500 ? 110 : C > 12 ? 150 : 190, Math.ceil(Math.max(...chart.rows.map((l) => long(l)))) + 14);
    const cell = Math.max(C > LINES ? 9 : 20, Math.min(110, Math.floor((W - left - 8) / C)));
    const tall = Math.max(18, Math.min(cell, 52)), every = Math.ceil(16 / cell), upright = chart.columns.every((l) => long(l) <= cell - 4);
    const fits = ([tell, size]) => Math.max(...cells.count.map((n) => long(tell(n), size))) <= cell - 4, brief = (n) => short.format(n);
    const [tell, letter] = [[say, 13], [say, 11], [brief, 13], [brief, 11]].find(fits) || [];
    const room = upright ? 28 : Math.min(130, Math.ceil(Math.max(...chart.columns.map((l) => long(l))))) + 14;
    const full = Math.max(left + cell * C + 8, Math.min(W, left + 300)), base = room + tall * R;
    const parts = [], marks = [], strength = (n) => Math.sqrt(n / most);
    const doubtful = (i) => Boolean(cells.low) && cells.low[i] <= 0 && cells.high[i] > 0;
    const legendAt = W < 500 ? 0 : left;
    let pale = false;
    chart.columns.forEach((label, c) => {
      const x = left + cell * (c + 0.5);
      if (c % every) return;
      parts.push(upright ? text(label, x, room - 9, { "text-anchor": "middle" })
        : text(fit(label, room - 12), x + 4, room - 6, { transform: `rotate(-90 ${x + 4} ${room - 6})` }));
    });
    chart.rows.forEach((label, r) => {
      parts.push(text(fit(label, left - 12), left - 8, room + tall * (r + 0.5) + 4, { "text-anchor": "end" }));
      chart.columns.forEach((to, c) => {
        const i = r * C + c, n = cells.count[i], x = left + cell * c, y = room + tall * r;
        if (n < 0) {
          parts.push(svg("rect", { x: x + 1, y: y + 1, width: cell - 2, height: tall - 2, class: "never" }, svg("title", null, "impossible")));
          return;
        }
        const arrow = chart.kind === "other" ? `${label}, ${to}` : `${label} → ${to}`;
        parts.push(svg("rect", { x: x + 1, y: y + 1, width: cell - 2, height: tall - 2, class: "ground" }));
        const box = svg("rect", { x: x + 1, y: y + 1, width: cell - 2, height: tall - 2, class: "heat", "fill-opacity": strength(n).toFixed(3), "data-count": n });
        marks.push(mark(box, `${arrow}\n${trips(n)}` + (cells.low ? between(cells.low[i], cells.high[i], exact) : "")));
        parts.push(box);
        if (!tell) return;
        pale = pale || doubtful(i);
        parts.push(text(tell(n), x + cell / 2, y + tall / 2 + 4, { "text-anchor": "middle", "font-size": letter, "pointer-events": "none", class: doubtful(i) ? "pale" : strength(n) > 0.58 ? "on-heat" : null }));
      });
    });
    const shades = Array.from({ length: 20 }, (_, i) => svg("rect", { x: left + i * 8, y: base + 16, width: 8, height: 10, class: "heat", "fill-opacity": ((i + 1) / 20).toFixed(2) }));
    parts.push(svg("g", { "aria-hidden": "true" }, ...shades,
      text("0", left, base + 42, { class: "muted" }), text(trips(most), left + 160, base + 42, { class: "muted", "text-anchor": "middle" })));
    if (pale) parts.push(text("12", legendAt, base + 66, { class: "pale" }), text("pale: may be zero (the interval reaches 0)", legendAt + 22, base + 66, { class: "muted" }));
    const picture = draw(pale ? Math.max(full, legendAt + 290) : full, base + (pale ? 74 : 50), `${upper(MANY)} by row and column`, ...parts);
    picture.classList.add("picture");
    place.replaceChildren(picture);
    rove(marks, C);
    at("ranges-matrix").textContent = (chart.timed ? "" : ` Shown: ${data.periods[single]}.`) + (!cells.low ? " No intervals were published for these numbers." : exact ? ` Point at a field or touch it to see its ${sure} interval.` : " Point at a field or touch it to see its range.")
      + (tell === brief && cells.count.some((n) => n >= 1000) ? " k: thousands, m: millions." : "");
  }

  // Flows, from zone to zone out of the matrix or from stop to stop.
  function flowsAt(level) {
    if (level === "zones") {
      const chart = data.matrix, C = chart.columns.length, cells = cellsOf(state.period), exact = state.period && chart.cells.length > 1 ? chart.exact_each : chart.exact;
      return cells.count.map((n, i) => ({ from: chart.rows[Math.floor(i / C)], to: chart.columns[i % C], n, low: cells.low && cells.low[i], high: cells.high && cells.high[i], exact }))
        .filter((f) => f.n > 0).sort((a, b) => b.n - a.n);
    }
    const found = data.flows, period = found.flows.length > 1 ? state.period : 0;
    const ends = (which, i) => (found[which] && found[which][period].length ? found[which][period][i] : undefined);
    return found.flows[period].map(([from, to, n], i) => ({ from, to, n, low: ends("low", i), high: ends("high", i), exact: true }));
  }
  const stopName = ([id, name]) => (name === id ? id : `${name} (${id})`);
  const spread = (points) => {
    const lats = points.map((p) => p[0]), middle = (Math.min(...lats) + Math.max(...lats)) / 2;
    return { middle, shrink: Math.cos((middle * Math.PI) / 180), start: points[0][1] };
  };
  function drawMap() {
    const place = at("chart-map");
    if (!place) return;
    const stops = data.flows.stops, zones = data.flows.zones, located = stops.filter((s) => s[2] !== null);
    const [south, west, north, east] = data.flows.frame, { shrink, start } = spread([[south, west], [north, east]]);
    const flat = (lat, lon) => [((((lon - start + 540) % 360) + 360) % 360 - 180) * shrink, -lat];
    const zoned = located.filter((s) => s[4] === state.zoom), near = zoned.filter((s) => s[2] >= south && s[2] <= north && (s[3] - west + 360) % 360 <= east - west);
    const shown = state.zoom < 0 ? located : near.length ? near : zoned;
    const points = state.zoom === -1 ? [flat(south, west), flat(north, east)] : shown.map((s) => flat(s[2], s[3]));
    const lows = [0, 1].map((k) => Math.min(...points.map((p) => p[k]))), highs = [0, 1].map((k) => Math.max(...points.map((p) => p[k])));
    const W = wide(place), pad = W < 500 ? 26 : 48, span = [0, 1].map((k) => Math.max(highs[k] - lows[k], 1e-4));
    const H = Math.round(Math.max(W * 0.5, Math.min(W < 500 ? W * 1.2 : W * 0.68, ((W - 2 * pad) * span[1]) / span[0] + 2 * pad)));
    const scale = Math.min((W - 2 * pad) / span[0], (H - 2 * pad) / span[1]);
    const seat = (lat, lon) => { const p = flat(lat, lon); return [0, 1].map((k) => (k ? H : W) / 2 + (p[k] - (lows[k] + highs[k]) / 2) * scale); };
    const parts = [], marks = [], level = state.level, zoneAt = new Map(zones.map((z) => [z[0], z]));
    const end = (key) => { const node = level === "zones" ? zoneAt.get(key) : stops[key]; const [lat, lon] = level === "zones" ? node.slice(1) : node.slice(2); return lat === null ? null : seat(lat, lon); };
    const call = (key) => (level === "zones" ? key : stopName(stops[key]));
    const hue = (zone) => (zone < 0 ? 7 : zone % 8);
    const inside = (p) => p && p[0] >= 0 && p[0] <= W && p[1] >= 0 && p[1] <= H;
    const flows = flowsAt(level).map((f) => ({ ...f, a: end(f.from), b: end(f.to), hue: hue(level === "zones" ? zones.indexOf(zoneAt.get(f.from)) : stops[f.from][4]) })).filter((f) => inside(f.a) && inside(f.b)).slice(0, state.many);
    const unsure = (f) => f.exact && f.low !== undefined && f.low !== null && f.low <= 0;
    const apart = (f) => Math.hypot(f.a[0] - f.b[0], f.a[1] - f.b[1]) >= 2;
    const most = Math.max(1, ...flows.map((f) => f.n)), widest = Math.max(1, ...flows.filter(apart).map((f) => f.n)), thick = level === "zones" ? (W < 500 ? 16 : 26) : W < 500 ? 7 : 11;
    const small = Math.max(1.5, (W < 500 ? 3.2 : 4.5) * Math.min(1, Math.sqrt(CROWD / shown.length))).toFixed(1);
    for (const s of located) {
      const p = seat(s[2], s[3]);
      if (inside(p)) parts.push(svg("circle", { cx: p[0].toFixed(1), cy: p[1].toFixed(1), r: small, class: `stop c${hue(s[4])}` }, svg("title", null, stopName(s) + (s[4] < 0 ? "" : `, zone ${zones[s[4]][0]}`))));
    }
    for (const f of flows) {
      const words = `${call(f.from)} → ${call(f.to)}\n${trips(f.n)}` + between(f.low, f.high, f.exact);
      const same = !apart(f), size = Math.max(1.2, (f.n / (same ? most : widest)) * thick);
      const shape = same ? svg("circle", { cx: f.a[0], cy: f.a[1], r: level === "zones" ? Math.max(6, Math.sqrt(f.n / most) * thick * 1.9) : 5 + size, class: `inner c${f.hue} s${f.hue}` })
        : svg("path", { d: arrow(f.a, f.b, size, level === "zones" ? (W < 500 ? 10 : 20) : 5), class: `flow c${f.hue}${unsure(f) ? " unsure" : ""}` });
      shape.setAttribute("data-count", f.n);
      marks.push(mark(shape, words));
    }
    parts.push(...marks.slice().sort((a, b) => b.classList.contains("inner") - a.classList.contains("inner")));
    const hold = (label) => long(fit(label, 150), 15) / 2 + 6;
    zones.forEach((z) => {
      const p = z[1] === null ? null : seat(z[1], z[2]);
      if (inside(p) && zones.length <= 40) parts.push(text(fit(z[0], 150), Math.max(hold(z[0]), Math.min(W - hold(z[0]), p[0])), p[1] + 5, { "text-anchor": "middle", class: "halo", "pointer-events": "none" }));
    });
    const km = 111.195 / scale, bar = [2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1].find((k) => k / km <= W * 0.3);
    if (bar) parts.push(svg("path", { d: `M12,${H - 14}v5H${12 + bar / km}v-5`, class: "axis" }), text(`${bar} km`, 18 + bar / km, H - 8, { class: "muted" }));
    place.replaceChildren(draw(W, H, "Flows on the map", svg("rect", { width: W, height: H, rx: 10, class: "ground" }), ...parts));
    if (zones.length > 1 && zones.length <= 40) place.append(legend(data.flows.called));
    const inner = marks.some((m) => m.classList.contains("inner")) ? ` Circles are ${MANY} that start and end in the same place; their size is not to the scale of the arrows.` : "";
    const pale = marks.some((m) => m.classList.contains("unsure")) ? " Pale: may be zero (the interval reaches 0)." : "";
    at("said-map").textContent = `Shown: ${data.periods[state.period]}, ${flows.length} flows; the largest has ${trips(flows.length ? most : 0)}.${inner}${pale}` +
      (level === "stops" && data.flows.unsure && !data.flows.low ? " Single flows between stops say little: compare zones instead." : "");
    rove(marks, 1);
  }
  // An arrow of this width that bends to the right of its way, as one closed shape.
  function arrow(a, b, wish, gap) {
    const dx = b[0] - a[0], dy = b[1] - a[1], far = Math.hypot(dx, dy), size = Math.max(1.2, Math.min(wish, far / 7)), bend = Math.min(0.22 * far, 90);
    const middle = [(a[0] + b[0]) / 2 - (dy / far) * bend * 2, (a[1] + b[1]) / 2 + (dx / far) * bend * 2];
    const on = (t) => [0, 1].map((k) => (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * middle[k] + t * t * b[k]);
    const way = (t) => { const d = [0, 1].map((k) => 2 * (1 - t) * (middle[k] - a[k]) + 2 * t * (b[k] - middle[k])); const l = Math.hypot(...d); return d.map((v) => v / l); };
    const from = Math.min(0.3, gap / far), head = Math.min(far * 0.3, Math.max(6, size * 1.5)), to = 1 - from, neck = Math.max(from + 0.05, to - head / far);
    const side = (t, reach) => { const p = on(t), d = way(t); return `${(p[0] - d[1] * reach).toFixed(1)},${(p[1] + d[0] * reach).toFixed(1)}`; };
    const along = Array.from({ length: 25 }, (_, i) => from + ((neck - from) * i) / 24), flank = Math.max(3.2, size * 1.05);
    const tipAt = on(to).map((v) => v.toFixed(1)).join(",");
    return "M" + [...along.map((t) => side(t, size / 2)), side(neck, flank), tipAt, side(neck, -flank), ...along.reverse().map((t) => side(t, -size / 2))].join("L") + "Z";
  }

  /* report/dots.js */
  function drawShares() {
    data.shares.forEach((chart, k) => {
      const place = at(`chart-share-${k}`);
      if (!place) return;
      const single = chart.bars.length > 1 ? state.period : 0, bars = chart.bars[single], exact = single ? chart.exact_each : chart.exact;
      const sum = bars.count.reduce((a, b) => a + b, 0), most = Math.max(1, ...bars.count, ...(bars.high || []));
      const order = chart.order || bars.count.map((_, i) => i).sort((a, b) => chart.bars[0].count[b] - chart.bars[0].count[a] || a - b);
      const W = Math.min(wide(place), 760), line = 44, reach = (v) => (v / most) * (W - 14), parts = [], marks = [];
      order.forEach((i, row) => {
        const y = row * line, n = bars.count[i], share = sum ? percent(n / sum) : "–";
        const number = `${share} · ${trips(n)}`;
        parts.push(text(fit(chart.labels[i], W - long(number) - 24), 0, y + 14));
        parts.push(text(number, W - 4, y + 14, { "text-anchor": "end" }));
        const bar = svg("rect", { x: 0, y: y + 20, width: Math.max(reach(n), 0.5), height: 14, rx: 2, class: "c0", "data-count": n });
        const parted = bars.low && sum ? `\nshare: ${percent(Math.min(1, bars.low[i] / sum))} to ${percent(Math.min(1, bars.high[i] / sum))}` : "";
        marks.push(mark(bar, `${chart.labels[i]}\n${number}` + (bars.low ? between(bars.low[i], bars.high[i], exact) + parted : "")));
        parts.push(bar);
        if (bars.low) parts.push(whiskers(y + 27, reach(bars.low[i]), reach(bars.high[i]), 5, exact, true));
      });
      place.replaceChildren(draw(W, line * order.length, `Shares by ${chart.name}`, ...parts));
      at(`ranges-share-${k}`).textContent = `Shown: ${data.periods[single]}.${ranges(bars.low, exact)}`;
      rove(marks, 1);
    });
  }

  // The table of the largest flows.
  function tableRows() {
    if (!data.flows) {
      const t = data.types;
      return {
        names: [...t.columns.map((name) => upper(name.replace(".", " "))), upper(MANY), ...(t.low ? ["Low", "High"] : [])], numeric: t.columns.length, some: Boolean(t.low), exact: true,
        rows: t.count.map((n, i) => [...t.values.map((v) => v[i]), n, ...(t.low ? [t.low[i], t.high[i]] : [])]),
      };
    }
    const level = state.listed, flows = flowsAt(level), call = (k) => (level === "zones" ? k : stopName(data.flows.stops[k]));
    const some = flows.some((f) => f.low !== undefined && f.low !== null), exact = !flows.length || flows[0].exact;
    const rows = flows.map((f) => [call(f.from), call(f.to), f.n, ...(some ? [f.low, f.high] : [])]);
    return { names: ["From", "To", upper(MANY), ...(some ? ["Low", "High"] : [])], numeric: 2, rows, some, exact };
  }
  function drawTable() {
    const place = at("largest");
    if (!place) return;
    const { names, numeric, rows, some, exact } = tableRows();
    const by = state.sort === null || state.sort >= names.length ? numeric : state.sort;
    const wanted = state.find.trim().toLowerCase();
    const kept = rows.filter((row) => !wanted || row.slice(0, numeric).some((v) => v.toLowerCase().includes(wanted)));
    const compare = (a, b) => (by < numeric ? a[by].localeCompare(b[by], "en", { numeric: true }) : a[by] - b[by]);
    kept.sort((a, b) => (state.down ? -1 : 1) * compare(a, b));
    const narrow = some && place.parentElement.clientWidth < 500, shown = narrow ? names.slice(0, numeric + 1) : names;
    const head = shown.map((name, c) => {
      const press = html("button", { type: "button" }, name + (c === by ? (state.down ? " ▾" : " ▴") : ""));
      press.addEventListener("click", () => {
        state.down = by === c ? !state.down : c >= numeric;
        state.sort = c;
        drawTable();
        place.querySelectorAll("thead button")[c].focus();
      });
      return html("th", { scope: "col", class: c >= numeric ? "right" : null, "aria-sort": c === by ? (state.down ? "descending" : "ascending") : "none" }, press);
    });
    const field = (row, v, c) => html("td", { class: c >= numeric ? "right" : null }, c >= numeric ? say(v) : v,
      narrow && c === numeric ? html("span", { class: "between" }, `${say(row[c + 1])}–${say(row[c + 2])}`) : null);
    const body = kept.slice(0, 300).map((row) => html("tr", null, ...row.slice(0, shown.length).map((v, c) => field(row, v, c))));
    place.replaceChildren(html("thead", null, html("tr", null, ...head)), html("tbody", null, ...body));
    const what = data.flows ? `Shown: ${data.periods[data.flows.flows.length > 1 ? state.period : 0]}, ` : "";
    const cut = data.flows && state.listed === "stops" ? ` At most the ${state.period ? data.flows.most_each : data.flows.most} largest are listed.` : "";
    const said = !some ? " No intervals were published for these numbers."
      : ` ${narrow ? "Below each count" : "Low and high"} are ${exact ? `the ends of the ${sure} interval of the true count` : "ranges: the intervals of a more detailed table, added up"}.`;
    at("said-table").textContent = `${what}${say(kept.length)} rows.${cut}${said}`;
    if (at("said-ends")) at("said-ends").hidden = !some || !exact;
  }

  function choose(period) {
    state.period = period;
    if (at("period")) {
      at("period").value = period;
      at("earlier").disabled = period === 0;
      at("later").disabled = period === data.periods.length - 1;
    }
    const focused = document.activeElement && document.activeElement.closest ? document.activeElement.closest("#chart-demand") : null;
    hide();
    drawDemand();
    if (focused) { const again = at("chart-demand").querySelectorAll(".mark")[Math.max(0, period - 1)]; if (again) again.focus(); }
    drawPeriod();
  }
  function drawPeriod() { drawMatrix(); drawMap(); drawDots(); drawShares(); drawTable(); }
  const listen = (id, event, act) => { if (at(id)) at(id).addEventListener(event, act); };

  if (data) {
    const zoned = data.matrix && data.matrix.kind === "zones";
    state.level = at("level") ? at("level").value : "stops";
    state.listed = data.flows && zoned ? "zones" : "stops";
    listen("period", "change", (e) => choose(Number(e.target.value)));
    listen("earlier", "click", () => choose(Math.max(0, state.period - 1)));
    listen("later", "click", () => choose(Math.min(data.periods.length - 1, state.period + 1)));
    listen("level", "change", (e) => { state.level = e.target.value; drawMap(); });
    listen("many", "change", (e) => { state.many = Number(e.target.value); drawMap(); });
    listen("dots-zoom", "change", (e) => { state.dots = Number(e.target.value); drawDots(); });
    listen("zoom", "change", (e) => { state.zoom = Number(e.target.value); drawMap(); });
    listen("table-level", "change", (e) => { state.listed = e.target.value; drawTable(); });
    listen("find", "input", (e) => { state.find = e.target.value; drawTable(); });
    listDemand();
    choose(0);
    let before = document.body.clientWidth;
    new ResizeObserver(() => {
      if (document.body.clientWidth === before) return;
      before = document.body.clientWidth;
      choose(state.period);
    }).observe(document.body);
  }
})();
