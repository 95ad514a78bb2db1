"use strict";
/* Shows the report that the page holds. Text of a model only ever becomes text: see `make`. */
let data;
const SVG = "http://www.w3.org/2000/svg";
const SHOWN = 200;

/* What cannot be seen, or turns the reading direction round, as an escape. */
function clean(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
function short(text, limit) {
  const cleaned = clean(text);
  return cleaned.length <= limit ? cleaned : `${cleaned.slice(0, limit * 2 / 3)}…${cleaned.slice(-limit / 3)}`;
}
function make(tag, attributes, ...children) {
  const drawn = ["svg", "g", "rect", "text", "path", "title", "defs", "marker"].includes(tag);
  const element = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null) element.setAttribute(name, clean(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}
const number = (value) => typeof value === "number" ? value.toLocaleString("en") : String(value);
const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
const brief = (value) => typeof value === "number" ? (value === 0 ? "0" : value.toPrecision(3)) : String(value);
function bytes(value) {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  while (value >= 1000 && at < 3) { value /= 1000; at += 1; }
  return `${at ? value.toFixed(1) : number(value)} ${units[at]}`;
}
const card = (title, value) => make("div", {class: "card"}, make("span", {}, title), make("b", {}, value));
/* A table in a frame of its own, which scrolls where it is wider than the screen. */
const table = (heads, rows) => make("div", {class: "frame"}, bareTable(heads, rows));
function bareTable(heads, rows) {
  const counts = heads.map((_, at) => rows.some((row) => typeof row[at] === "number"));
  const cell = (tag, item, at) => {
    const head = {"data-head": heads[at] ? `${heads[at]}: ` : ""};
    if (counts[at] && !(item instanceof Node)) return make(tag, {...head, class: "num"}, number(item));
    const text = item instanceof Node ? item.textContent : item;
    return make(tag, text.length <= 26 ? {...head, class: "brief"} : head, item);
  };
  return make("table", {},
    make("thead", {}, make("tr", {}, heads.map((head, at) => make("th", counts[at] ? {class: "num", scope: "col"} : {scope: "col"}, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((item, at) => cell("td", item, at))))));
}
/* A table of models that is filtered by a text and sorted by a column. */
function filtered(heads, rows, onFilter) {
  const shown = bareTable(heads, rows);
  const lines = [...shown.tBodies[0].rows];
  const keys = rows.map((row) => row.map((item) => item instanceof Node ? item.textContent : item));
  const told = make("p", {class: "dim", role: "status"});
  const look = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = keys.map((row) => row.join(" ").toLowerCase().includes(wanted));
    lines.forEach((line, at) => { line.hidden = !found[at]; });
    onFilter(found);
    told.textContent = wanted ? `${counted(found.filter(Boolean).length, "model")} of ${number(rows.length)}` : "";
  };
  const filter = make("input", {type: "search", placeholder: "Filter by name, result or reason", "aria-label": "Filter models", input: look});
  [...shown.tHead.rows[0].cells].forEach((head, at) => {
    if (!heads[at]) return;
    const sort = () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      [...shown.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
      const order = rows.map((_, index) => index).sort((a, b) => {
        const [first, second] = [keys[a][at], keys[b][at]];
        return way * (typeof first === "number" && typeof second === "number" ? first - second : String(first).localeCompare(String(second), "en", {numeric: true}));
      });
      shown.tBodies[0].append(...order.map((index) => lines[index]));
    };
    head.replaceChildren(make("button", {class: "sort", type: "button", click: sort}, heads[at]));
  });
  return [filter, told, make("div", {class: "frame sorted"}, shown)];
}
function part(title, ...content) {
  const found = content.flat().filter(Boolean);
  return found.length ? make("section", {}, make("h2", {}, title), found) : null;
}
function badge(text, kind) { return make("span", {class: `badge ${kind}`}, text); }
function notes(lines) { return lines.length ? make("ul", {class: "notes"}, lines.map((line) => make("li", {}, line))) : null; }

/* Drawings of changes */
function draw(nodes, constants, label) {
  const graph = new dagre.graphlib.Graph({multigraph: true});
  graph.setGraph({rankdir: "TB", nodesep: 22, ranksep: 30, marginx: 12, marginy: 12});
  graph.setDefaultEdgeLabel(() => ({}));
  const makers = new Map();
  nodes.forEach((node, at) => {
    const lines = [node.op_type, short(node.name, 34)];
    const told = Object.entries(node.attributes).map(([key, value]) => `${key} = ${value}`);
    if (node.part !== "around") lines.push(...told.slice(0, 6).map((line) => short(line, 40)));
    const width = Math.max(90, ...lines.map((line, index) => line.length * (index ? 6.5 : 8.4) + 18));
    graph.setNode(`n${at}`, {width, height: 14 + 16 * lines.length, lines, part: node.part,
      title: [node.op_type, node.name, ...told].join("\n")});
    node.outputs.forEach((name) => { if (name) makers.set(name, `n${at}`); });
  });
  const values = new Map();
  nodes.forEach((node, at) => node.inputs.forEach((name, index) => {
    if (!name) return;
    let from = makers.get(name);
    if (from === undefined) {
      if (node.part === "around" && !values.has(name)) return;
      if (!values.has(name)) {
        const lines = [short(name, 26)].concat(name in constants ? [short(constants[name], 30)] : []);
        values.set(name, `v${values.size}`);
        graph.setNode(values.get(name), {width: Math.max(...lines.map((line) => line.length)) * 6.3 + 16,
          height: 8 + 14 * lines.length, lines, part: "value", title: name});
      }
      from = values.get(name);
    }
    graph.setEdge(from, `n${at}`, {}, `${index}`);
  }));
  dagre.layout(graph);
  /* The layout's own size leaves out how far edges swing. */
  const reach = [...graph.nodes().flatMap((key) => { const {x, width} = graph.node(key); return [x - width / 2, x + width / 2]; }),
    ...graph.edges().flatMap((edge) => graph.edge(edge).points.map((point) => point.x))];
  const left = Math.min(...reach) - 10, size = {width: Math.max(...reach) + 10 - left, height: graph.graph().height};
  const marker = `arrow${draw.count = (draw.count || 0) + 1}`;
  const picture = make("svg", {viewBox: `${left} 0 ${size.width} ${size.height}`, width: size.width, height: size.height, role: "img", "aria-label": label},
    make("defs", {}, make("marker", {id: marker, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
      make("path", {d: "M0 0 8 4 0 8z"}))));
  graph.edges().forEach((edge) => {
    const points = graph.edge(edge).points;
    let line = `M${points[0].x} ${points[0].y}`;
    for (let at = 1; at < points.length - 1; at += 1) {
      const next = points[at + 1];
      const last = at === points.length - 2;
      line += ` Q${points[at].x} ${points[at].y} ${last ? next.x : (points[at].x + next.x) / 2} ${last ? next.y : (points[at].y + next.y) / 2}`;
    }
    picture.append(make("path", {d: line, "marker-end": `url(#${marker})`}));
  });
  graph.nodes().forEach((key) => {
    const node = graph.node(key);
    const left = node.x - node.width / 2, top = node.y - node.height / 2;
    const group = make("g", {class: node.part}, make("title", {}, node.title),
      make("rect", {x: left, y: top, width: node.width, height: node.height, rx: node.part === "value" ? 9 : 5}));
    const step = node.part === "value" ? 14 : 16;
    node.lines.forEach((line, at) => group.append(make("text", {
      x: node.x, y: top + (node.part === "value" ? 15 : 19) + at * step, "text-anchor": "middle",
      class: at || node.part === "value" ? "small" : false}, line)));
    picture.append(group);
  });
  return picture;
}
/* A drawing that fits its frame at first, with buttons that make it larger and smaller. */
function zoomed(title, picture) {
  const full = Number(picture.getAttribute("width"));
  const pane = make("div", {class: "pane", tabindex: "0", role: "group", "aria-label": `Drawing, ${title}`}, picture);
  const zoom = (by) => {
    const next = by ? Math.min(full * 4, Math.max(120, picture.getBoundingClientRect().width * by)) : 0;
    picture.style.maxWidth = next ? "none" : "";
    picture.style.width = next ? `${next}px` : "";
  };
  const button = (text, name, by) => make("button", {class: "zoom", type: "button", "aria-label": `${name} the drawing, ${title}`, title: name, click: () => zoom(by)}, text);
  return make("figure", {}, make("figcaption", {}, make("span", {}, title), make("span", {class: "zooms"}, button("−", "Shrink", 0.8), button("+", "Enlarge", 1.25), button("fit", "Fit", 0))), pane);
}
function sides(drawing) {
  const side = (title, nodes) => {
    if (!nodes.length) return make("figure", {}, make("figcaption", {}, short(title, 60)), make("p", {class: "dim nothing"}, "nothing"));
    const own = nodes.filter((node) => node.part !== "around");
    const label = `${short(title, 60)}: ${own.map((node) => `${node.op_type} ${short(node.name, 60)}`).join(", ") || "no node"}; around: ${counted(nodes.length - own.length, "node")}`;
    return zoomed(short(title, 60), draw(nodes, drawing.constants, label));
  };
  return [
    make("div", {class: "sides"}, side(drawing.titles[0], drawing.before), side(drawing.titles[1], drawing.after)),
    drawing.left_out ? make("p", {class: "dim"}, `${counted(drawing.left_out, "node")} more are not drawn.`) : null,
  ];
}
const VERDICTS = {"bit-exact": "good", "within tolerance": "good", "failed": "bad", "not checked": "warn"};
function siteHead(item) {
  const {drawing, check, alike} = item;
  const place = drawing.scope ? ` in ${drawing.scope}` : "";
  return [
    make("h3", {}, `${drawing.op_type} `, make("span", {class: "mono dim"}, short(drawing.node + place, 160)),
      check ? badge(check.verdict, VERDICTS[check.verdict]) : null),
    check && check.sites > 1 ? make("p", {class: "dim"}, `${counted(check.sites - 1, "more node")} like it`) : null,
    alike.length > 1 ? make("details", {}, make("summary", {}, `${counted(alike.length, "node")} converted in this way`),
      make("ul", {class: "mono alike"}, alike.slice(0, SHOWN).map((name) => make("li", {}, short(name, 160))),
        alike.length > SHOWN ? make("li", {}, `and ${number(alike.length - SHOWN)} more`) : null)) : null,
    check && check.reason ? make("p", {class: VERDICTS[check.verdict]}, check.reason) : null,
    check && check.errors && !check.errors.bit_exact ? table(["elements", "largest error", "relative", "ULP", "beyond the tolerance"],
      [[check.errors.count, brief(check.errors.max_abs), brief(check.errors.max_rel), check.errors.max_ulp ?? "–", check.errors.mismatches]]) : null,
  ].filter(Boolean);
}
function sitesPart(drawings, checks, changes) {
  if (!drawings.length) return null;
  const told = new Map(changes.map((change) => [`${change.scope}\n${change.node}`, change.summary]));
  const same = new Map();
  for (const change of changes) {
    if (!same.has(change.summary)) same.set(change.summary, []);
    same.get(change.summary).push(change.scope ? `${change.node} in ${change.scope}` : change.node);
  }
  const became = ({scope, node, op_type, before, after}) => {
    const made = after.filter((item) => item.part === "new").map((item) => item.op_type).join(", ");
    return told.get(`${scope}\n${node}`) || (made ? before.some((item) => item.part === "old") ? `${op_type} → ${made}` : `${op_type} added` : `${op_type} removed`);
  };
  const found = new Map((checks ? checks.each : []).map((check) => [`${check.scope}\n${check.node}`, check]));
  const items = drawings.map((drawing) => {
    const key = `${drawing.scope}\n${drawing.node}`;
    return {drawing, check: found.get(key), alike: same.get(told.get(key)) || []};
  });
  const order = {"failed": 0, "not checked": 1};
  items.sort((a, b) => (order[a.check?.verdict] ?? 2) - (order[b.check?.verdict] ?? 2));
  const shown = make("div", {class: "shown", "aria-live": "polite"});
  const buttons = items.map((item) => make("button", {class: "site", type: "button", "aria-pressed": "false", click: () => show(item)},
    short(became(item.drawing), 90),
    make("span", {}, short(item.drawing.node, 60), item.check ? ` · ${item.check.verdict}` : "")));
  function show(item) {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(items[at] === item)));
    shown.replaceChildren(...siteHead(item), ...sides(item.drawing).filter(Boolean));
  }
  const list = make("div", {class: "list", keydown: (event) => {
    const way = {ArrowDown: 1, ArrowUp: -1}[event.key];
    const next = buttons[buttons.indexOf(document.activeElement) + way];
    if (way && next) { next.focus(); next.click(); event.preventDefault(); }
  }}, buttons);
  show(items[0]);
  const printed = make("div", {class: "printed"});
  window.addEventListener("beforeprint", () => {
    if (!printed.childElementCount) items.slice(0, 40).forEach((item) => printed.append(make("div", {class: "change"}, siteHead(item), sides(item.drawing))));
  });
  return part(`Changes, before and after (each different one once: ${number(items.length)})`, make("div", {class: "sites"}, list, shown), printed);
}

/* Plans, blockers, outputs */
function changesTable(changes) {
  const groups = new Map();
  for (const change of changes) {
    const key = `${change.op_type}\n${change.result}\n${change.edits.map((edit) => edit.replace(/-?\d+(\.\d+)?/g, "…"))}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(change);
  }
  const rows = [...groups.values()].sort((a, b) => b.length - a.length).map((group) => {
    const [first] = group;
    const added = group.reduce((sum, item) => sum + item.nodes - 1 - item.absorbed.length, 0);
    return [first.op_type, group.length, short(first.summary.replace(`${first.op_type}: `, "").replace(`${first.op_type} → `, "→ "), 200), added > 0 ? `+${added}` : String(added),
      short(group.slice(0, 3).map((item) => item.node).join(", "), 120) + (group.length > 3 ? ` and ${number(group.length - 3)} more` : "")];
  });
  return rows.length ? table(["operator", "nodes", "what became of them", "added", "which"], rows.slice(0, SHOWN)) : null;
}
function blockersTable(blockers) {
  const groups = new Map();
  for (const item of blockers) {
    const key = `${item.op_type}\n${item.reason.replace(/'[^']*'|-?\d+/g, "…")}\n${item.advice}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  const rows = [...groups.values()].sort((a, b) => b.length - a.length).map((group) => [group[0].op_type || "node", group.length,
    short(group[0].reason, 400), short(group[0].advice || "–", 300), short(group.slice(0, 3).map((item) => item.node).join(", "), 120) + (group.length > 3 ? ` and ${number(group.length - 3)} more` : "")]);
  return rows.length ? table(["operator", "nodes", "why", "what to do", "which"], rows.slice(0, SHOWN)) : null;
}
function histogram(spread) {
  const most = Math.max(...spread), width = 330, height = 110, step = (width - 10) / Math.max(spread.length, 6);
  const label = (at) => at < 2 ? String(at) : at < 5 ? `${2 ** (at - 1)}–${2 ** at - 1}` : `2^${at - 1}`;
  const picture = make("svg", {viewBox: `0 0 ${width} ${height + 34}`, width, height: height + 34, role: "img", class: "bars",
    "aria-label": spread.map((value, at) => `${label(at)} ULP: ${value}`).join(", ")});
  spread.forEach((value, at) => {
    /* A logarithmic scale: the few that are far apart are what one looks for. */
    const tall = value ? 6 + (height - 20) * Math.log1p(value) / Math.log1p(most) : 0;
    picture.append(make("rect", {x: 6 + at * step, y: height - tall, width: Math.max(step - 4, 2), height: tall},
      make("title", {}, `${label(at)} ULP: ${counted(value, "element")}`)));
    if (value && step > 28) picture.append(make("text", {class: "small", x: 6 + at * step + step / 2 - 2, y: height - tall - 3, "text-anchor": "middle"}, value < 10000 ? number(value) : value.toExponential(0)));
    if (step > 28 || at % 4 === 0) picture.append(make("text", {class: "small", x: 6 + at * step + step / 2 - 2, y: height + 14, "text-anchor": "middle"}, label(at)));
  });
  picture.append(make("text", {class: "small", x: width / 2, y: height + 30, "text-anchor": "middle"}, "units in the last place apart (elements, log scale)"));
  return picture;
}
const between = (pair) => pair[0][0] === pair[1][0] ? `${pair[0][0]}: ${pair[0][1]}, ${pair[1][1]}`
  : pair[0][1] === pair[1][1] ? `both in ${pair[0][1]}` : pair.map((side) => side.join(" in ")).join(" and ");
const verdictOf = (report) => report.equivalent === null ? ["not verified", "warn"] : report.equivalent ? ["equivalent", "good"] : ["not equivalent", "bad"];
function verifiedPart(report, drawings) {
  if (!report) return null;
  const verdict = verdictOf(report);
  const comparisons = [...report.comparisons].sort((a, b) => a.agree - b.agree);
  const rows = comparisons.map((item) => [short(item.output, 80), short(between([item.first, item.second]), 120),
    make("span", {class: item.agree ? "good" : "bad"}, item.agree ? item.explained || "agrees" : "differs"),
    item.errors.problem || brief(item.errors.max_abs), item.errors.max_ulp ?? "–", item.errors.mismatches, item.errors.count]);
  const bars = comparisons.filter((item) => item.errors.spread.length > 1).slice(0, 40).map((item) => make("figure", {},
    make("figcaption", {}, `${short(item.output, 40)}: ${short(between([item.first, item.second]), 60)}`), histogram(item.errors.spread)));
  const divergence = report.divergence;
  const trials = report.trials.filter((trial) => !trial.void).length;
  return part("Whole models, compared",
    make("p", {class: "verdict"}, badge(verdict[0], verdict[1]), ` on ${counted(trials, "set")} of inputs${report.by ? `, by ${report.by}` : ""}`),
    notes(report.interface),
    divergence ? make("div", {}, make("h3", {class: "bad"}, `They differ first in ${short(divergence.value, 120)}`),
      table(["in", "made by"], [[divergence.first.join(" in "), divergence.first_nodes.join(", ")], [divergence.second.join(" in "), divergence.second_nodes.join(", ")]]), drawings.flatMap(sides)) : null,
    rows.length ? table(["output", "between", "", "largest error", "ULP", "beyond", "elements"], rows) : null,
    bars.length ? make("div", {class: "hist"}, bars) : null,
    notes([...report.warnings, ...report.remarks]));
}

/* The whole model: a tree that is built as far as it is unfolded, and a search */
function nodesPart(picture, files) {
  if (!picture || !picture.nodes.length) return null;
  const nodes = picture.nodes;
  const root = {names: new Map(), nodes: [], count: 0, marked: 0};
  for (const node of nodes) {
    const [scope, space, name] = node;
    const path = scope ? [scope] : [];
    if (space) path.push(...space.split("/"));
    else if (!/^making '/.test(name)) path.push(...name.split(/[/.](?=.)/).slice(0, -1).filter(Boolean).slice(0, 12));
    let at = root;
    at.count += 1; at.marked += node[6] !== "";
    for (const step of path) {
      if (!at.names.has(step)) at.names.set(step, {names: new Map(), nodes: [], count: 0, marked: 0});
      at = at.names.get(step);
      at.count += 1; at.marked += node[6] !== "";
    }
    at.nodes.push(node);
  }
  const row = ([scope, , name, operator, inputs, outputs, mark], whole) => make("div", {class: mark ? "row marked" : "row", tabindex: "-1"},
    make("b", {}, operator), ` ${short(name, 120)}`, whole && scope ? make("span", {class: "dim"}, ` in ${short(scope, 60)}`) : null,
    make("span", {class: "dim"}, `  ${short(inputs, 80)} → ${short(outputs, 80)}`), mark ? make("div", {class: "warn"}, short(mark, 300)) : null);
  function some(items, shape, parent, from = 0) {
    parent.append(...items.slice(from, from + SHOWN).map(shape));
    const left = items.length - from - SHOWN;
    if (left > 0) {
      const more = make("button", {class: "more", type: "button", click: () => { more.remove(); some(items, shape, parent, from + SHOWN); }}, `show ${number(Math.min(left, SHOWN))} of ${number(left)} more`);
      parent.append(more);
    }
  }
  function branch([name, item]) {
    /* What holds one thing only is no level of its own. */
    let title = name;
    while (!item.nodes.length && item.names.size === 1) {
      const [[inner, only]] = item.names;
      title += `/${inner}`; item = only;
    }
    if (item.nodes.length === 1 && !item.names.size) return row(item.nodes[0], false);
    const inside = make("div", {});
    const found = make("details", {toggle: () => { if (found.open && !inside.childElementCount) fill(item, inside); }},
      make("summary", {}, short(title, 160), make("span", {class: "dim"}, `  ${counted(item.count, "node")}`),
        item.marked ? make("span", {class: "warn"}, `, ${number(item.marked)} marked`) : null), inside);
    return found;
  }
  function fill(item, parent) {
    some([...item.names], branch, parent);
    some(item.nodes, (node) => row(node, false), parent);
  }
  const tree = make("div", {class: "tree"});
  fill(root, tree);
  const results = make("div", {class: "results", hidden: ""});
  const told = make("p", {class: "dim", role: "status"});
  const texts = nodes.map((node) => node.join(" ").toLowerCase());
  let timer = 0;
  const search = make("input", {type: "search", placeholder: "Search names, operators and values; \u201cmarked:\u201d finds what is marked", "aria-label": "Search nodes",
    input: () => { clearTimeout(timer); timer = setTimeout(look, 120); },
    keydown: (event) => { if (event.key === "Enter") look(); }});
  function look() {
    let wanted = search.value.trim().toLowerCase();
    const marked = wanted.startsWith("marked:");
    if (marked) wanted = wanted.slice(7).trim();
    const searching = wanted !== "" || marked;
    results.hidden = !searching; tree.hidden = searching;
    if (!searching) { told.textContent = ""; return; }
    const found = nodes.filter((node, at) => texts[at].includes(wanted) && (!marked || node[6]));
    told.textContent = `${counted(found.length, "node")} of ${number(nodes.length)}`;
    results.replaceChildren();
    some(found, (node) => row(node, true), results);
  }
  return part(`All ${counted(nodes.length, "node")}`,
    make("p", {class: "dim"}, "Folded by the modules that the exporter noted, or by the nodes' names."),
    make("details", {}, make("summary", {}, "See the graph as a whole"), make("p", {class: "dim"},
      "This page holds what changed, not the model. Netron, a free viewer, draws whole models: go to ",
      make("a", {href: "https://netron.app", rel: "noreferrer"}, "netron.app"), " (which needs a network, unlike this page), choose Open Model, and name the file there",
      files.length ? ": " : ". ", files.flatMap((name, at) => [at ? " or " : "", make("code", {}, short(name, 160))]), files.length ? ". " : "",
      "It is read in your browser, and sent nowhere. Netron finds a node by the name that stands here.")),
    search, told, results, tree);
}

/* How the report came to be */
function filesPart(files) {
  return part("Files", files.length ? table(["file", "", "size", "SHA-256"], files.map((file) => [short(file.path, 200), file.role, bytes(file.size), make("code", {}, file.sha256)])) : null);
}
function callPart() {
  const {call} = data;
  const value = (item) => typeof item === "string" ? item : JSON.stringify(item);
  const given = Object.entries(call.options).map(([name, item]) => [name, short(value(item), 300)]);
  return part("How this report came to be",
    make("p", {class: "mono"}, short(["onnxreduce", ...call.arguments].join(" "), 2000)),
    make("p", {class: "dim"}, `begun ${call.started}, took ${call.seconds.toFixed(1)} s; ${Object.entries(call.versions).map((item) => item.join(" ")).join(", ")}`),
    given.length ? make("details", {}, make("summary", {}, "All options, as they were set or are by default"), table(["option", "value"], given)) : null);
}

/* Commands */
const spanned = (runtimes) => Object.entries(runtimes).map((item) => item.join(" ").trim()).join("; ");
function modelSection(model, picture, heading) {
  const plan = model.plan, good = model.exit_code === 0;
  const cards = [];
  if (plan) {
    cards.push(card("opset", `${plan.source ?? "none"} → ${plan.target}`), card("IR version", `${plan.ir_version} → ${plan.target_ir_version}`),
      card("nodes", `${number(plan.nodes)} → ${number(plan.target_nodes)}`), card("nodes changed", number(plan.changes.length)));
  }
  if (model.sizes) cards.push(card("file", model.sizes.map(bytes).join(" → ")));
  if (model.checks) cards.push(card("changes checked", `${model.checks.checked} of ${model.checks.distinct}`));
  const wrong = model.wrong ? [`${Object.entries(model.wrong.nodes).map(([name, many]) => `${many} ${name}`).join(", ")} at opset ${model.wrong.opset}: computed wrong in ${Object.entries(model.wrong.runtimes).map((item) => item.join(" ").trim()).join(", ")}`] : [];
  const changed = plan ? changesTable(plan.changes) : null;
  const blockers = model.problem ? blockersTable(model.problem.blockers) : null;
  return make("section", {class: "model"},
    make(heading, {}, short(model.source, 120), model.target ? ` → ${short(model.target, 120)}` : "", badge(model.state, good ? "good" : "bad")),
    model.problem && !blockers ? make("p", {class: "bad mono"}, model.problem.message) : null,
    model.verdict ? make("p", {class: "verdict"}, model.verdict) : null,
    plan && plan.choice ? make("p", {}, plan.choice) : null,
    plan && plan.ir_version_reason ? make("p", {class: "dim"}, `IR version: ${plan.ir_version_reason}`) : null,
    make("div", {class: "cards"}, cards),
    model.checks ? make("p", {}, model.checks.summary) : null,
    notes([...wrong, ...(plan ? plan.prepared : []), ...model.warnings]),
    picture && plan && !plan.blockers.length ? part(`Runtimes that take it at opset ${plan.target}, and get nothing wrong`, make("p", {}, spanned(picture.runtimes) || "None of those whose operators are known."),
      model.exit_code ? make("p", {class: "dim"}, "Once it is converted, which it was not.") : null) : null,
    part("What is in the way", blockers),
    part("What changed, by operator", changed),
    sitesPart(picture ? picture.drawings : [], model.checks, plan ? plan.changes : []),
    verifiedPart(model.verified, []),
    nodesPart(picture, [model.source, model.target].filter((name) => name && name !== "-")),
    filesPart(model.files));
}
function convert() {
  const many = data.models.length > 1;
  const states = new Map();
  data.models.forEach((model) => states.set(model.state, (states.get(model.state) || 0) + 1));
  const head = make("header", {}, make("h1", {}, data.dry_run ? "Plan of a conversion" : "Conversion", many ? ` of ${data.models.length} models` : ""));
  if (!many) return [head, modelSection(data.models[0], data.pictures[0], "p")];
  /* Those that failed come first. */
  const order = data.models.map((_, at) => at).sort((a, b) => Number(data.models[a].exit_code === 0) - Number(data.models[b].exit_code === 0));
  const whole = order.map((at) => {
    const model = data.models[at], inside = make("div", {});
    const found = make("details", {id: `model${at}`, toggle: () => { if (found.open && !inside.childElementCount) inside.append(modelSection(model, data.pictures[at], "p")); }},
      make("summary", {}, short(model.source, 160), badge(model.state, model.exit_code ? "bad" : "good")), inside);
    return found;
  });
  const jump = (at) => make("a", {href: `#model${at}`, click: () => { document.getElementById(`model${at}`).open = true; }}, short(data.models[at].source, 120));
  return [head,
    make("div", {class: "cards"}, [...states].map(([state, many]) => card(state, number(many)))),
    ...filtered(["model", "result", "opset", "changed", "verdict, or what is wrong"], order.map((at) => {
      const model = data.models[at];
      return [jump(at), make("span", {class: model.exit_code ? "bad" : "good"}, model.state),
        model.plan ? `${model.plan.source ?? "none"} → ${model.plan.target}` : "–", model.plan ? model.plan.changes.length : "–",
        short(reason(model), 200)];
    }), (found) => whole.forEach((item, at) => { item.hidden = !found[at]; })),
    part("What is in the way, in all", blockersTable(data.models.flatMap((model) => model.problem ? model.problem.blockers : []))),
    part("What changed, by operator, in all", changesTable(data.models.flatMap((model) => model.plan ? model.plan.changes : []))),
    part("Each model", whole)];
}
/* Why a model failed, without a line that only announces it, or the verdict. */
function reason(model) {
  if (!model.problem) return model.verdict;
  const [first] = model.problem.blockers;
  if (first) return `${first.op_type} node ${first.node}: ${first.reason}`;
  const lines = model.problem.message.split("\n");
  return lines.length > 1 && lines[0].endsWith(":") ? lines[1] : lines[0];
}
function inspected() {
  const {found, contents: held} = data;
  const spans = (opsets) => opsets.reduce((runs, opset) => {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === opset) last[1] = opset; else runs.push([opset, opset]);
    return runs;
  }, []).map(([a, b]) => a === b ? `${a}` : `${a}–${b}`).join(", ");
  const unknown = Object.fromEntries(Object.keys(data.runtimes.unknown).map((name) => [name, ""]));
  const runtimes = [["as it is", data.runtimes.as_it_is], ["not known", unknown], ["after convert --for", data.runtimes.converted], ["not", data.runtimes.refused]]
    .filter(([, found]) => Object.keys(found).length).map(([how, found]) => [how, spanned(found)]);
  const operators = Object.entries(found.operators).sort((a, b) => b[1] - a[1]);
  const values = (items) => items.map((item) => [short(item.name, 80), short(item.type, 120)]);
  return [
    make("header", {}, make("h1", {}, short(data.model, 120)),
      make("p", {class: "dim"}, Object.entries(found.opsets).map((item) => item.join(" ")).join(", "))),
    make("div", {class: "cards"}, card("IR version", found.ir_version), card("nodes", number(operators.reduce((sum, item) => sum + item[1], 0))),
      card("functions", number(Object.keys(found.functions).length)), card("can reach opset", spans(data.reachable) || "none"),
      held.size === null ? null : card("file", bytes(held.size)), held.producer ? card("written by", short(held.producer, 60)) : null),
    part("Inputs and outputs", table(["input", "type"], values(held.inputs)), table(["output", "type"], values(held.outputs))),
    part("Weights", Object.keys(held.weights).length ? table(["dtype", "tensors", "elements"], Object.entries(held.weights).map(([name, [tensors, elements]]) => [name, tensors, elements])) : null,
      notes(held.external.map((file) => `external data ${short(file.location, 120)}: ${file.size === null ? "not there" : bytes(file.size)}`))),
    part("Metadata and functions", notes([...Object.entries(held.metadata).map((item) => short(item.join(": "), 200)),
      ...(held.noted_nodes ? [`metadata of ${counted(held.noted_nodes, "node")}`] : []),
      ...Object.entries(held.functions).slice(0, SHOWN).map(([name, nodes]) => `function ${short(name, 120)}: ${counted(nodes, "node")}`)])),
    part("Runtimes that take it", runtimes.length ? table(["how", "runtimes"], runtimes) : null),
    data.blocked.map((item) => part(`What is in the way of opset ${spans(item.opsets)}`, blockersTable(item.blockers))),
    part("Operators", operators.length ? table(["operator", "nodes"], operators) : null),
    nodesPart(data.pictures[0], [data.model])];
}
function diffed() {
  const ways = [...data.imports, ...data.model, ...data.inputs.map((item) => ({...item, name: `input ${item.name}`})), ...data.outputs.map((item) => ({...item, name: `output ${item.name}`})),
    ...data.functions.map((item) => ({...item, name: `function ${item.name}`})), ...data.constants.map((item) => ({...item, name: `constant ${item.name}`})),
    ...data.values.map((item) => ({...item, name: `type of ${item.name}`})), ...data.renamed.map((item) => ({...item, name: `${item.name} renamed`}))];
  const nodes = [...data.added.map((item) => ["added", item]), ...data.removed.map((item) => ["removed", item])];
  return [
    make("header", {}, make("h1", {}, "Difference", badge(data.differs ? "differs" : "the same graph", data.differs ? "warn" : "good")),
      make("p", {class: "mono"}, `${short(data.a, 120)} → ${short(data.b, 120)}`)),
    make("div", {class: "cards"}, [...data.imports, ...data.model].filter((item) => !item.scope).slice(0, 6).map((item) => card(short(item.name === "ai.onnx" ? "opset" : item.name, 40), short(`${item.before || "–"} → ${item.after || "–"}`, 60))),
      card("nodes changed", number(data.changes.length)), card("added", number(data.added.length)), card("removed", number(data.removed.length))),
    part("What changed, by operator", changesTable(data.changes)),
    sitesPart(data.pictures[0].drawings, null, data.changes),
    part("Nodes that only one has", nodes.length ? table(["", "operator", "node"], nodes.slice(0, SHOWN).map(([what, item]) => [what, item.op_type, short(item.node, 120)])) : null),
    part("What else differs", ways.length ? table(["what", "before", "after"], ways.slice(0, SHOWN).map((item) => [short(item.scope ? `${item.name} in ${item.scope}` : item.name, 120), short(item.before || "–", 120), short(item.after || "–", 120)])) : null),
    nodesPart(data.pictures[0], [data.a, data.b])];
}
function verified() {
  return [make("header", {}, make("h1", {}, "Verification", badge(...verdictOf(data))), make("p", {class: "mono"}, [data.a, data.b].filter(Boolean).map((name) => short(name, 120)).join(" and "))),
    verifiedPart(data, data.pictures[0].drawings), nodesPart(data.pictures[0], [data.a, data.b].filter(Boolean))];
}
function failed() {
  return [make("header", {}, make("h1", {}, `onnxreduce ${data.command}`, badge(data.problem.state, "bad"))), make("p", {class: "bad mono"}, data.problem.message)];
}
function show(found) {
  data = found;
  const shown = data.problem ? failed() : {convert, inspect: inspected, diff: diffed, verify: verified}[data.command]();
  document.getElementById("report").append(...[shown, filesPart(data.call.files), callPart()].flat(3).filter(Boolean));
}
/* Of many models the data are packed. */
async function unpacked(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (item) => item.charCodeAt(0))]);
  return JSON.parse(await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text());
}
const holder = document.getElementById("data");
const complete = holder.type === "application/json" ? Promise.resolve(show(JSON.parse(holder.textContent)))
  : typeof DecompressionStream === "undefined" ? Promise.resolve(document.getElementById("report").append("This browser is too old to unpack the page: use one of 2023 or later."))
    : unpacked(holder.textContent).then(show);
