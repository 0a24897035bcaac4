"use strict";
// Search, filters and permalinks. Their state is in the fragment: #f-ID&severity=critical&q=words
const mqPage = (() => {
  document.documentElement.classList.add("scripted");
  const form = document.getElementById("filters");
  const all = [...document.querySelectorAll(".finding")];
  const branches = [...document.querySelectorAll(".branch")].reverse();
  const marks = [...document.querySelectorAll("#p-when a[href^='#f-']")];
  const kinds = [...document.querySelectorAll("#p-when [data-kind]")];
  const texts = new Map();
  const fields = ["q", "kind", "consumer_group", "topic", "broker_name", "from", "to"];
  const boxes = form ? [...form.querySelectorAll("[name=severity]")] : [];

  const folder = warehouse();

  // A page in the report folder of a warehouse knows where that is. Its commands can be run as they are.
  function warehouse() {
    try {
      const [, path] = /^file:\/\/(.+)\/report\/[^/]+$/.exec(decodeURIComponent(location.href.split("#")[0])) || [];
      return path && (/^[\w@%+=:,./-]+$/.test(path) ? path : "'" + path.replaceAll("'", "'\"'\"'") + "'");
    } catch {
      return "";
    }
  }

  function filled(text) {
    return folder ? text.replace("--warehouse …", () => "--warehouse " + folder) : text;
  }

  function copyButton(code) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy" });
    button.setAttribute("aria-label", mqText("Copy {command}", { command: code.textContent.split(" --")[0] }));
    button.dataset.words = mqText("copy");
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      let done = document.execCommand("copy");
      if (!done) done = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
      button.dataset.did = done ? mqText("copied") : mqText("selected");
      setTimeout(() => { delete button.dataset.did; }, 1500);
    });
    return button;
  }

  function command(text) {
    const code = document.createElement("code");
    code.className = "command";
    code.textContent = filled(text);
    return [code, copyButton(code)];
  }

  for (const code of document.querySelectorAll("code")) {
    const last = code.lastChild;
    if (folder && last?.nodeType === Node.TEXT_NODE) last.data = filled(last.data);
    if (code.classList.contains("command")) code.after(copyButton(code));
  }
  if (folder) document.getElementById("fill")?.remove();

  function number(value) {
    return value.toLocaleString("en-US");
  }

  function text(finding) {
    if (!texts.has(finding)) texts.set(finding, (finding.textContent + " " + finding.id).toLowerCase());
    return texts.get(finding);
  }

  function wanted() {
    const state = {};
    for (const name of fields) if (form.elements[name].value.trim()) state[name] = form.elements[name].value.trim();
    for (const name of ["from", "to"]) {
      if (state[name] && !state[name].includes("T")) state[name] = form.dataset.day + "T" + state[name];
    }
    const severities = boxes.filter((box) => box.checked).map((box) => box.value);
    if (severities.length) state.severity = severities.join(",");
    return state;
  }

  function matches(finding, state, words) {
    const data = finding.dataset;
    const has = (name) => !state[name] || data[name].toLowerCase().includes(state[name].toLowerCase());
    return (!state.severity || state.severity.split(",").includes(data.severity))
      && (!state.kind || data.kind === state.kind)
      && has("consumer_group") && has("topic") && has("broker_name")
      && (!state.from || !data.to || data.to >= state.from)
      && (!state.to || !data.from || data.from <= state.to)
      && words.every((word) => text(finding).includes(word));
  }

  function filter() {
    const state = wanted();
    const words = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const active = Object.keys(state).length > 0;
    let count = 0;
    for (const finding of all) {
      const match = matches(finding, state, words);
      finding.classList.toggle("context", active && !match);
      count += match;
    }
    // Inner branches come first: a cause stays as the context of an effect that matches.
    for (const branch of branches) {
      branch.hidden = active && !branch.querySelector(".finding:not(.context), .branch:not([hidden])");
      const folded = branch.parentElement.closest("details.fold");
      if (active && !branch.hidden && folded) folded.open = true;
    }
    for (const box of document.querySelectorAll(".card.list, .effects, .effects > .fold")) {
      box.hidden = active && !box.querySelector(".branch:not([hidden])");
    }
    for (const words of document.querySelectorAll(".effects-shown")) {
      const left = words.closest(".effects").querySelectorAll(".finding:not(.context)").length;
      words.textContent = !active ? "" : left === 1 ? mqText(", 1 matches") : mqText(", {n} match", { n: number(left) });
    }
    filterTimes(active);
    const findings = all.length === 1 ? mqText("1 finding") : mqText("{n} findings", { n: number(all.length) });
    document.getElementById("matches").textContent =
      active ? mqText("{n} of {findings} match", { n: number(count), findings }) : findings;
    document.getElementById("nothing").hidden = count > 0;
    form.querySelector("[type=reset]").hidden = !active;
  }

  // "Findings over the night" marks what the list shows.
  function filterTimes(active) {
    const counts = new Map();
    for (const finding of all) {
      if (!finding.classList.contains("context")) counts.set(finding.dataset.kind, (counts.get(finding.dataset.kind) || 0) + 1);
    }
    for (const mark of marks) {
      const finding = document.getElementById(mark.getAttribute("href").slice(1));
      mark.classList.toggle("out", Boolean(finding?.classList.contains("context")));
    }
    for (const words of kinds) {
      const left = counts.get(words.dataset.kind) || 0;
      words.classList.toggle("faint", active && !left);
      if (words.classList.contains("p-end")) words.textContent = number(left);
    }
  }

  function parsed() {
    const state = { at: "" };
    for (const part of location.hash.slice(1).split("&")) {
      const cut = part.indexOf("=");
      if (cut < 0) state.at = part;
      else try { state[part.slice(0, cut)] = decodeURIComponent(part.slice(cut + 1)); } catch { /* not ours */ }
    }
    return state;
  }

  function fragment(at) {
    const parts = Object.entries(wanted()).map(([key, value]) => key + "=" + encodeURIComponent(value));
    const moment = location.hash.slice(1).split("&").filter((part) => part.startsWith("t="));
    return [...(at ? [at] : []), ...parts, ...moment].join("&");
  }

  function show(id) {
    for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
    const element = id && document.getElementById(id);
    if (!element) return;
    for (let up = element; up; up = up.parentElement) {
      up.hidden = false;
      if (up.tagName === "DETAILS") up.open = true;
    }
    if (element.matches(".finding, .part")) {
      element.classList.add("target");
      if (!element.hasAttribute("tabindex")) element.tabIndex = -1;
      element.focus({ preventScroll: true });
    }
    element.scrollIntoView({ block: element.classList.contains("finding") ? "center" : "start" });
  }

  // A picture that is wider than the screen shows the mark of the finding that led to it.
  function showMark(id, finding) {
    const box = document.getElementById(id)?.querySelector(".picture-box");
    const mark = box?.querySelector("a[href='#" + finding + "']");
    if (mark) box.scrollLeft += mark.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
  }

  function read() {
    const state = parsed();
    if (form) {
      for (const name of fields) {
        const value = state[name] || "";
        form.elements[name].value = form.elements[name].type === "time" ? value.slice(value.indexOf("T") + 1) : value;
      }
      const severities = (state.severity || "").split(",");
      for (const box of boxes) box.checked = severities.includes(box.value);
      filter();
    }
    show(state.at);
    delete state.t;
    if (!state.at && Object.keys(state).length > 1) form?.scrollIntoView({ block: "start" });
  }

  function changed() {
    filter();
    const hash = fragment("");
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const to = link.getAttribute("href").slice(1);
    if (to.startsWith("t=")) return;
    event.preventDefault();
    // A link to a place keeps the filters; a link with filters replaces them.
    const hash = "#" + (to.includes("=") || !form ? to : fragment(to));
    if (hash !== location.hash) history.pushState(null, "", hash);
    read();
    const finding = link.closest(".finding");
    if (finding) showMark(to, finding.id);
  });
  addEventListener("hashchange", read);
  if (form) {
    form.hidden = false;
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(changed));
  }
  read();
  return { command };
})();
