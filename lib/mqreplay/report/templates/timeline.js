// One time axis for all pictures: they zoom and pan together, and the cursor goes through all of them.
(() => {
  if (!mqCursor || !document.querySelector("svg.timed")) return mqCursor?.start();
  const LEFT = 200, PLOT = 740, NEAR = 7, MOST = 60;
  const SVG = document.querySelector("svg").namespaceURI;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const { data, panel } = mqCursor;
  let from = 0, to = data.n, drawing = 0, held = null, pinched = null;
  const pictures = [...document.querySelectorAll("svg.timed")].map((svg) => ({ svg, marks: null }));

  function make(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  }

  const place = (ms) => LEFT + PLOT * (ms - from) / (to - from);
  const moved = (x) => LEFT + ((x - LEFT) / PLOT * data.n - from) / (to - from) * PLOT;
  const digits = (value) => Math.round(value * 10) / 10;

  // Absolute places in a path move; relative ones are the shape of a mark.
  function pathMover(element, d) {
    const parts = d.match(/[MLHVZmhvlacz]|-?[\d.]+/g) || [];
    if (/hatch/.test(element.getAttribute("class"))) return hatchMover(element, parts);
    let letter = "", index = 0;
    const tokens = parts.map((part) => {
      if (/[A-Za-z]/.test(part)) { letter = part; index = 0; return part; }
      const isX = letter === "H" || ("ML".includes(letter) && index % 2 === 0);
      index += 1;
      return isX ? Number(part) : part;
    });
    return () => element.setAttribute("d", tokens.map((each) => typeof each === "number" ? digits(moved(each)) : each).join(" "));
  }

  function hatchMover(element, parts) {
    const numbers = parts.filter((part) => !/[A-Za-z]/.test(part)).map(Number);
    if (!numbers.length) return () => {};
    const xs = numbers.filter((_, i) => i % 2 === 0), ys = numbers.filter((_, i) => i % 2);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    return () => {
      const a = Math.max(moved(left), LEFT - 20), b = Math.min(moved(right), LEFT + PLOT + 20), h = bottom - top;
      let d = "";
      for (let x = a - h + 7; x < b; x += 7) {
        const l = Math.max(x, a), r = Math.min(x + h, b);
        if (r > l) d += `M${digits(l)} ${digits(bottom - (l - x))}L${digits(r)} ${digits(bottom - (r - x))}`;
      }
      element.setAttribute("d", d);
    };
  }

  function mover(element) {
    const transform = /^translate\(([-\d.]+) ([-\d.]+)\)/.exec(element.getAttribute("transform") || "");
    if (transform) {
      const x = Number(transform[1]);
      return () => element.setAttribute("transform", `translate(${digits(moved(x))} ${transform[2]})`);
    }
    if (element.tagName === "path") return pathMover(element, element.getAttribute("d"));
    const x = Number(element.getAttribute("x")), width = Number(element.getAttribute("width") || 0);
    if (element.classList.contains("p-plate")) {
      return () => element.setAttribute("x", digits(moved(x + width / 2) - width / 2));
    }
    if (element.classList.contains("p-letter")) return () => element.setAttribute("x", digits(moved(x - 4) + 4));
    return () => {
      element.setAttribute("x", digits(moved(x)));
      // What is drawn at its least width is a mark.
      if (width > 3) element.setAttribute("width", digits(moved(x + width) - moved(x)));
    };
  }

  function begins(element) {
    if (element.tagName === "a") return Math.max(...[...element.children].map(begins));
    const transform = /^translate\(([-\d.]+)/.exec(element.getAttribute("transform") || "");
    if (transform) return Number(transform[1]);
    if (element.tagName === "path") return Number(/^M(-?[\d.]+)/.exec(element.getAttribute("d"))?.[1] ?? 0);
    return element.hasAttribute("x") ? Number(element.getAttribute("x")) : 0;
  }

  // What lies on the time axis goes into an inner picture, which cuts off what is outside.
  function split(picture) {
    const { svg } = picture;
    const [, , , height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const inner = document.createElementNS(SVG, "svg");
    for (const [key, value] of Object.entries({ y: 0, height, class: "plot" })) inner.setAttribute(key, value);
    const timed = [...svg.children].filter((element) => !["title", "g"].includes(element.tagName)
      && !element.matches(".p-cursor-group, .p-place, .p-axis, .p-rule") && begins(element) >= LEFT);
    const axis = svg.querySelector(".p-axis");
    picture.height = height;
    picture.axis = Number(/M\S+ ([\d.]+)/.exec(axis.getAttribute("d"))[1]);
    for (const old of svg.querySelectorAll(".p-grid, .p-tick")) old.remove();
    inner.append(...timed.filter((element) => !element.matches(".p-grid, .p-tick")));
    picture.ticks = document.createElementNS(SVG, "g");
    picture.inner = inner;
    inner.prepend(picture.ticks);
    svg.insertBefore(inner, picture.cursor.parentElement);
    picture.marks = [...inner.querySelectorAll("rect, path, text")].map(mover);
  }

  function drawTicks(picture) {
    const seconds = (to - from) / 1_000;
    const step = (STEPS.find((each) => seconds / each <= 7) || 86_400) * 1_000;
    picture.ticks.replaceChildren();
    for (let at = Math.ceil((data.f + from) / step) * step; at <= data.f + to; at += step) {
      const x = digits(place(at - data.f)), label = new Date(at).toISOString();
      make("path", { class: "p-grid", d: `M${x} 4V${picture.axis}` }, picture.ticks);
      make("text", { class: "p-t p-dim p-mid p-tick", x, y: picture.axis + 17 }, picture.ticks).textContent =
        step >= 86_400_000 ? label.slice(5, 10) : step >= 60_000 ? label.slice(11, 16) : label.slice(11, 19);
    }
  }

  function redraw() {
    drawing = 0;
    for (const picture of pictures) {
      if (!picture.marks) split(picture);
      for (const move of picture.marks) move();
      // At its begin the night has room for whole marks; elsewhere nothing covers the labels.
      const left = from > 0 ? LEFT : LEFT - NEAR;
      picture.inner.setAttribute("x", left);
      picture.inner.setAttribute("width", LEFT + PLOT + NEAR - left);
      picture.inner.setAttribute("viewBox", `${left} 0 ${LEFT + PLOT + NEAR - left} ${picture.height}`);
      drawTicks(picture);
      picture.svg.dataset.from = Math.round(from);
      picture.svg.dataset.to = Math.round(to);
    }
    drawCursor(mqCursor.at());
  }

  function view(begin, end) {
    const width = Math.min(Math.max(end - begin, data.n / MOST), data.n);
    const middle = Math.min(Math.max((begin + end) / 2, width / 2), data.n - width / 2);
    if (width === to - from && middle === (from + to) / 2) return;
    [from, to] = [middle - width / 2, middle + width / 2];
    drawing ||= requestAnimationFrame(redraw);
  }

  function zoom(factor, around = mqCursor.at()) {
    const still = around < from || around > to ? (from + to) / 2 : around;
    view(still - (still - from) / factor, still + (to - still) / factor);
  }

  const pan = (share) => view(from + (to - from) * share, to + (to - from) * share);

  // A page opens at the names of the rows, on a small screen too: only a cursor that was moved comes into view.
  let isMoved = /[#&]t=/.test(location.hash);

  function drawCursor(ms) {
    const x = digits(place(ms)), shown = x >= LEFT - 1 && x <= LEFT + PLOT + 1;
    for (const picture of pictures) {
      const { cursor, plate, label } = picture;
      cursor.parentElement.setAttribute("visibility", shown ? "visible" : "hidden");
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      const middle = Math.min(Math.max(x, LEFT + 31), LEFT + PLOT - 10);
      plate.setAttribute("x", middle - 31);
      label.setAttribute("x", middle);
      label.textContent = mqCursor.text(ms).slice(-8);
      const box = picture.svg.parentElement;
      if (isMoved && shown && !held && !pinched && box.scrollWidth > box.clientWidth) {
        const seen = x / 960 * box.scrollWidth - box.scrollLeft;
        if (seen < 40 || seen > box.clientWidth - 40) box.scrollLeft += seen - box.clientWidth / 2;
      }
    }
  }

  // Two fingers zoom and pan: the instants under them stay there. One finger scrolls (touch-action in cursor.css).
  function pinches(svg, box, at) {
    const fingers = new Map();
    const instants = () => [...fingers.values()].map(at).sort((a, b) => a - b);
    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch") return;
      fingers.set(event.pointerId, event);
      pinched = fingers.size === 2 ? instants() : null;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, event);
      if (!pinched) return;
      const [left, right] = instants().map((ms) => (ms - from) / (to - from));
      if (right - left < .01) return;
      const width = (pinched[1] - pinched[0]) / (right - left);
      view(pinched[0] - left * width, pinched[0] + (1 - left) * width);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, (event) => {
        if (fingers.delete(event.pointerId)) pinched = null;
      });
    }
    // Without this, the browser takes two fingers for a scroll.
    box.addEventListener("touchmove", (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    }, { passive: false });
  }

  for (const picture of pictures) {
    const { svg } = picture, height = Number(svg.getAttribute("viewBox").split(" ")[3]);
    const axis = Number(/M\S+ ([\d.]+)/.exec(svg.querySelector(".p-axis").getAttribute("d"))[1]);
    make("rect", { class: "p-axis-area", x: LEFT, y: axis, width: PLOT, height: Math.min(24, height - axis) }, svg);
    const group = make("g", { class: "p-cursor-group", "aria-hidden": "true" }, svg);
    picture.cursor = make("line", { class: "p-cursor", y1: 0, y2: axis + 4 }, group);
    picture.plate = make("rect", { class: "p-cursor-plate", y: axis + 4, width: 62, height: 17, rx: 4 }, group);
    picture.label = make("text", { class: "p-cursor-label p-mid", y: axis + 16.5 }, group);
    const box = svg.parentElement;

    const at = (event) => {
      const bounds = svg.getBoundingClientRect();
      return from + ((event.clientX - bounds.left) / bounds.width * 960 - LEFT) / PLOT * (to - from);
    };
    const inPlot = (event) => at(event) >= from - (to - from) * .02 && at(event) <= to + (to - from) * .03
      && !event.target.closest("a, .p-legend");
    pinches(svg, box, at);
    svg.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch" || !inPlot(event)) return;
      held = { pans: event.shiftKey || event.target.classList.contains("p-axis-area"), at: at(event) };
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
      box.focus({ preventScroll: true });
      if (!held.pans) mqCursor.move(Math.min(Math.max(at(event), from), to));
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const here = at(event);
      if (held.pans) view(from + held.at - here, to + held.at - here);
      else mqCursor.move(Math.min(Math.max(here, from), to));
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { held = null; });
    // A finger that drags scrolls; one that taps sets the cursor.
    svg.addEventListener("click", (event) => {
      if (event.pointerType === "touch" && inPlot(event)) mqCursor.move(at(event));
    });
    svg.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(-event.deltaY / 250), at(event));
      } else if ((event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) && to - from < data.n) {
        event.preventDefault();
        pan((event.deltaX || event.deltaY) / 900);
      }
    }, { passive: false });
    box.addEventListener("keydown", (event) => {
      if (event.target !== box || event.ctrlKey || event.altKey || event.metaKey) return;
      const step = Math.max((to - from) / 150, 1_000);
      const does = {
        ArrowLeft: () => event.shiftKey ? pan(-.2) : mqCursor.move(mqCursor.at() - step),
        ArrowRight: () => event.shiftKey ? pan(.2) : mqCursor.move(mqCursor.at() + step),
        Home: () => mqCursor.move(0), End: () => mqCursor.move(data.n),
        "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: () => view(0, data.n),
        " ": () => mqCursor.play(),
      }[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
  }

  const buttons = { in: () => zoom(1.8), out: () => zoom(1 / 1.8), left: () => pan(-.3), right: () => pan(.3), all: () => view(0, data.n) };
  panel.addEventListener("click", (event) => buttons[event.target.dataset?.do]?.());
  mqCursor.listen((ms) => {
    if (ms < from || ms > to) view(ms - (to - from) / 2, ms + (to - from) / 2);
    drawCursor(ms);
  });
  mqCursor.start();
  isMoved = true;
})();
