"use strict";
// Search. Its words are in the fragment: #q=words
(() => {
  const form = document.getElementById("filters");
  const field = form.elements.q;
  const rows = [...document.querySelectorAll(".found, .listed")];
  const nights = [...document.querySelectorAll(".night")];
  const texts = new Map(rows.map((row) => [row, (row.textContent + " " + row.dataset.cluster).toLowerCase()]));

  function filter() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const clusters = new Set();
    let count = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      count += !row.hidden;
      if (!row.hidden) clusters.add(row.dataset.cluster);
    }
    // A cluster stays with any of its findings.
    for (const row of document.querySelectorAll(".found")) row.hidden = !clusters.has(row.dataset.cluster);
    for (const night of nights) night.hidden = !clusters.has(night.dataset.cluster);
    const all = document.querySelectorAll(".found").length;
    const shown = document.querySelectorAll(".found:not([hidden])").length;
    const found = all === 1 ? mqText("1 cluster") : mqText("{n} clusters", { n: all });
    document.getElementById("matches").textContent =
      words.length ? mqText("{n} of {clusters} match", { n: shown, clusters: found }) : found;
    document.getElementById("nothing").hidden = count > 0;
    form.querySelector("[type=reset]").hidden = !words.length;
  }

  function read() {
    const query = location.hash.startsWith("#q=") ? location.hash.slice(3) : null;
    if (query !== null) try { field.value = decodeURIComponent(query); } catch { /* not ours */ }
    filter();
  }

  function changed() {
    filter();
    const words = field.value.trim();
    history.replaceState(null, "", words ? "#q=" + encodeURIComponent(words) : location.pathname + location.search);
  }

  form.hidden = false;
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(changed));
  addEventListener("hashchange", read);
  read();
})();
