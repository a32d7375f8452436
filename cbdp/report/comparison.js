"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  /* report/tip.js */
  /* report/numbers.js */
  for (const mark of document.querySelectorAll("[data-tip]")) {
    const words = () => mark.dataset.tip;
    mark.addEventListener("pointermove", (e) => show(words(), e.clientX, e.clientY));
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", () => { const box = mark.getBoundingClientRect(); show(words(), box.left, box.top); });
    mark.addEventListener("blur", hide);
  }
  const table = at("rows");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], find = at("find"), only = at("only"), said = at("shown");
  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    let many = 0;
    for (const row of rows) {
      row.hidden = (only.checked && row.dataset.out !== "1") || (wanted !== "" && ![...row.cells].some((cell) => cell.textContent.toLowerCase().includes(wanted)));
      if (!row.hidden) many += 1;
    }
    said.textContent = `${say(many)} of ${say(rows.length)} rows`;
  };
  find.addEventListener("input", filter);
  only.addEventListener("change", filter);
  const value = (row, column) => { const cell = row.cells[column]; return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value); };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort((a, b) => { const x = value(a, column), y = value(b, column); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
      body.append(...rows);
    });
  });
  filter();
})();
