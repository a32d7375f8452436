  // What depends on numbers that anybody may type (trips, shares by hand), as cbdp.privacy has it. All else is worked out by cbdp.forecast.page.
  // A test compares what comes out with `cbdp check`, digit by digit.

  // Noise. A law has a rate (one over its scale) for what a table gets, a precision (one over its variance), and a margin.
  const TERMS = Array.from({ length: 81 }, (_, n) => n - 40);
  const LAWS = {
    geometric: {
      rate: (amount, [l1]) => amount / l1,
      precision: (rate) => Math.max(2 * Math.sinh(rate / 2) ** 2, 2.2250738585072014e-308),
      halfWidth: (scale, sure) => {
        const decay = Math.exp(-1 / scale);
        const beyond = (k) => 2 * Math.exp(-(k + 1) / scale) / (1 + decay);
        let k = Math.max(0, Math.floor(Math.log(2 / (1 + decay) / (1 - sure)) * scale - 1) - 1);
        while (beyond(k) > 1 - sure) k += 1;
        return k;
      },
    },
    gaussian: {
      rate: (amount, [, l2]) => Math.sqrt(2 * amount / l2),
      precision: (rate) => {
        if (rate <= 1 / 3) return rate ** 2;
        const weights = TERMS.map((z) => Math.exp(-0.5 * (rate * z) ** 2));
        const square = weights.reduce((sum, w, n) => sum + w * TERMS[n] ** 2, 0) / weights.reduce((a, b) => a + b, 0);
        return 1 / Math.max(square, 1e-100);
      },
      halfWidth: (scale, sure) => {
        const whole = scale <= 1 ? TERMS.reduce((sum, z) => sum + Math.exp(-0.5 * (z / scale) ** 2), 0)
          : scale * Math.sqrt(2 * Math.PI) * (1 + 2 * Math.exp(-2 * (Math.PI * scale) ** 2));
        let k = 0, inside = 1 / whole;
        while (1 - inside > 1 - sure) { k += 1; inside += 2 * Math.exp(-0.5 * (k / scale) ** 2) / whole; }
        return k;
      },
    },
  };

  // How large counts are, from about how many trips there are: the share of elements that hold any, and the squares of what those hold.
  const NODES = [];
  for (let x = data.model.first; x <= data.model.last + 1e-9; x += data.model.step) NODES.push(x);
  const density = NODES.map((x) => Math.exp(-0.5 * x * x));
  const mass = density.reduce((a, b) => a + b, 0);
  const WEIGHTS = density.map((d) => d / mass);
  const mean = (values) => values.reduce((sum, value, n) => sum + WEIGHTS[n] * value, 0);
  const logNormal = (average, spread) => NODES.map((x) => average * Math.exp(Math.sqrt(spread) * x - spread / 2));
  const signalsOf = (variant, trips, stated) => {
    if (trips === null) return variant.names.map(() => null);
    const types = variant.types, each = trips / types;
    const guess = () => Math.max(mean(logNormal(each, 2 * data.model.spread).map((m) => -Math.expm1(-m))), 2.2250738585072014e-308);
    const filled = stated === null ? guess() : Math.min(stated, each);
    return variant.sizes.map((size) => {
      const apart = (types / size) ** data.model.gathered;
      const any = filled >= 1 ? 1 : -Math.expm1(apart * Math.log1p(-filled));
      const uneven = data.model.spread * Math.log(size) / Math.max(Math.log(types), 1);
      const beyond = Math.max(trips / size / any - 1, 0);
      return { filled: any, square: logNormal(beyond, uneven).map((x) => (1 + x) ** 2) };
    });
  };
  const riskOf = (signal, square, noise) => {
    const drowned = noise / 2 * Math.log(signal.filled) ** 2;
    const lost = drowned ** 2 / (drowned ** 2 + square ** 2);
    return square * (lost + (1 - lost) * noise / (square + noise));
  };
  const errorOf = (signal, noise) => (signal === null ? noise : signal.filled * mean(signal.square.map((s) => riskOf(signal, s, noise))));

  // Tables that agree: every table tells of each stratum that it refines, and all of them together tell it best.
  const reconciled = (variant, precision) => {
    const known = variant.told.map((row) => Math.max(row.reduce((sum, tells, n) => sum + tells * precision[n] / variant.sizes[n], 0), data.model.tiny));
    return variant.sizes.map((size, n) =>
      variant.told.reduce((sum, row, k) => sum + row[n] * variant.degrees[k] / known[k], 0) / size ** 2);
  };
  // The count that a table is judged by, and the least one that is good: as `cbdp check` has them.
  const averageOf = (trips, size) => {
    const mean = Math.max(trips / size, 1), step = size === 1 ? 1 : 10 ** Math.max(0, Math.floor(Math.log10(mean)) - 1);
    return Math.floor(mean / step + 0.5) * step;
  };
  const leastGood = (halfOf) => {
    let count = 1;
    for (let n = 0; n < 100 && halfOf(count) > data.good * count; n += 1) count = Math.ceil(halfOf(count) / data.good);
    return count;
  };
  const expected = (variant, changes, amount, parts, trips, stated) => {
    const law = LAWS[data.law], leaf = variant.leaf;
    const rates = variant.names.map((name, n) => {
      const place = variant.measured.indexOf(name);
      return place < 0 ? 0 : law.rate(amount * parts[place], changes[n]);
    });
    const precision = variant.names.map((name, n) =>
      (data.public.includes(name) ? data.model.certain : rates[n] > 0 ? law.precision(Math.min(rates[n], data.model.largest)) : 0));
    const signals = signalsOf(variant, trips, stated);
    const noise = reconciled(variant, precision);
    let told = noise;
    if (signals[leaf] !== null) {
      const sums = [...precision];
      sums[leaf] = Math.sqrt(precision[leaf] / Math.max(errorOf(signals[leaf], noise[leaf]), data.model.tiny));
      told = reconciled(variant, sums).map((v, n) => (n === leaf ? noise[leaf] : v));
    }
    return variant.names.map((name, n) => {
      const known = data.public.includes(name), size = variant.sizes[n], signal = signals[n];
      const count = signal === null ? data.unknown : averageOf(trips, size);
      const varianceOf = (c) => (signal === null ? noise[n] : Math.max(noise[n], riskOf(signal, c ** 2, noise[n])));
      const halfOf = (c) => (known ? 0 : Math.ceil(data.reach * Math.sqrt(varianceOf(c))));
      const half = halfOf(count);
      return {
        name, size, count, half, good: leastGood(halfOf), relative: half / count, low: Math.max(0, Math.floor(count) - half), high: Math.ceil(count) + half,
        error: known ? 0 : Math.sqrt(errorOf(signal, told[n])), rate: rates[n],
        margin: rates[n] > 0 ? law.halfWidth(1 / rates[n], data.confidence) : null,
        change: changes[n],
        use: signal === null && !known ? null : data.uses.find((use) => half / count <= use.within),
      };
    });
  };

  // ρ stated as (ε, δ) (Canonne, Kamath and Steinke 2020, Corollary 13): every α gives a valid δ, and bisection finds the best.
  const logDelta = (rho, epsilon) => {
    const at = (u) => u * (1 + u) * rho - u * epsilon - Math.log(u) - (1 + u) * Math.log1p(1 / u);
    let low = Math.log(1e-15), high = Math.log(epsilon / (2 * rho) + 1 / Math.sqrt(2 * rho) + 1);
    for (let n = 0; n < 60; n += 1) {
      const u = Math.exp((low + high) / 2);
      if ((2 * u + 1) * rho - epsilon - Math.log1p(1 / u) > 0) high = (low + high) / 2; else low = (low + high) / 2;
    }
    return Math.min(at(Math.exp(low)), at(Math.exp(high)));
  };
  const epsilonOf = (rho, delta) => {
    const wanted = Math.log(delta);
    let low = 0, high = rho + 2 * Math.sqrt(rho * -wanted) + 1e-12;
    for (let n = 0; n < 100; n += 1) { const middle = (low + high) / 2; if (logDelta(rho, middle) <= wanted) high = middle; else low = middle; }
    return high;
  };

  // Belief: odds grow by at most e^ε. Losses above ε are this rare where the noise is paid for in ρ (Bun and Steinke 2016).
  const believes = (prior, epsilon) => 1 / (1 + (1 - prior) / prior * Math.exp(-Math.min(epsilon, 700)));
  const rareness = (rho, epsilon) => (epsilon > rho ? Math.exp(-((epsilon - rho) ** 2) / (4 * rho)) : 1);
