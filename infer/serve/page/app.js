// Polls the server's metrics once a second and draws them; wires up the conversation.
import {draw, format} from '/page/chart.js';
import * as talk from '/page/talk.js';

const $ = (id) => document.getElementById(id);
const KEEP_SECONDS = 120;
const MAX_POINTS = 400;
let model = '';
const samples = [];   // {t, generated, running, waiting, pages, pagesTotal}
const steps = [];     // training records, ascending by step
const evals = [];     // those of them that have an evaluation
let metricsOffset = 0;

function tiles(parent, entries) {
  parent.replaceChildren(...entries.map(([name, value]) => {
    const tile = document.createElement('div');
    tile.className = 'tile';
    tile.append(Object.assign(document.createElement('b'), {textContent: value}),
                Object.assign(document.createElement('span'), {textContent: name}));
    return tile;
  }));
}

function setState(text, bad) {
  $('state').textContent = text;
  $('state').classList.toggle('bad', bad);
}

// Sums the samples of each metric of Prometheus' text format over its labels.
function parsePrometheus(text) {
  const values = new Map();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (\S+)/.exec(line);
    if (match) values.set(match[1], (values.get(match[1]) || 0) + Number(match[2]));
  }
  return values;
}

function thin(points) {
  const stride = Math.ceil(points.length / MAX_POINTS);
  return points.filter((_, i) => i % stride === 0 || i === points.length - 1);
}

async function pollServing() {
  const values = parsePrometheus(await (await fetch('/metrics')).text());
  const now = {
    t: performance.now() / 1000,
    generated: values.get('plinth_generated_tokens_total') || 0,
    running: values.get('plinth_requests_running') || 0,
    waiting: values.get('plinth_requests_waiting') || 0,
    pages: values.get('plinth_kv_pages_used') || 0,
    pagesTotal: values.get('plinth_kv_pages_total') || 0,
  };
  samples.push(now);
  while (samples[0].t < now.t - KEEP_SECONDS) samples.shift();
  const rates = samples.slice(1).map((s, i) =>
    [s.t - now.t, Math.max(0, (s.generated - samples[i].generated) / (s.t - samples[i].t))]);
  tiles($('serving-tiles'), [
    ['tokens per second', format(rates.at(-1)?.[1])],
    ['tokens generated', format(now.generated)],
    ['requests running', format(now.running)],
    ['cache used', now.pagesTotal ? `${(100 * now.pages / now.pagesTotal).toFixed(0)} %` : '–'],
  ]);
  const ago = (x) => (x > -0.5 ? 'now' : `${Math.round(-x)} s ago`);
  draw($('chart-tokens'), {series: [{name: 'tokens/s', points: rates}], label: ago, fromZero: true});
  draw($('chart-requests'), {
    series: [
      {name: 'running', points: samples.map((s) => [s.t - now.t, s.running])},
      {name: 'waiting', points: samples.map((s) => [s.t - now.t, s.waiting])},
    ],
    label: ago, fromZero: true, whole: true,
  });
}

// A run that went on from an earlier checkpoint writes its later steps again.
function keepRecord(record) {
  while (steps.length && steps.at(-1).step >= record.step) steps.pop();
  while (evals.length && evals.at(-1).step >= record.step) evals.pop();
  if (record.loss !== null) steps.push(record);  // null: not a number
  if (record.eval_loss !== undefined && record.eval_loss !== null) evals.push(record);
}

// The server sends whole JSON lines from a byte offset, and the next offset in a header.
async function pollTraining() {
  const response = await fetch(`/training/metrics?offset=${metricsOffset}`);
  if (!response.ok) return;
  metricsOffset = Number(response.headers.get('X-Next-Offset'));
  try {
    for (const line of (await response.text()).split('\n')) {
      if (line !== '') keepRecord(JSON.parse(line));
    }
  } catch (error) {
    metricsOffset = 0;  // the file was replaced, and the offset points into a line
  }
  if (steps.length === 0) return;
  $('training').hidden = false;
  $('training-note').hidden = true;
  const last = steps.at(-1);
  const bits = evals.at(-1)?.eval_bits_per_byte;
  tiles($('training-tiles'), [
    ['step', `${last.step} / ${last.steps}`],
    ['loss', last.loss.toFixed(3)],
    ['tokens per second', format(last.tokens_per_second)],
    ['held-out bits per byte', bits ? bits.toFixed(3) : '–'],
  ]);
  const label = (x) => `step ${Math.round(x)}`;
  draw($('chart-loss'), {
    series: [
      {name: 'training', points: thin(steps.map((s) => [s.step, s.loss]))},
      {name: 'held-out', points: evals.map((e) => [e.step, e.eval_loss])},
    ],
    label, fromZero: false,
  });
  draw($('chart-speed'), {
    series: [{name: 'tokens/s', points: thin(steps.map((s) => [s.step, s.tokens_per_second]))}],
    label, fromZero: true,
  });
}

async function tick() {
  try {
    if (model === '') {
      model = (await (await fetch('/v1/models')).json()).data[0].id;
      $('model').textContent = model;
    }
    await pollServing();
    await pollTraining();
    setState('live', false);
  } catch (error) {
    setState(`no answer from the server (${error.message})`, true);
  }
  setTimeout(tick, 1000);
}

talk.start(() => model);
tick();
