  // Numbers with separators, and how many of something there are: as cbdp.numbers writes them.
  const whole = new Intl.NumberFormat("en-GB");
  const say = (n) => whole.format(n);
  const counted = (n, one, many) => `${say(n)} ${n === 1 ? one : many}`;
