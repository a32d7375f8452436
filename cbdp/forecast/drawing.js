  const tiles = (made) => {
    const trip = made.losses[0], month = made.losses[1], prior = PRIORS[state.prior];
    const judged = made.tables.filter((t) => t.use !== null), seen = judged.filter((t) => t.use.within <= 0.25).length;
    const peaks = judged.length ? `${seen} of ${made.tables.length}` : "?";
    const tile = (head, value, about) => html("div", { class: "tile" }, html("span", { class: "head" }, head), html("span", { class: "value" }, value.replace(" %", "\u00a0%")),
      html("span", { class: "about" }, about));
    at("tiles").replaceChildren(
      tile(`Protection of ${made.unit.kind === "trip" ? spoken("one trip") : made.unit.per === "release" ? "one person" : `a person’s ${made.unit.per}`}`, strengthOf(made).split(":")[0],
        `the odds change at most ${factorOf(made.epsilon)}-fold`),
      tile(spoken("Sure about one trip"), `at most ${atMost(believes(prior, trip.epsilon))}`, `for somebody who thought ${percent(prior)}`),
      tile("Sure about a commuter", `at most ${atMost(believes(prior, month.epsilon))}`, `for somebody who thought ${percent(prior)}`),
      tile("Tables that show the peak", peaks, judged.length ? "average counts are within 25 %" : spoken("say how many trips there are")));
    at("summary").textContent = `${sign} ${amountText()} · one ${data.noun.one}: at most ${atMost(believes(prior, trip.epsilon))} sure · ${peaks} tables show the peak`;
  };

  const KIND = { "size a line": ["good", "✓"], "see the peak": ["good", "✓"], "busy or quiet": ["fair", "!"], "sums only": ["poor", "✕"] };
  const tellTables = (made) => {
    at("confidence").textContent = `Ranges hold with ${percent(data.confidence)} confidence.` + (state.trips === null
      ? spoken(" Nobody says how many trips there are: examples are for counts of 100.") : spoken(` Each table is judged by its average count, if there are about ${tripsWord(state.trips)}: trips divided by the number of counts. Where trips are spread unevenly, many counts are smaller.`));
    at("told").replaceChildren(...made.tables.map((table) => {
      const [kind, mark] = table.use === null ? ["none", "?"] : KIND[table.use.name];
      const can = table.use === null ? spoken("Say how many trips there are") : upper(table.use.can);
      const place = made.variant.measured.indexOf(table.name);
      const share = data.public.includes(table.name) ? "public already" : place < 0 ? "not measured" : `${percent(made.parts[place])} of ${sign}`;
      return html("article", { class: "told", "data-table": table.name },
        html("h3", {}, table.name, " ", html("span", { class: `pill ${kind}` }, html("span", { "aria-hidden": "true" }, mark), ` ${can}`)),
        html("p", { class: "sentence" }, example(table)),
        bar(table, kind),
        table.use === null ? "" : html("p", { class: "uses" }, usesOf(table)),
        html("p", { class: "about" }, table.use === null ? `A count of ${say(table.count)} is within ` : "The average count is within ", html("b", { class: "relative" }, percent(table.relative)),
          ...(table.good > 1 ? ["; counts of ", html("b", { class: "good-from" }, say(table.good)), ` ${data.noun.many} or more are within ${percent(data.good)}`] : []),
          ". On average, counts are off by ", html("b", { class: "error" }, amountOf(table.error)), ` ${data.noun.many}. `, `${say(table.size)} ${table.size === 1 ? "count" : "counts"}, `,
          html("span", { class: "share" }, share), table.margin === null ? "." : ", noise alone ", table.margin === null ? "" : html("span", { class: "margin" }, `±${say(table.margin)}`),
          table.margin === null ? "" : "."));
    }));
  };
  // A count in the middle and its range, on a scale from nothing to twice the count.
  const bar = (table, kind) => {
    const part = Math.min(1, table.relative);
    return svg("svg", { class: "range", viewBox: "0 0 200 14", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "ground", x: 0, y: 4, width: 200, height: 6, rx: 3 }),
      svg("rect", { class: `span ${kind}`, x: 100 - 100 * part, y: 2, width: Math.max(2, 200 * part), height: 10, rx: 3 }),
      svg("rect", { class: "middle", x: 99, y: 0, width: 2, height: 14 }));
  };
  const uses = () => at("uses").replaceChildren(...data.uses.flatMap((use) => [
    html("dt", {}, upper(use.can)),
    html("dd", {}, use.within > 1e6 ? `Otherwise: ${use.why}.` : `The average count is within ${percent(use.within)}: ${use.why}.`)]));

  const beliefs = (made) => {
    const prior = PRIORS[state.prior];
    at("beliefs").replaceChildren(...made.losses.map((loss, n) => {
      const sure = believes(prior, loss.epsilon), who = WHO[loss.who];
      const line = svg("svg", { class: "belief", viewBox: "0 0 200 14", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "ground", x: 0, y: 2, width: 200, height: 10, rx: 3 }),
        svg("rect", { class: `c${n}`, x: 0, y: 2, width: 200 * sure, height: 10, rx: 3 }), svg("rect", { class: "middle", x: 200 * prior - 1, y: 0, width: 2, height: 14 }));
      return html("div", { class: "who", "data-who": loss.who }, html("h3", {}, who.name, " ", html("b", { class: "sure" }, `at most ${atMost(sure)}`)), line,
        html("p", { class: "about" }, `Somebody who thinks it ${percent(prior)} likely ${who.question(made.unit)} can become at most ${atMost(sure)} sure${rarely(loss.rare)}: `,
          `ε = ${upwards(loss.epsilon)}, odds ${loss.epsilon > 30 ? "perhaps" : "at most"} ${factorOf(loss.epsilon)} times as high.`));
    }));
    curves(made, prior);
  };
  const curves = (made, prior) => {
    const wide = Math.min(620, at("curve").clientWidth || 620), high = Math.min(320, 0.62 * wide), left = 46, low = 38, top = 26;
    const x = (p) => left + p * (wide - left - 22), y = (p) => high - low - p * (high - low - top);
    const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((p) => [
      svg("line", { class: "grid", x1: x(p), x2: x(p), y1: y(0), y2: y(1) }), svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(p), y2: y(p) }),
      text(percent(p), x(p), high - low + 16, { "text-anchor": "middle", class: "muted" }), text(percent(p), left - 6, y(p) + 4, { "text-anchor": "end", class: "muted" })]);
    const path = (epsilon) => `M${x(0)} ${y(0)} ` + Array.from({ length: 101 }, (_, n) => (n + 0.5) / 101).map((p) => `L${x(p).toFixed(1)} ${y(believes(p, epsilon)).toFixed(1)}`).join(" ");
    const drawn = made.losses.map((loss, n) => svg("path", { class: `curve s${n}`, d: path(loss.epsilon) }));
    const dots = made.losses.map((loss, n) => svg("circle", { class: `c${n}`, cx: x(prior), cy: y(believes(prior, loss.epsilon)), r: 5 }));
    at("curve").replaceChildren(
      svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "The most that somebody can believe afterwards, by what they believed before" },
        ...grid, svg("path", { class: "axis", d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}` }), ...drawn, ...dots,
        text("believed before", x(0.5), high - 4, { "text-anchor": "middle", class: "muted" }), text("at most believed after", 0, 12, { class: "muted" })),
      html("ul", { class: "legend" }, ...made.losses.map((loss, n) => html("li", {}, svg("svg", { width: 14, height: 12, "aria-hidden": "true" },
        svg("rect", { class: `c${n}`, width: 14, height: 12, rx: 2 })), WHO[loss.who].name)), html("li", {}, "thin line: nothing is learnt")));
  };

  // Others by what they protect, on a scale of ε; one's own settings among them.
  const strip = (made) => {
    const own = made.unit.kind === "trip" ? 0 : { day: 1, week: 2, month: 3, release: 4 }[made.unit.per];
    const points = [...data.others, { name: "These settings", unit: own, epsilon: made.epsilon, own: true }];
    const wide = Math.min(760, at("strip").clientWidth || 760), scale = (e) => 12 + (Math.log10(Math.min(100, Math.max(0.01, e))) + 2) / 4 * (wide - 80);
    const rows = [];
    let y = 16;
    data.units.forEach((unit, n) => {
      const inside = points.filter((point) => point.unit === n).sort((a, b) => a.epsilon - b.epsilon);
      if (!inside.length) return;
      rows.push(text(`Protects ${unit}`, 0, y, { class: "strong" }));
      y += 2;
      for (const point of inside) {
        y += 22;
        rows.push(text(point.name, 0, y, { class: point.own ? "strong" : "muted" }));
        y += 15;
        const value = `ε ${upwards(point.epsilon)}`;
        rows.push(svg("line", { class: "grid", x1: scale(0.01), x2: scale(100), y1: y, y2: y }),
          svg("circle", { class: point.own ? "c1" : "c0", cx: scale(point.epsilon), cy: y, r: point.own ? 7 : 5 }),
          text(value, scale(point.epsilon) + 12, y + 4, { class: point.own ? "strong halo" : "halo" }));
      }
      y += 30;
    });
    const ticks = [0.01, 0.1, 1, 10, 100].flatMap((e) => [svg("line", { class: "axis", x1: scale(e), x2: scale(e), y1: y - 12, y2: y - 6 }),
      text(String(e), scale(e), y + 8, { "text-anchor": "middle", class: "muted" })]);
    at("strip").replaceChildren(svg("svg", { viewBox: `0 0 ${wide} ${y + 16}`, width: wide, height: y + 16, role: "img", "aria-label": "ε of known publications and of these settings" }, ...rows, ...ticks));
  };

  const account = (made) => {
    const book = data.account, letter = book.currency === "rho" ? "ρ" : "ε";
    const cost = book.currency === "epsilon" || data.law === "gaussian" ? made.amount : made.amount ** 2 / 2;
    const six = (x) => digits(x, 6), lines = [];
    if (book.cap === null) lines.push(`The ledger ${book.file} limits what one person may be charged: ${book.caps}. This release costs ${letter} = ${six(cost)}.`);
    else if (!book.stated) lines.push(`No cap is stated: the ledger would be created with a cap of just this release, ${letter} = ${six(cost)}, and no second one would fit. State privacy.cap.`);
    else {
      const left = book.cap - book.spent, after = left - cost;
      lines.push(`Of ${letter} = ${six(book.cap)} in ${book.file}${book.exists ? "" : " (not created yet)"}, ${six(book.spent)} is spent and ${six(left)} is left. This release costs ${six(cost)}`
        + (after >= -1e-9 ? `: then ${six(Math.max(0, after))} is left${after < cost - 1e-9 ? "" : `, enough for ${say(Math.floor(after / cost + 1e-9))} more like it`}.` : ", which does not fit."));
    }
    at("account").replaceChildren(...lines.map((line) => html("p", { class: book.cap !== null && book.stated && cost > book.cap - book.spent + 1e-9 ? "warning" : null }, line)));
  };

  const take = (made) => {
    const found = chosen(made, state);
    at("take-about").textContent = data.toml === null ? `Write these lines into ${data.config}.` : `Lines of ${data.config}, or the whole file with them.`;
    at("snippet").textContent = linesOf(found);
    at("copy-all").hidden = data.toml === null;
    at("copied").textContent = "";
  };
  const copy = async (text, said) => {
    try { await navigator.clipboard.writeText(text); } catch {
      const box = html("textarea", {}, text);
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    at("copied").textContent = said;
  };
