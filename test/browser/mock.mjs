// A stand-in for kith serve: the same routes and answers over made-up items, and faults that the real server gives only
// when it is ill. Pictures are bitmaps drawn from the item's number. `faults` changes how it answers:
//   {token: 'x'}  {busy: n}: the next n searches get 503  {slow: ms}  {slowSearch: ms}  {fail: problem}: the next search  {canEmbed: false}
//   {missingModel: 'run/model.safetensors'}
//   {progress: [answers of /progress, one after the other]}: photos are being indexed
//   {isCalibrated: false}  {comparing: n}: the next n looks for duplicates get 503
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';

const PAGE = fileURLToPath(new URL('../../src/serve/page/', import.meta.url));
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const LABELS = [
  'avocet',
  'dunlin',
  'gull',
  'plover',
  'tern',
  "o'hara",
  '<img src=x onerror=window.hacked=1>',
  '"><script>window.hacked=1</script>',
];

// ---- a picture: PNG without a library ----

function crc(bytes) {
  let c = ~0;
  for (const byte of bytes) {
    c ^= byte;
    for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (0xedb88320 & -(c & 1));
  }
  return ~c >>> 0;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

// Rings of the item's colour on a ramp.
export function drawPng(seed, width = 96, height = 72) {
  const rows = Buffer.alloc((width * 3 + 1) * height);
  const hue = (seed * 47) % 255;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const ring = Math.hypot(x - width * (0.3 + (seed % 5) / 10), y - height / 2) % (14 + (seed % 7)) < 6;
      rows.set(ring ? [hue, 120, 255 - hue] : [230 - y, 225, 215], y * (width * 3 + 1) + 1 + x * 3);
    }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

// ---- items and answers ----

function makeItems(n) {
  return Array.from({ length: n }, (_, id) => ({
    id,
    label: LABELS[id % LABELS.length],
    path: id % 8 === 6 ? `a/<b>bold</b>&amp;/${id}.jpg` : `photos/${LABELS[id % 5]}/${String(id).padStart(4, '0')}.jpg`,
    values: { year: 2018 + (id % 8), site: ['north', 'south'][id % 2], note: `n${id}` },
    image: id % 29 !== 28,
  }));
}

const CALIBRATION = { false_match_rate: [], threshold: [] };
for (let i = 0; i <= 40; i++) {
  CALIBRATION.false_match_rate.push(10 ** (-i / 10));
  CALIBRATION.threshold.push(0.2 + i * 0.018);
}

function falseMatchRate(score) {
  const i = (score - 0.2) / 0.018;
  return 10 ** (-Math.min(40, Math.max(0, i)) / 10);
}

// The expressions that the page writes, and no others.
function parseWhere(text) {
  const tests = [];
  const value = "'(?:[^']|'')*'";
  const rules = [
    [new RegExp(`^(\\w+) = (${value})`), (c, v) => (item) => item(c) === v[0]],
    [new RegExp(`^(\\w+) in \\((${value}(?:, ${value})*)\\)`), (c, v) => (item) => v.includes(item(c))],
    [
      new RegExp(`^(\\w+) like (${value})`),
      (c, v) => (item) => item(c).includes(v[0].slice(1, -1).replace(/\\(.)/g, '$1')),
    ],
    [/^(\w+) >= (-?\d+)/, (c, v) => (item) => item(c) >= v[0]],
    [/^(\w+) <= (-?\d+)/, (c, v) => (item) => item(c) <= v[0]],
  ];
  for (let rest = text; rest !== '';) {
    const rule = rules.find(([pattern]) => pattern.test(rest));
    if (!rule) return null;
    const [all, column, raw] = rest.match(rule[0]);
    const values = raw.startsWith("'")
      ? [...raw.matchAll(new RegExp(value, 'g'))].map(([v]) => v.slice(1, -1).replaceAll("''", "'"))
      : [Number(raw)];
    tests.push(rule[1](column, values));
    rest = rest.slice(all.length).replace(/^ and /, '');
  }
  return (item) => tests.every((test) => test((column) => ({ ...item.values, ...item })[column]));
}

function parseForm(body, type) {
  if (type.startsWith('application/json')) return { query: JSON.parse(body.toString()), files: {} };
  const [, boundary] = type.match(/boundary=(.+)$/);
  const files = {};
  let query = null;
  for (const part of body.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const cut = part.indexOf('\r\n\r\n');
    const name = part.slice(0, cut).match(/name="([^"]*)"/)[1];
    const data = Buffer.from(part.slice(cut + 4, -2), 'latin1');
    if (name === 'query') query = JSON.parse(data.toString());
    else files[name] = data;
  }
  return { query, files };
}

