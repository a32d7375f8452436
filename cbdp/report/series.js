"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  /* report/tip.js */
  // listeners of the whole page: a year has thousands of marks. A finger that taps does not move.
  for (const kind of ["pointermove", "pointerdown"])
    document.addEventListener(kind, (e) => {
      const mark = e.target.closest ? e.target.closest("[data-tip]") : null;
      if (mark) show(mark.dataset.tip, e.clientX, e.clientY);
      else hide();
    });
})();
