  // Dots on the map: as large as their counts. The largest are named, as far as their names do not overlap.
  function drawDots() {
    const place = at("chart-dots"), chart = data.dots;
    if (!place) return;
    const single = chart.counts.length > 1 ? state.period : 0, shown = chart.counts[single], exact = single ? chart.exact_each : chart.exact;
    const inside = (s) => s[1] >= chart.frame[0] && s[1] <= chart.frame[2] && (s[2] - chart.frame[1] + 360) % 360 <= chart.frame[3] - chart.frame[1];
    const zoned = chart.stops.filter((s) => s[3] === state.dots), near = zoned.filter(inside), here = near.length ? near : zoned;
    const corner = (k, pick) => pick(...here.map((s) => s[k]));
    const frame = here.length ? [corner(1, Math.min), corner(2, Math.min), corner(1, Math.max), corner(2, Math.max)] : chart.frame;
    const [south, west, north, east] = frame, shrink = Math.cos(((south + north) / 2 * Math.PI) / 180);
    const W = wide(place), pad = W < 500 ? 30 : 52, span = [Math.max((east - west) * shrink, 1e-4), Math.max(north - south, 1e-4)];
    const H = Math.round(Math.max(W * 0.5, Math.min(W < 500 ? W * 1.2 : W * 0.68, ((W - 2 * pad) * span[1]) / span[0] + 2 * pad)));
    const scale = Math.min((W - 2 * pad) / span[0], (H - 2 * pad) / span[1]);
    const seat = (lat, lon) => [W / 2 + ((((lon - west) % 360) + 360) % 360 * shrink - span[0] / 2) * scale, H / 2 - (lat - (south + north) / 2) * scale];
    const peers = single ? chart.counts.slice(1) : [shown];
    const most = Math.max(1, ...peers.map((c) => c.count.reduce((a, b) => Math.max(a, b), 0))), crowd = here.length || chart.stops.length;
    const largest = (W < 500 ? 17 : 28) * Math.max(0.45, Math.min(1, Math.sqrt(60 / crowd))), visible = (p) => p[0] >= 0 && p[0] <= W && p[1] >= 0 && p[1] <= H;
    const order = shown.count.map((_, i) => i).filter((i) => visible(seat(chart.stops[i][1], chart.stops[i][2]))).sort((a, b) => shown.count[b] - shown.count[a] || a - b);
    const told = chart.zones.length > 1 && chart.zones.length <= 40; // so many have a colour
    const marks = order.map((i) => {
      const [name, lat, lon, zone] = chart.stops[i], hue = told ? zone % 8 : 0, n = shown.count[i], p = seat(lat, lon);
      const doubtful = exact && shown.low && shown.low[i] <= 0;
      const dot = svg("circle", { cx: p[0].toFixed(1), cy: p[1].toFixed(1), r: Math.max(1.5, Math.sqrt(n / most) * largest).toFixed(2), class: `dot-on-map c${hue} s${hue}${doubtful ? " unsure" : ""}`, "data-count": n });
      return mark(dot, `${name}${told ? `, zone ${chart.zones[zone]}` : ""}\n${trips(n)}` + (shown.low ? between(shown.low[i], shown.high[i], exact) : ""));
    });
    const taken = [], names = [];
    for (const i of order.slice(0, 12)) {
      const [name, lat, lon] = chart.stops[i], p = seat(lat, lon), label = fit(name, 170), half = long(label, 15) / 2 + 4;
      const x = Math.max(half, Math.min(W - half, p[0])), y = p[1] + 5, box = [x - half, y - 16, x + half, y + 6];
      if (!shown.count[i] || taken.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3])) continue;
      taken.push(box);
      names.push(text(label, x, y, { "text-anchor": "middle", class: "halo", "pointer-events": "none" }));
    }
    const km = 111.195 / scale, bar = [2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1].find((k) => k / km <= W * 0.3);
    const ruler = bar ? [svg("path", { d: `M12,${H - 14}v5H${12 + bar / km}v-5`, class: "axis" }), text(`${bar} km`, 18 + bar / km, H - 8, { class: "muted" })] : [];
    place.replaceChildren(draw(W, H, `${upper(MANY)} on the map`, svg("rect", { width: W, height: H, rx: 10, class: "ground" }), ...marks, ...names, ...ruler));
    if (told) place.append(legend(chart.zones));
    const pale = marks.some((m) => m.classList.contains("unsure")) ? " Pale: may be zero (the interval reaches 0)." : "";
    at("said-dots").textContent = ` Shown: ${data.periods[single]}; the largest dot stands for ${trips(shown.count[order[0]] || 0)}.${pale}`;
    rove(marks, 1);
  }
