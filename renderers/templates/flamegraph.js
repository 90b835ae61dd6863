(function () {
  "use strict";
  var NS = "http://www.w3.org/2000/svg", XH = "http://www.w3.org/1999/xhtml", CHAR = 7.23;
  var script = document.currentScript;
  var svg = (script && script.ownerSVGElement) || document.documentElement;
  var frames = svg.querySelector("#frames"), info = svg.querySelector("#info");
  if (!frames) return;
  var hint = info.textContent, current = 0;
  var sets = (frames.getAttribute("data-sets") || "").split(";").map(parse);
  var boxes = [].map.call(frames.children, function (g) {
    var rect = g.querySelector("rect"), text = g.querySelector("text");
    return {
      g: g, rect: rect, text: text, title: g.querySelector("title").textContent,
      x: +rect.getAttribute("x"), w: +rect.getAttribute("width"),
      depth: +g.getAttribute("data-d"), set: sets[+g.getAttribute("data-s")] || []
    };
  });

  function parse(list) {
    return list.split(/[\/,]/).filter(Boolean).map(function (run) {
      var ends = run.trim().split("-");
      return [+ends[0], +(ends[1] || ends[0])];
    });
  }
  function meets(a, b) {
    return a.some(function (x) {
      return b.some(function (y) { return x[0] <= y[1] && y[0] <= x[1]; });
    });
  }
  function words(title) {
    var parts = title.split("@");
    if (parts.length < 4) return title;
    var path = parts.slice(2, -1).join("@").split("/").pop();
    var ranks = parts[parts.length - 1].split("|")[0];
    return parts[1] + " " + path + (ranks && " [" + ranks + "]");
  }
  function place(b, x, w) {
    var room = Math.floor((w - 8) / CHAR), full = words(b.title);
    b.g.style.display = "";
    b.rect.setAttribute("x", x);
    b.rect.setAttribute("width", Math.max(w, 0.5));
    if (!b.text) {
      if (room < 3) return;
      b.text = b.g.appendChild(document.createElementNS(NS, "text"));
      b.text.setAttribute("y", +b.rect.getAttribute("y") + 13);
    }
    b.text.setAttribute("x", x + 4);
    b.text.textContent = room < 3 ? "" : full.length > room ? full.slice(0, room - 1) + "…" : full;
  }
  function parent(i) {
    var j = i - 1;
    while (j >= 0 && boxes[j].depth >= boxes[i].depth) j--;
    return boxes[i].depth ? j : -1;
  }
  function end(i) {
    var j = i + 1;
    while (j < boxes.length && boxes[j].depth > boxes[i].depth) j++;
    return j;
  }
  function zoom(i) {
    var root = i, up = {};
    for (var p = parent(i); p >= 0; p = parent(p)) { up[p] = true; root = p; }
    var last = end(i), stop = end(root), all = boxes[root], at = boxes[i];
    for (var j = root; j < stop; j++) {
      var b = boxes[j];
      b.g.classList.toggle("up", !!up[j] && j !== root);
      if (up[j]) place(b, all.x, all.w);
      else if (j >= i && j < last) place(b, all.x + (b.x - at.x) * all.w / at.w, b.w * all.w / at.w);
      else b.g.style.display = "none";
    }
    focus(i);
  }
  function reset() {
    search.value = rank.value = "";
    boxes.forEach(function (b) { b.g.classList.remove("up"); place(b, b.x, b.w); });
    filter();
  }
  function filter() {
    var text = search.value.trim().toLowerCase(), want = parse(rank.value.replace(/[^\d,\/-]/g, ""));
    var on = !!(text || want.length), n = 0;
    frames.classList.toggle("q", on);
    boxes.forEach(function (b) {
      var hit = on && (!text || b.title.toLowerCase().indexOf(text) >= 0) && (!want.length || meets(want, b.set));
      b.g.classList.toggle("hit", hit);
      n += hit;
    });
    info.textContent = on ? n + (n === 1 ? " box matches" : " boxes match") : hint;
  }
  function focus(i) {
    if (i < 0 || i >= boxes.length || boxes[i].g.style.display === "none") return;
    boxes[current].g.removeAttribute("tabindex");
    current = i;
    boxes[i].g.setAttribute("tabindex", "0");
    boxes[i].g.focus({ preventScroll: false });
  }
  function sibling(i, step) {
    var d = boxes[i].depth;
    for (var j = i + step; j >= 0 && j < boxes.length && boxes[j].depth >= d; j += step) {
      if (boxes[j].depth === d && boxes[j].g.style.display !== "none") return j;
    }
    return i;
  }
  function input(x, width, name) {
    var box = svg.insertBefore(document.createElementNS(NS, "foreignObject"), frames);
    box.setAttribute("class", "ui");
    [["x", x], ["y", info.getAttribute("data-y")], ["width", width], ["height", 28]].forEach(function (a) {
      box.setAttribute(a[0], a[1]);
    });
    var field = box.appendChild(document.createElementNS(XH, "input"));
    field.setAttribute("placeholder", name);
    field.setAttribute("aria-label", name);
    field.addEventListener("input", filter);
    return field;
  }
  var right = +info.getAttribute("data-right");
  var search = input(right - 372, 240, "Search function, file, thread");
  var rank = input(right - 124, 124, "Rank, e.g. 0-7");

  frames.addEventListener("click", function (event) {
    var g = event.target.closest && event.target.closest("#frames>g");
    if (g) zoom([].indexOf.call(frames.children, g));
  });
  frames.addEventListener("mouseover", function (event) {
    var g = event.target.closest && event.target.closest("#frames>g");
    if (g) info.textContent = g.querySelector("title").textContent.slice(0, info.getAttribute("data-room"));
  });
  frames.addEventListener("mouseleave", filter);
  window.addEventListener("keydown", function (event) {
    var key = event.key, typing = event.target === search || event.target === rank;
    if ((event.ctrlKey || event.metaKey) && key === "f") search.focus();
    else if (key === "Escape") reset();
    else if (typing) return;
    else if (key === "/") search.focus();
    else if (key === "Enter") zoom(current);
    else if (key === "ArrowUp") focus(parent(current));
    else if (key === "ArrowDown") focus(end(current) > current + 1 ? current + 1 : current);
    else if (key === "ArrowLeft") focus(sibling(current, -1));
    else if (key === "ArrowRight") focus(sibling(current, 1));
    else return;
    event.preventDefault();
  });
  boxes[0].g.setAttribute("tabindex", "0");
  rank.value = (/[?&]rank=([\d,\/-]+)/.exec(location.search) || [])[1] || "";
  filter();
})();
