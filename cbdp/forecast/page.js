"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  /* report/elements.js */
  /* forecast/formulas.js */
  /* forecast/saying.js */
  /* forecast/drawing.js */

  // What is chosen. Sliders hold places in lists; shares are thousandths by table once somebody has moved one.
  const start = () => ({
    amount: data.amounts.indexOf(data.own), unit: data.unit.kind, k: data.ks.indexOf(data.unit.k), period: data.period, zone: data.zone,
    trips: data.trips, budget: data.budget, hand: null, prior: PRIORS.indexOf(0.5),
  });
  let state = start();

  const unitNow = () => ({ ...data.unit, kind: state.unit, k: data.ks[state.k], apart: data.unit.kind === "person" ? data.unit.apart : null });
  const asConfigured = () => state.unit === data.unit.kind && (state.unit === "trip" || data.ks[state.k] === data.unit.k);
  const TOO_MUCH = data.levels[data.levels.length - 2].upto;
  const sign = data.currency === "rho" ? "ρ" : "ε";
  const changesOf = (variant) => variant.changes[state.unit === "trip" ? 0 : 1 + state.k]; // by table: l1 and l2 squared

  // Whole thousandths that add up to 1000, each at least 1, in these proportions.
  const thousandths = (parts) => {
    const whole = parts.reduce((a, b) => a + b, 0);
    const exact = parts.map((p) => Math.max(1, 1000 * p / whole));
    const made = exact.map((p) => Math.floor(p + 1e-9));
    const order = exact.map((p, n) => n).sort((a, b) => (exact[b] - made[b]) - (exact[a] - made[a]));
    for (let n = 0, left = 1000 - made.reduce((a, b) => a + b, 0); left !== 0; n = (n + 1) % made.length) {
      if (left > 0) { made[order[n]] += 1; left -= 1; }
      else if (made[order[n]] > 1) { made[order[n]] -= 1; left += 1; }
    }
    return made;
  };

  // The shares as parts, and whether the engine gives just these under the budget's name; else they are written as numbers.
  const sharing = (variant, amount) => {
    if (state.hand !== null) return { parts: variant.measured.map((name) => state.hand[name] / 1000), named: false };
    if (state.budget === "leaves") return { parts: forLeaves(variant, amount), named: true };
    const still = asConfigured();
    if (state.budget === "uniform") return { parts: variant.parts.uniform, named: true };
    if (state.budget in variant.parts) return { parts: variant.parts[state.budget], named: still };
    const own = state.budget === "geometric" || (state.budget === "optimal" && still && amountText() === data.own && state.trips === data.trips);
    const given = state.budget === "as given" && amountText() === data.own;
    return own || given ? { parts: variant.own, named: own } : { parts: thousandths(variant.own).map((p) => p / 1000), named: false };
  };
  const forLeaves = (variant, amount) => {
    const tables = variant.measured.length - 1;
    const [l1, l2] = changesOf(variant)[variant.names.indexOf("total")];
    const enough = data.enough === null ? Infinity : data.law === "geometric" ? data.enough * l1 : data.enough ** 2 / 4 * l2;
    const spared = Math.min(amount * data.spared, enough);
    if (tables === 0) return [1];
    return variant.measured.map((name) => (name === "singleton" ? amount - spared : spared / tables) / amount);
  };

  const amountText = () => data.amounts[state.amount];
  const now = () => {
    const [stated, amount, epsilon] = data.costs[state.amount], unit = unitNow(), variant = data.variants[state.period][state.zone];
    const { parts, named } = sharing(variant, amount);
    const tables = expected(variant, changesOf(variant), amount, parts, state.trips, data.filled);
    return { stated, amount, epsilon, unit, variant, parts, named, tables, losses: lossesOf(variant, unit, amount, epsilon, parts, tables) };
  };

  // How much trips, days and people that belong together can add up to: ε, or ρ (squares) and the ε that it gives.
  const lossesOf = (variant, unit, amount, epsilon, parts, tables) => {
    const { days, trips, pieces } = data.month;
    const share = (table) => { const place = variant.measured.indexOf(table.name); return place < 0 ? 0 : amount * parts[place]; };
    const periods = unit.per === "release" ? pieces : { day: days, week: 4, month: 1 }[unit.per];
    const each = periods / Math.min(pieces, periods);
    const grown = { trip: 1, month: days * trips, family: 4 };
    if (data.law === "geometric") {
      if (unit.kind === "person") {
        grown.trip = tables.reduce((sum, t) => sum + 2 * share(t) / t.change[0], 0) / amount;
        grown.month = periods;
      }
      return Object.entries(grown).map(([who, times]) => ({ who, epsilon: times * epsilon, rare: 0 }));
    }
    const squares = { trip: 1, month: pieces * (days * trips / pieces) ** 2, family: 16 };
    if (unit.kind === "person") {
      squares.trip = tables.reduce((sum, t) => sum + 2 * share(t) / t.change[1], 0) / amount;
      squares.month = periods / each * variant.names.reduce((sum, name, n) => sum + share(tables[n]) * (variant.periods[n] ? each : each ** 2), 0) / amount;
    }
    return Object.entries(squares).map(([who, times]) => {
      const rho = times * amount, found = epsilonOf(rho, data.delta);
      return { who, epsilon: found, rare: rareness(rho, found) };
    });
  };

  // Drawing.
  const draw = () => {
    const made = now();
    settings(made);
    tiles(made);
    tellTables(made);
    beliefs(made);
    strip(made);
    account(made);
    take(made);
  };
  const settings = (made) => {
    set("amount", data.amounts.length, state.amount, `${sign} = ${amountText()}`);
    set("k", data.ks.length, state.k, tripsWord(made.unit.k) + (made.unit.per === "release" ? "" : ` a ${made.unit.per}`));
    set("period", data.periods.length, state.period, lengthOf(data.periods[state.period]));
    set("zone", data.zones.length, state.zone, data.zones[state.zone] === null ? "" : `${data.zones[state.zone]} zones`);
    at("k-setting").hidden = state.unit === "trip";
    at("unit").value = state.unit;
    at("unit-about").textContent = state.unit === "trip" ? spoken("A person who made many trips is protected less.") : data.unit.known ? ""
      : spoken("Your trips need a column that tells people apart, like a card number.");
    const month = made.losses[1].epsilon;
    at("strength").textContent = strengthOf(made) + (month > TOO_MUCH && made.epsilon <= TOO_MUCH
      ? ` But a commuter’s month adds up to ε = ${upwards(month)}: ${state.unit === "trip" ? "think of protecting persons" : "think of a longer period"}.` : "");
    at("budget").value = state.hand === null ? state.budget : "by hand";
    const shown = thousandths(made.parts);
    made.variant.measured.forEach((name, n) => set(`share-${name}`, 1000, shown[n] - 1, percent(made.parts[n])));
    set("prior", PRIORS.length, state.prior, percent(PRIORS[state.prior]));
  };
  const set = (id, many, place, said) => {
    const slider = at(id);
    slider.max = many - 1;
    slider.value = place;
    slider.setAttribute("aria-valuetext", said);
    at(`${id}-value`).textContent = said;
    if (at(`${id}-setting`)) at(`${id}-setting`).hidden = many < 2;
  };

  // Moving.
  const moved = (id, change) => at(id).addEventListener("input", () => { change(Number(at(id).value)); draw(); });
  const kept = (period, zone) => data.variants[period][zone] !== null;
  const slides = () => {
    moved("amount", (value) => { state.amount = value; });
    moved("k", (value) => { state.k = value; });
    moved("period", (value) => { state.period = value; if (!kept(value, state.zone)) state.zone = data.zone; });
    moved("zone", (value) => { state.zone = value; if (!kept(state.period, value)) state.period = data.period; });
    moved("prior", (value) => { state.prior = value; });
    moved("trips", (value) => { state.trips = value > 0 ? value : null; });
    at("unit").addEventListener("change", () => { state.unit = at("unit").value; draw(); });
    at("budget").addEventListener("change", () => { state.budget = at("budget").value; state.hand = null; draw(); });
    at("again").addEventListener("click", () => { state = start(); at("trips").value = state.trips === null ? "" : state.trips; draw(); });
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    at("copy-lines").addEventListener("click", () => copy(at("snippet").textContent, "The lines are copied."));
    at("copy-all").addEventListener("click", () => copy(configuration(now(), state), "The configuration is copied."));
    addEventListener("resize", draw);
  };
  const shareSliders = () => {
    const names = data.variants[data.period][data.zone].measured;
    for (const name of names) {
      at("shares").append(html("div", { class: "setting" }, html("label", { for: `share-${name}` }, name), html("output", { id: `share-${name}-value` }),
        html("input", { id: `share-${name}`, type: "range", min: 0, step: 1 })));
      moved(`share-${name}`, (value) => shared(name, value + 1));
    }
    const named = [...new Set([data.budget, "balanced", "tables", "leaves", "uniform"])];
    for (const name of named) at("budget").append(html("option", { value: name }, BUDGETS[name] || name));
    at("budget").append(html("option", { value: "by hand", disabled: "" }, "by hand: move the sliders"));
  };
  // One table gets so many thousandths; the others share the rest as before.
  const shared = (name, wanted) => {
    const { variant, parts } = now();
    const before = thousandths(parts), own = Math.min(wanted, 1000 - (variant.measured.length - 1));
    const others = variant.measured.filter((other) => other !== name);
    const rest = others.map((other) => before[variant.measured.indexOf(other)]);
    const whole = rest.reduce((a, b) => a + b, 0);
    const dealt = thousandths([own, ...rest.map((r) => r * (1000 - own) / whole)]);
    state.hand = Object.fromEntries([[name, dealt[0]], ...others.map((other, n) => [other, dealt[n + 1]])]);
  };

  shareSliders();
  slides();
  uses();
  at("trips").value = state.trips === null ? "" : state.trips;
  draw();
})();
