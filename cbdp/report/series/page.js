"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  /* tip.js */
  // one listener for the whole page: a year has thousands of marks
  document.addEventListener("pointermove", (e) => {
    const mark = e.target.closest ? e.target.closest("[data-tip]") : null;
    if (mark) show(mark.dataset.tip, e.clientX, e.clientY);
    else hide();
  });
})();
