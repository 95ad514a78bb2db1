// A field above each long table: rows stay that have all of its words.
"use strict";

const LONG = 25;

/** Put a field above a table, which hides the rows that lack one of the words typed. */
function addFilter(table, place) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  label.className = "table-filter";
  input.type = "search";
  input.placeholder = "Search this table";
  input.setAttribute("aria-label", "Search this table");
  const narrow = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    rows.forEach((row, index) => {
      row.hidden = !words.every((word) => texts[index].includes(word));
      left += !row.hidden;
    });
    shown.value = `${left} of ${rows.length} rows`;
  };
  input.addEventListener("input", narrow);
  label.append(input, shown);
  (table.closest(".table-wrapper") ?? table).before(label);
  // A link such as operators.html?q=Resize opens with that search.
  const query = new URLSearchParams(location.search).get("q");
  if (query && place === 0) input.value = query;
  narrow();
}

addEventListener("DOMContentLoaded", () => {
  [...document.querySelectorAll("article table")]
    .filter((table) => table.tBodies[0]?.rows.length >= LONG)
    .forEach(addFilter);
});
