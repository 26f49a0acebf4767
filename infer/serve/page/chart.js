// Line charts in plain SVG. draw(svg, {series, ...}) redraws from scratch; a few hundred
// points need nothing smarter.

const NS = 'http://www.w3.org/2000/svg';

function add(parent, name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

export function format(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e6) return (value / 1e6).toFixed(size >= 1e7 ? 0 : 1) + ' M';
  if (size >= 1e4) return (value / 1e3).toFixed(0) + ' k';
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

// A round step that divides `span` into about `parts` pieces.
export function niceStep(span, parts) {
  const raw = span / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((f) => f * power >= raw);
  return factor * power;
}

// series: [{name, points: [[x, y], ...]}], x ascending; label(x) names the ends of the axis;
// whole: y counts things, so its grid has whole steps.
export function draw(svg, {series, label, fromZero, whole}) {
  svg.replaceChildren();
  const width = svg.clientWidth || 400;
  const height = svg.clientHeight || 130;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const points = series.flatMap((s) => s.points);
  if (points.length < 2) {
    add(svg, 'text', {x: width / 2, y: height / 2, 'text-anchor': 'middle'}, 'waiting for data');
    return;
  }
  const ys = points.map((p) => p[1]);
  let low = fromZero ? 0 : Math.min(...ys);
  let high = Math.max(...ys);
  if (high - low < 1e-9) high = low + 1;
  const step = Math.max(niceStep(high - low, 3), whole ? 1 : 0);
  low = Math.floor(low / step) * step;
  high = Math.ceil(high / step) * step;
  const x0 = Math.min(...points.map((p) => p[0]));
  const x1 = Math.max(...points.map((p) => p[0]), x0 + 1e-9);
  const box = {left: 44, right: width - 10, top: 16, bottom: height - 18};
  const toX = (x) => box.left + (x - x0) / (x1 - x0) * (box.right - box.left);
  const toY = (y) => box.bottom - (y - low) / (high - low) * (box.bottom - box.top);

  for (let y = low; y <= high + step / 2; y += step) {
    add(svg, 'line', {class: 'grid', x1: box.left, x2: box.right, y1: toY(y), y2: toY(y)});
    add(svg, 'text', {x: box.left - 6, y: toY(y) + 4, 'text-anchor': 'end'}, format(y));
  }
  add(svg, 'text', {x: box.left, y: height - 5}, label(x0));
  add(svg, 'text', {x: box.right, y: height - 5, 'text-anchor': 'end'}, label(x1));
  let legend = box.left;
  series.forEach((s, i) => {
    const path = s.points.map((p, n) => (n ? 'L' : 'M') + toX(p[0]).toFixed(1) + ' ' + toY(p[1]).toFixed(1)).join('');
    add(svg, 'path', {class: `series series-${i}`, d: path});
    const last = s.points.length ? ` ${format(s.points[s.points.length - 1][1])}` : '';
    const text = add(svg, 'text', {class: `series-${i}`, x: legend, y: 11}, s.name + last);
    legend += (text.getComputedTextLength?.() || 60) + 14;
  });
  svg.setAttribute('aria-label', series.map((s) => `${s.name}: ${format(s.points.at(-1)?.[1])}`).join(', '));
}
