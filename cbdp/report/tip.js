  const tip = at("tip");
  const show = (words, x, y) => {
    tip.textContent = words;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 12) : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };
