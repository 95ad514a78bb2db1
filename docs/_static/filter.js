// A field above each long table, and above a page of many sections: what has all of its words stays.
"use strict";

const LONG = 25;

/** Put a search field before an element, which hides the items that lack one of the words typed. */
function addFilter(items, place, what, first) {
  const texts = items.map((item) => item.textContent.toLowerCase());
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  label.className = "table-filter";
  input.type = "search";
  input.placeholder = `Search these ${what}`;
  input.setAttribute("aria-label", input.placeholder);
  const narrow = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    items.forEach((item, index) => {
      item.hidden = !words.every((word) => texts[index].includes(word));
      left += !item.hidden;
    });
    shown.value = `${left} of ${items.length} ${what}`;
  };
  input.addEventListener("input", narrow);
  label.append(input, shown);
  place.before(label);
  // A link such as operators.html?q=Resize opens with that search.
  const query = new URLSearchParams(location.search).get("q");
  if (query && first) input.value = query;
  narrow();
}

/** Let a long table scroll in a window of its own. */
function box(table) {
  const wrapper = table.closest(".table-wrapper") ?? table;
  wrapper.classList.add("long");
  wrapper.tabIndex = 0;
  return wrapper;
}

/** Fold a section under its heading. */
function fold(section) {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.append(section.querySelector(":scope > h2"));
  details.append(summary, ...section.childNodes);
  section.append(details);
}

/** Open what a link leads to, where it is folded. */
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target?.closest("details") ?? target?.querySelector(":scope > details");
  if (!details) return;
  details.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", unfold);

addEventListener("DOMContentLoaded", () => {
  const sections = [...document.querySelectorAll("article section > section")];
  const parts = sections.filter((section) => section.querySelector(":scope > h2"));
  if (parts.length >= LONG) {
    parts.forEach(fold);
    addFilter(parts, parts[0], "sections", true);
  } else {
    [...document.querySelectorAll("article table")]
      .filter((table) => table.tBodies[0]?.rows.length >= LONG)
      .forEach((table, place) => addFilter([...table.tBodies[0].rows], box(table), "rows", !place));
  }
  unfold();
});
