  // Numbers and sentences, as `cbdp check` prints them.
  const PRIORS = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
  const BUDGETS = {
    balanced: "balanced", tables: "for tables", leaves: "for the table singleton", uniform: "evenly, as in the paper",
    optimal: "for the target in the configuration", "as given": "as the configuration states", geometric: "geometric",
  };
  const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven" });
  const say = (n) => whole.format(n);
  // So many digits. An exact tie goes to the even one, as in Python.
  const digits = (x, many) => {
    const all = x.toPrecision(60).replace(/e.*/, "").replace(/\D/g, "").replace(/^0+/, "");
    const tie = /^50*$/.test(all.slice(many)) && Number(all[many - 1]) % 2 === 0;
    return String(Number((tie ? x * (1 - 1e-12) : x).toPrecision(many)));
  };
  const amountOf = (x) => (x > 0 && x < 0.001 ? "< 0.001" : x >= 100 ? say(x) : digits(x, 3));
  const percent = (x) => { const value = 100 * x; return (value >= 10 ? say(value) : digits(value, 2)) + " %"; };
  const atMost = (x) => digits(Math.ceil(1000 * x - 1e-9) / 10, 4) + " %";
  const upwards = (x) => { const unit = 10 ** (Math.floor(Math.log10(x)) - 3); return digits(Math.ceil(x / unit - 1e-9) * unit, 4); };
  const factorOf = (epsilon) => {
    if (epsilon > 30) return "more than 10 million million";
    const value = Math.exp(epsilon), places = value >= 100 ? 0 : value > 1.99 ? 1 : 2;
    const up = Math.ceil(value * 10 ** places - 1e-9) / 10 ** places;
    return places === 0 ? say(up) : up.toFixed(places);
  };
  // A sentence about trips, about what is counted: trips or taps.
  const spoken = (text) => text.replace(/\b([Tt])rip(s?)\b/g, (_, first, many) => (first === "T" ? upper : (word) => word)(many ? data.noun.many : data.noun.one));
  const tripsWord = (n) => `${say(n)} ${n === 1 ? data.noun.one : data.noun.many}`;
  const lengthOf = (every) => {
    if (every === null) return "";
    const minutes = Number(every.replace(/\D+/, "")) * (every.endsWith("h") ? 60 : every.endsWith("min") ? 1 : 1 / 60);
    return minutes % 60 === 0 ? (minutes === 60 ? "1 hour" : `${minutes / 60} hours`) : `${digits(minutes, 4)} minutes`;
  };
  const rangeOf = (table) => (table.half === 0 ? say(table.count) : `${say(table.low)}–${say(table.high)}`);
  const example = (table) => {
    const what = data.tables[table.name];
    const subject = what === "all trips" ? `A total of ${tripsWord(table.count)}` : `${upper(what)} with ${tripsWord(table.count)}`;
    return `${subject} would be published as ${rangeOf(table)}.`;
  };
  // What a designer can and cannot do with a table.
  const usesOf = (table) => {
    const named = data.uses.filter((use) => use.within <= 1e6);
    const can = named.filter((use) => table.relative <= use.within).map((use) => use.can);
    const not = named.filter((use) => table.relative > use.within).map((use) => use.can);
    const last = data.uses[data.uses.length - 1].can;
    return (can.length ? `You can ${can.join(can.length > 2 ? ", " : " and ").replace(/, ([^,]*)$/, " and $1")}.` : `You can only ${last}.`) + (not.length ? ` You cannot ${not.join(" or ")}.` : "");
  };
  const strengthOf = (made) => data.levels.find((level) => made.epsilon <= level.upto).judgement;
  const rarely = (rare) => (rare === 0 ? "" : ` (except with a probability of ${digits(rare, 2)})`);
  const WHO = {
    trip: { name: spoken("One trip"), question: () => spoken("that a certain trip was made") },
    month: {
      name: "A commuter’s month",
      question: () => `that somebody commuted all month (${tripsWord(data.month.trips)} on each of ${data.month.days} days)`,
    },
    family: {
      name: "A family of four",
      question: (unit) => (unit.kind === "trip" ? spoken("that four people made a certain trip together")
        : `that a family of four travelled${unit.per === "release" ? "" : ` ${unit.per === "day" ? "on" : "in"} a certain ${unit.per}`}`),
    },
  };

  // The configuration. Decimal numbers are multiplied as whole numbers, so that shares add up to the last digit.
  const plain = (n, places) => {
    const text = n.toString().padStart(places + 1, "0");
    const cut = places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
    return cut.includes(".") ? cut.replace(/\.?0+$/, "") : cut;
  };
  const times = (text, thousandth) => {
    const [above, below = ""] = text.split(".");
    return plain(BigInt(above + below) * BigInt(thousandth), below.length + 3);
  };
  // Nine digits, rounded down: what the engine spends of ρ.
  const nine = (x) => { const places = 8 - Math.floor(Math.log10(x)); return plain(BigInt(Math.floor(x * 10 ** places)), Math.max(0, places)); };
  const rounded = (x) => Number(nine(x));
  const quoted = (text) => (text.includes("/") ? `"${text}"` : text);
  const literal = (text) => JSON.stringify(text);
  const chosen = (made, state) => {
    const found = {};
    let text = data.amounts[state.amount], currency = data.currency;
    const byHand = !made.named && !(state.budget === "as given" && state.hand === null && text === data.own);
    if (byHand && data.law === "gaussian" && currency === "epsilon") { text = nine(made.amount); currency = "rho"; }
    if (byHand && text.includes("/")) text = digits(made.stated, 6);
    found["privacy.epsilon"] = currency === "epsilon" ? quoted(text) : null;
    found["privacy.rho"] = currency === "rho" ? quoted(text) : null;
    if (data.law === "gaussian" && data.delta) found["privacy.delta"] = String(data.delta);
    if (state.unit !== data.unit.kind || (state.unit === "person" && made.unit.k !== data.unit.k)) found["privacy.unit"] = unitText(made.unit);
    if (state.budget !== data.budget || byHand) found["privacy.budget"] = byHand ? mapped(made, text) : literal(state.budget);
    if (state.budget !== "optimal" || byHand) found["privacy.target"] = null;
    if (state.period !== data.period) found["universe.time"] = `{ start = ${literal(data.time.start)}, end = ${literal(data.time.end)}, every = ${literal(data.periods[state.period])} }`;
    if (state.zone !== data.zone) found["universe.zones"] = `{ ${data.zoning} = ${data.zones[state.zone]} }`;
    if (state.trips !== data.trips) found["data.expected_trips"] = state.trips === null ? null : String(Math.round(state.trips));
    return found;
  };
  const mapped = (made, text) => {
    const parts = made.parts.map((p) => Math.round(1000 * p));
    return `{ ${made.variant.measured.map((name, n) => `${/^[\w-]+$/.test(name) ? name : literal(name)} = ${times(text, parts[n])}`).join(", ")} }`;
  };
  const unitText = (unit) => {
    if (unit.kind === "trip") return literal("trip");
    const more = [unit.per === "release" ? "" : `, per = ${literal(unit.per)}`, unit.apart === null ? "" : `, apart = ${literal(unit.apart)}`];
    return `{ person = ${literal(unit.column)}, max_trips = ${unit.k}${more.join("")} }`;
  };
  const linesOf = (found) => {
    const lines = [];
    for (const section of ["data", "universe", "privacy"]) {
      const inside = Object.entries(found).filter(([key, value]) => key.startsWith(`${section}.`) && value !== null);
      if (inside.length) lines.push(`[${section}]`, ...inside.map(([key, value]) => `${key.split(".")[1]} = ${value}`), "");
    }
    return lines.join("\n");
  };
  // The file itself, with the lines that change.
  const configuration = (made, state) => {
    const { lines, spans, heads } = data.toml, found = chosen(made, state), text = [...lines];
    const more = Object.fromEntries(Object.keys(heads).map((section) => [section, []]));
    const absent = {};
    for (const [key, value] of Object.entries(found)) {
      const [section, name] = key.split(".");
      if (key in spans) {
        const [from, to] = spans[key];
        for (let n = from; n < to; n += 1) text[n] = null;
        if (value !== null) text[from] = `${name} = ${value}`;
      } else if (value !== null && section in more) more[section].push(`${name} = ${value}`);
      else if (value !== null) absent[key] = value;
    }
    for (const [section, line] of Object.entries(heads)) if (more[section].length) text[line - 1] = [text[line - 1], ...more[section]].join("\n");
    const own = text.filter((line) => line !== null).join("\n");
    return Object.keys(absent).length ? `${own.trimEnd()}\n\n${linesOf(absent)}` : own;
  };
