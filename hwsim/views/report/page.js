"use strict";
(function () {
  // ---------------------------------------------------------------- tables: a click on a heading sorts

  function sortable(table) {
    const body = table.tBodies[0];
    table.querySelectorAll("th").forEach(function (heading, column) {
      heading.querySelector("button").addEventListener("click", function () {
        const down = heading.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("th").forEach(function (each) { each.removeAttribute("aria-sort"); });
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = Array.from(body.rows).map(function (row, place) { return { row: row, place: place, key: keyOf(row.cells[column]) }; });
        rows.sort(function (a, b) { return compared(a.key, b.key, down) || a.place - b.place; });
        rows.forEach(function (each) { body.appendChild(each.row); });
      });
    });
  }

  function keyOf(cell) {
    const text = cell.dataset.key === undefined ? cell.textContent : cell.dataset.key;
    const number = Number(text);
    return text.trim() !== "" && !Number.isNaN(number) ? number : text;
  }

  function compared(a, b, down) { // numbers before texts, empty cells last whichever way
    const rank = function (key) { return key === "" ? 2 : typeof key === "string" ? 1 : 0; };
    if (rank(a) !== rank(b)) return rank(a) - rank(b);
    const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return down ? -order : order;
  }

  // ---------------------------------------------------------------- timelines: a row for each lane, drawn on a canvas

  const ROW = 18, AXIS = 22, LEAST = 1e-15;

  function timeline(element) {
    const data = JSON.parse(element.querySelector("script").textContent);
    const canvas = element.querySelector("canvas"), said = element.querySelector(".timeline-said");
    const pen = canvas.getContext("2d");
    const whole = data.end > 0 ? data.end : 1;
    const height = AXIS + ROW * data.lanes.length;
    let from = 0, to = whole, gutter = 0, width = 0, ratio = 0, waiting = false, held = null;
    canvas.style.height = height + "px"; // before the page is laid out: a picture never changes the size it is drawn for

    function colour(name) { return data.colours[Math.min(name, data.colours.length - 1)]; }

    function draw() {
      waiting = false;
      width = canvas.clientWidth;
      ratio = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      gutter = Math.min(170, width * 0.28);
      axis(height);
      data.lanes.forEach(function (lane, row) { drawLane(lane, AXIS + row * ROW); });
    }

    function axis(height) {
      const span = to - from, step = nice(span / Math.max(2, (width - gutter) / 110));
      pen.fillStyle = "#666";
      pen.strokeStyle = "#eee";
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        const x = across(at);
        pen.beginPath(); pen.moveTo(x, AXIS - 4); pen.lineTo(x, height); pen.stroke();
        pen.fillText(time(at, step), x + 2, 12);
      }
    }

    function drawLane(lane, top) {
      pen.fillStyle = "#222";
      pen.fillText(clipped(lane.name), 2, top + ROW - 5);
      let taken = -1; // the last pixel: of the spans that are shorter than one, its first stands for all
      for (let i = first(lane, from); i < lane.start.length && lane.start[i] <= to; i++) {
        const x = Math.max(gutter, across(lane.start[i])), end = Math.min(width, across(lane.start[i] + lane.took[i]));
        const right = Math.max(end, x + 1);
        if (end - x < 1 && Math.floor(x) === taken) continue;
        pen.fillStyle = colour(lane.of[i]);
        pen.fillRect(x, top + 2, right - x, ROW - 4);
        taken = Math.floor(x);
      }
    }

    function clipped(text) {
      let shown = text;
      while (shown.length > 3 && pen.measureText(shown).width > gutter - 6) shown = shown.slice(0, -2);
      return shown === text ? text : shown.slice(0, -1) + "\u2026";
    }

    function first(lane, at) { // the last span that starts before `at`, for it may still go on
      let low = 0, high = lane.start.length;
      while (low < high) { const middle = (low + high) >> 1; if (lane.start[middle] < at) low = middle + 1; else high = middle; }
      return Math.max(0, low - 1);
    }

    function across(at) { return gutter + (at - from) / (to - from) * (width - gutter); }
    function when(x) { return from + (x - gutter) / Math.max(1, width - gutter) * (to - from); }

    function show(low, high) {
      const span = Math.min(whole, Math.max(high - low, LEAST, whole * 1e-9));
      from = Math.min(Math.max(0, low), whole - span);
      to = from + span;
      again();
    }

    function again() { if (!waiting) { waiting = true; window.requestAnimationFrame(draw); } }
    function fitted() { return canvas.clientWidth === width && (window.devicePixelRatio || 1) === ratio; }

    function zoom(factor, around) { show(around - (around - from) * factor, around + (to - around) * factor); }

    function tell(x, y) {
      const lane = data.lanes[Math.floor((y - AXIS) / ROW)], at = when(x);
      if (!lane || x < gutter) { said.textContent = "\u00a0"; return; }
      const pixel = (to - from) / Math.max(1, width - gutter);
      for (let i = first(lane, at); i < lane.start.length && lane.start[i] <= at + pixel; i++) {
        if (at <= lane.start[i] + Math.max(lane.took[i], pixel)) {
          said.textContent = lane.name + ": " + data.names[lane.of[i]] + ", " + time(lane.took[i], 0) + ", starts at " + time(lane.start[i], 0);
          return;
        }
      }
      said.textContent = lane.name + ": nothing at " + time(at, 0);
    }

    canvas.addEventListener("pointerdown", function (event) { held = event.offsetX; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", function () { held = null; });
    canvas.addEventListener("pointercancel", function () { held = null; });
    canvas.addEventListener("pointermove", function (event) {
      if (held !== null) { const by = when(held) - when(event.offsetX); held = event.offsetX; show(from + by, to + by); }
      tell(event.offsetX, event.offsetY);
    });
    canvas.addEventListener("wheel", function (event) { // with ctrl, as browsers zoom; else the page scrolls
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, when(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("dblclick", function (event) { zoom(0.25, when(event.offsetX)); });
    canvas.addEventListener("keydown", function (event) {
      const span = to - from, keys = {
        "+": function () { zoom(0.5, (from + to) / 2); }, "=": function () { zoom(0.5, (from + to) / 2); },
        "-": function () { zoom(2, (from + to) / 2); }, "0": function () { show(0, whole); },
        ArrowLeft: function () { show(from - span / 4, to - span / 4); }, ArrowRight: function () { show(from + span / 4, to + span / 4); },
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    element.querySelectorAll("button").forEach(function (button) {
      button.addEventListener("click", function () {
        if (button.dataset.do === "all") show(0, whole);
        else zoom(button.dataset.do === "in" ? 0.5 : 2, (from + to) / 2);
      });
    });

    const names = element.querySelector(".timeline-names");
    data.names.slice(0, data.colours.length - 1).forEach(function (name, number) {
      const entry = document.createElement("span"), patch = document.createElement("i");
      patch.style.background = colour(number);
      entry.append(patch, name);
      names.append(entry, " ");
    });
    if (data.names.length >= data.colours.length) names.append("and " + (data.names.length - data.colours.length + 1) + " more (grey)");
    if (window.ResizeObserver) new ResizeObserver(function () { if (!fitted()) again(); }).observe(canvas);
    else draw();
  }

  function nice(least) {
    const power = Math.pow(10, Math.floor(Math.log10(least)));
    return [1, 2, 5, 10].map(function (each) { return each * power; }).find(function (each) { return each >= least * 0.999; });
  }

  function time(seconds, step) { // with as many digits as steps of the axis need
    const units = [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"], [1e-9, "ns"], [1e-12, "ps"], [1e-15, "fs"]];
    if (seconds === 0) return "0";
    const size = Math.abs(seconds), unit = units.find(function (each) { return size >= each[0] * 0.9995; }) || units[5];
    const digits = step > 0 ? Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit[0]) - 1e-9))) : Math.max(0, 2 - Math.floor(Math.log10(size / unit[0])));
    return (seconds / unit[0]).toFixed(digits) + " " + unit[1];
  }

  document.querySelectorAll("table").forEach(sortable);
  document.querySelectorAll(".timeline").forEach(timeline);
})();