const problem = (status, title, detail, hint = '') => ({ type: 'about:blank', title, status, detail, hint });

export async function startMock(faults = {}, n_items = 300) {
  const items = makeItems(n_items);
  const seen = []; // what searches asked
  const asked = []; // paths of requests
  const load = { now: 0, most: 0 }; // searches under way
  const info = () => ({
    version: '0.2.0',
    items: items.length,
    is_indexing: Boolean(faults.progress),
    dim: 64,
    metric: 'cosine',
    tier: 'exact',
    model: 'abc',
    missing_model: faults.missingModel ?? null,
    can_embed: faults.canEmbed ?? true,
    can_explain: true,
    is_calibrated: faults.isCalibrated ?? true,
    generation: faults.generation ?? 7,
    read_only: true,
    columns: [
      { name: 'label', type: 'text', values: LABELS },
      { name: 'year', type: 'integer', min: 2018, max: 2025 },
      { name: 'site', type: 'text', values: ['north', 'south'] },
      { name: 'note', type: 'text', values: null },
    ],
    calibration: faults.isCalibrated === false ? null : CALIBRATION,
    samples: faults.isEmpty ? [] : [4, 33, 70, 120, 190, 222, 295].map((id) => items[id]),
    limits: { body_bytes: 16 << 20, pixels: 40e6, k: 100, queue: 64 },
  });

  function search({ query, files }) {
    seen.push({ query, files });
    const from = query.images.find((image) => image.weight > 0);
    if (!from) return problem(400, 'Bad request', 'no image to search for', 'give at least one with a weight above 0');
    const test = query.where ? parseWhere(query.where) : () => true;
    if (!test)
      return problem(
        400,
        'Bad request',
        `where: character 1, at '${query.where.slice(0, 20)}': wanted the name of a column`,
        'for example: label = tern and year >= 2020',
      );
    const n_minus = query.images.filter((image) => image.weight < 0).length;
    const seed = ((from.id ?? (from.crop?.[0] ?? 0) + files[from.part].length) + 7 * n_minus) % items.length;
    const allowed = items.filter(test);
    const scored = allowed
      .map((item) => ({ ...item, score: 1 - Math.abs(item.id - seed) / 60 }))
      .map((item) => ({ ...item, false_match_rate: faults.isCalibrated === false ? null : falseMatchRate(item.score) }))
      .filter((item) => query.same === undefined || item.false_match_rate <= query.same)
      .filter((item) => !query.hide_duplicates || item.id % 10 !== 1)
      .sort((a, b) => b.score - a.score || a.id - b.id);
    return {
      n_allowed: allowed.length,
      is_exact: true,
      took_ms: 3.2,
      hits: scored.slice(query.offset, query.offset + query.k),
    };
  }

  function explain({ query }) {
    const map = (from) => {
      const raw = Array.from(
        { length: 49 },
        (_, i) => Math.exp(-(((i % 7) - from) ** 2) / 3 - (Math.floor(i / 7) - 3) ** 2 / 3) - 0.05,
      );
      const sum = raw.reduce((a, b) => a + b, 0);
      return {
        rows: 7,
        columns: 7,
        values: raw.map((v) => (v / sum) * 0.9),
        rest: 0,
        view: [12, 0, 72, 72],
        width: 96,
        height: 72,
      };
    };
    seen.push({ query });
    return { score: 0.9, estimate: null, query: map(2), hit: map(4) };
  }

  async function answer(request, url, body) {
    const path = url.pathname.replace(/^\/api\/v1\//, '');
    asked.push(path);
    const item = items[path.match(/^items\/(\d+)/)?.[1]];
    if (faults.slow)
      await new Promise((resolve) => {
        setTimeout(resolve, faults.slow);
      });
    if (path === 'info') return info();
    if (path === 'progress') {
      const now = faults.progress.length > 1 ? faults.progress.shift() : faults.progress[0];
      faults.isEmpty = now.ready === 0;
      faults.generation = now.generation;
      return now;
    }
    if (path === 'search') {
      if (faults.busy > 0) {
        faults.busy--;
        return problem(503, 'Busy', 'the queue is full', 'try again');
      }
      if (faults.fail) {
        const { fail } = faults;
        faults.fail = null;
        return fail;
      }
      const asked = parseForm(body, request.headers['content-type']);
      load.most = Math.max(load.most, ++load.now);
      if (faults.slowSearch)
        await new Promise((resolve) => {
          setTimeout(resolve, faults.slowSearch);
        });
      load.now--;
      return search(asked);
    }
    if (path === 'explain') return explain(parseForm(body, request.headers['content-type']));
    if (path === 'duplicates') {
      if (faults.comparing > 0) {
        faults.comparing--;
        return problem(503, 'Service unavailable', 'the pictures are being compared', 'try again');
      }
      const groups = [0, 1, 2].map((g) => ({
        kind: g === 0 ? 'same' : 'near',
        items: [items[g * 10], items[g * 10 + 1], items[g * 10 + 2]],
      }));
      return { groups, n_groups: 3 };
    }
    if (path.startsWith('items/') && !item)
      return problem(404, 'Not found', `no item ${path.slice(6)}`, 'ids are in the results of a search');
    if (/\/(image|thumb)$/.test(path))
      return item.image ? drawPng(item.id) : problem(404, 'Not found', 'the item has no picture');
    if (item) return { ...item, bytes: 12345, mtime: 1700000000 };
    return problem(404, 'Not found', `no ${url.pathname} here`);
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    const chunks = [];
    for await (const part of request) chunks.push(part);
    const send = (status, type, data, more = {}) => {
      response.writeHead(status, {
        'Content-Type': type,
        'Content-Security-Policy': POLICY,
        'X-Content-Type-Options': 'nosniff',
        ...more,
      });
      response.end(data);
    };
    try {
      if (!url.pathname.startsWith('/api/')) {
        const name = url.pathname === '/' ? 'index.html' : url.pathname.replace(/^\/page\//, '');
        if (name.includes('/')) return send(404, 'text/plain', 'not here');
        return send(200, TYPES[extname(name)], await readFile(join(PAGE, name)));
      }
      if (faults.token && request.headers.authorization !== `Bearer ${faults.token}`)
        return send(
          401,
          'application/problem+json',
          JSON.stringify(problem(401, 'Unauthorized', 'no token, or a wrong one', 'send Authorization: Bearer TOKEN')),
          { 'WWW-Authenticate': 'Bearer' },
        );
      const told = await answer(request, url, Buffer.concat(chunks));
      if (Buffer.isBuffer(told)) return send(200, 'image/png', told);
      if (told.status)
        return send(
          told.status,
          'application/problem+json',
          JSON.stringify(told),
          told.status === 503 ? { 'Retry-After': '1' } : {},
        );
      return send(200, 'application/json', JSON.stringify(told));
    } catch (error) {
      return send(error.code === 'ENOENT' ? 404 : 500, 'text/plain', String(error));
    }
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return { url: `http://127.0.0.1:${server.address().port}/`, faults, seen, asked, load, items, close: () => server.close() };
}
