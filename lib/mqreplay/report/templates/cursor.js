"use strict";
// The state at the cursor. Its instant is in the fragment: #t=02:51:30
const mqCursor = (() => {
  const panel = document.getElementById("moment");
  const source = document.getElementById("states");
  if (!panel || !source) return null;
  const data = JSON.parse(source.content.textContent);
  const box = panel.querySelector(".state");
  const field = panel.querySelector("[name=moment]");
  const range = panel.querySelector("[name=cursor]");
  const button = panel.querySelector("[data-do=play]");
  const signs = [["◆", "critical"], ["▲", "warning"], ["●", "info"]];
  const day = (ms) => new Date(data.f + ms).toISOString();
  const oneDay = day(0).slice(0, 10) === day(data.n).slice(0, 10);
  const listeners = [];
  let now = data.n, timer = 0;

  function text(ms) {
    return oneDay ? day(ms).slice(11, 19) : day(ms).slice(0, 19);
  }

  // A time of day without a date is its last one within the night.
  function parse(words) {
    const found = /^(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(words.trim());
    if (!found || found[2] > 23 || found[3] > 59 || (found[4] || 0) > 59) return null;
    const clock = found[2].padStart(2, "0") + ":" + found[3] + ":" + (found[4] || "00") + "Z";
    let ms = Date.parse((found[1] || day(data.n).slice(0, 10)) + "T" + clock) - data.f;
    if (!found[1] && ms > data.n) ms -= 86_400_000;
    return Number.isFinite(ms) ? ms : null;
  }

  function valueAt(steps, at) {
    let low = 0, high = steps.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[2 * middle] <= at) low = middle + 1; else high = middle;
    }
    return low ? steps[2 * low - 1] : null;
  }

  function state(ms) {
    const slot = Math.floor(ms / data.s);
    const groups = data.g.map(([name, anchor, members, without, lag]) => ({
      name, anchor, members: valueAt(members, ms), without: without.length ? valueAt(without, ms) : null,
      lag: lag.length ? valueAt(lag, slot) : null,
    })).filter((group) => group.members || group.without || group.lag !== null);
    const brokers = data.b.map(([name, anchor, steps]) => ({ name, anchor, up: valueAt(steps, ms) }));
    const open = data.o.filter((finding) => finding[4] <= ms && (finding[5] === null || finding[5] >= ms));
    return { groups, brokers, open, lagAt: slot * data.s };
  }

  function make(tag, words, css) {
    const element = document.createElement(tag);
    if (words !== undefined) element.textContent = words;
    if (css) element.className = css;
    return element;
  }

  function link(anchor, words) {
    if (!anchor) return make("bdi", words);
    const made = make("a", words);
    made.href = "#" + anchor;
    return made;
  }

  function number(value) {
    return value === null ? "–" : value.toLocaleString("en-US");
  }

  function list(title, items) {
    const made = make("ul");
    for (const item of items) {
      const line = make("li");
      line.append(...item);
      made.append(line);
    }
    return [make("h3", title), made];
  }

  function groupTable(groups) {
    const worst = (group) => (group.without && group.members !== 0 ? 1e15 : 0) + (group.lag ?? -1);
    const shown = [...groups].sort((a, b) => worst(b) - worst(a)).slice(0, 8);
    const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const [words, css] of [[mqText("group"), ""], [mqText("members"), "n"], [mqText("no owner"), "n"], [mqText("lag"), "n"]]) {
      const cell = make("th", words, css);
      cell.scope = "col";
      head.append(cell);
    }
    for (const group of shown) {
      const row = body.insertRow();
      row.dataset.group = group.name;
      if (group.without && group.members !== 0) row.className = "odd";
      row.insertCell().append(link(group.anchor, group.name));
      for (const value of [group.members, group.without, group.lag]) row.append(make("td", number(value), "n"));
    }
    const left = groups.length - shown.length + data.m;
    const more = left === 1 ? mqText("1 more group") : mqText("{n} more groups", { n: number(left) });
    return [table, ...(left > 0 ? [make("p", more, "dim")] : [])];
  }

  function draw() {
    const { groups, brokers, open, lagAt } = state(now);
    const up = brokers.filter((broker) => broker.up === 1).length;
    const odd = brokers.filter((broker) => broker.up !== 1);
    const items = odd.slice(0, 6).map((broker) => [
      make("span", broker.up === 0 ? "✕ " : "? ", broker.up === 0 ? "bad" : "unsure"), link(broker.anchor, broker.name),
      document.createTextNode(broker.up === 0 ? mqText(" does not answer") : mqText(" was not asked")),
    ]);
    if (odd.length > 6) items.push([make("span", mqText("{n} more", { n: odd.length - 6 }), "dim")]);
    const findings = open.slice(0, 6).map(([id, severity, kind, place]) => [
      make("span", signs[severity][0] + " ", "tag " + signs[severity][1]), link("f-" + id, kind),
      ...(place ? [document.createTextNode(" "), make("bdi", place, "dim")] : []),
    ]);
    if (open.length > 6) findings.push([make("span", mqText("{n} more", { n: open.length - 6 }), "dim")]);
    const orphans = groups.reduce((sum, group) => sum + (group.members === 0 ? 0 : group.without || 0), 0);
    const short = [
      mqText("{n} of {all} brokers up", { n: up, all: brokers.length }),
      open.length === 1 ? mqText("1 finding open") : mqText("{n} findings open", { n: open.length }),
    ];
    if (orphans) short.push(orphans === 1 ? mqText("1 queue without owner") : mqText("{n} queues without owner", { n: orphans }));
    panel.querySelector(".short").textContent = short.join(" · ");
    const command = make("p", "", "note");
    command.append(...mqPage.command(`mqreplay at ${text(now)}${panel.dataset.tail}`));
    box.replaceChildren(
      ...(odd.length ? list(mqText("Brokers"), items) : []), ...(findings.length ? list(mqText("Open findings"), findings) : []),
      ...(groups.length ? [make("h3", mqText("Groups, lag as of {time}", { time: text(lagAt) })), ...groupTable(groups)] : []), command,
    );
    for (const each of document.querySelectorAll(".part[open] .cursor-time")) each.textContent = text(now);
    field.value = text(now);
    field.removeAttribute("aria-invalid");
    range.value = now;
    range.setAttribute("aria-valuetext", text(now) + " UTC");
  }

  function remember() {
    const others = location.hash.slice(1).split("&").filter((part) => part && !part.startsWith("t="));
    history.replaceState(null, "", "#" + [...others, "t=" + text(now)].join("&"));
  }

  // Whole seconds of the clock: the recording itself may begin within one.
  function second(ms, rounded = Math.round) {
    return rounded((data.f + ms) / 1_000) * 1_000 - data.f;
  }

  function move(ms, keep = true) {
    now = Math.min(Math.max(second(ms), 0), data.n);
    draw();
    for (const listener of listeners) listener(now);
    if (keep && !timer) remember();
  }

  function play() {
    const going = !timer;
    button.setAttribute("aria-pressed", String(going));
    button.setAttribute("aria-label", going ? mqText("Pause") : mqText("Play"));
    button.textContent = going ? "❚❚" : "▶";
    clearInterval(timer);
    timer = 0;
    if (!going) return remember();
    if (now >= data.n - 1_000) move(0);
    const step = Math.max(data.n / 600, 1_000);
    let at = now;
    timer = setInterval(() => {
      at += step;
      move(at, false);
      if (at >= data.n) play();
    }, 100);
  }

  function fromFragment() {
    const part = location.hash.slice(1).split("&").find((each) => each.startsWith("t="));
    const ms = part ? parse(decodeURIComponent(part.slice(2))) : null;
    if (ms !== null) move(ms, false);
    return ms !== null;
  }

  panel.hidden = false;
  range.max = data.n;
  if (!oneDay) field.classList.add("days");
  button.addEventListener("click", play);
  range.addEventListener("input", () => move(Number(range.value)));
  field.addEventListener("change", () => {
    const ms = parse(field.value);
    if (ms === null) field.setAttribute("aria-invalid", "true"); else move(ms);
  });
  document.addEventListener("click", (event) => {
    const to = event.target.closest?.("a[href^='#t=']");
    if (!to || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const ms = parse(to.getAttribute("href").slice(3));
    if (ms === null) return;
    move(ms);
    document.getElementById("pictures").scrollIntoView({ block: "start" });
    panel.focus({ preventScroll: true });
  });
  document.addEventListener("toggle", (event) => {
    for (const each of event.target.querySelectorAll?.(".cursor-time") || []) each.textContent = text(now);
  }, true);
  addEventListener("hashchange", fromFragment);
  return {
    data, move, text, play, panel,
    at: () => now,
    listen: (listener) => { listeners.push(listener); listener(now); },
    start() {
      if (fromFragment()) {
        if (location.hash.startsWith("#t=")) document.getElementById("pictures").scrollIntoView({ block: "start" });
      } else move(data.o.length ? second(data.o[0][4], Math.ceil) : data.n, false);
    },
  };
})();
