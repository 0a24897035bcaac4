"use strict";
// The texts of the scripts in the language of the page. An English page has no translations.
const mqText = (() => {
  const source = document.getElementById("words");
  const words = source ? JSON.parse(source.content.textContent) : {};
  return (english, values = {}) => (words[english] ?? english).replace(/\{(\w+)\}/g, (field, name) => values[name] ?? field);
})();
