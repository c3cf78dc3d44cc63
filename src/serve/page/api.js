// Requests to the server: the token, answers that are problems, pictures.

const BASE = new URL('api/v1/', document.baseURI);
const MOST_TRIES = 4, LONGEST_WAIT_S = 5, KEPT_PICTURES = 400;

// What went wrong in words for people: the server's own (application/problem+json) where it answered.
export class Problem extends Error {
  constructor({ status = 0, title, detail = '', hint = '' }) {
    super(detail || title);
    Object.assign(this, { status, title, detail, hint });
  }
}

let token = sessionStorage.getItem('kith-token') ?? '';
let asking = null;
let askForToken = async () => null;
let onBusy = () => {};

// ask(wasRefused) resolves to a token, or null when nobody wants to give one. busy(seconds) is told before a wait.
export function configure({ ask, busy }) {
  askForToken = ask;
  onBusy = busy;
}

// Many requests may be refused at once; one dialog answers all of them.
async function renewToken(refused) {
  if (refused !== token) return true;
  asking ??= askForToken(refused !== '').finally(() => { asking = null; });
  const given = await asking;
  if (!given) return false;
  token = given;
  sessionStorage.setItem('kith-token', token);
  return true;
}

async function problemOf(response) {
  let told = {};
  if (response.headers.get('Content-Type')?.startsWith('application/problem+json'))
    told = await response.json().catch(() => ({}));
  return new Problem({
    status: response.status,
    title: told.title || `The server answered ${response.status} ${response.statusText}`.trim(),
    detail: told.detail,
    hint: told.hint,
  });
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener('abort', () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

async function send(path, { body, signal }) {
  const headers = {};
  const sent = token;
  if (sent) headers.Authorization = `Bearer ${sent}`;
  if (typeof body === 'string') headers['Content-Type'] = 'application/json';
  try {
    return [await fetch(new URL(path, BASE), { method: body ? 'POST' : 'GET', body, headers, signal }), sent];
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({
      title: 'No answer from the server',
      detail: 'The connection failed before there was an answer.',
      hint: 'Is kith serve still running? Start it again, then try again.',
    });
  }
}

// A busy server says when to come back; asking again changes nothing.
// isPatient: for what may take minutes.
async function request(path, options = {}) {
  for (let n_tries = 1; ; n_tries++) {
    const [response, sent] = await send(path, options);
    if (response.ok) return response;
    const retry = response.headers.get('Retry-After');
    if (response.status === 401 && (await renewToken(sent))) continue;
    const isLast = n_tries >= MOST_TRIES && !options.isPatient;
    if (![429, 503].includes(response.status) || retry === null || isLast) throw await problemOf(response);
    const seconds = Math.min(Number(retry) || 1, LONGEST_WAIT_S);
    if (!options.isPatient) onBusy(seconds);
    await wait(seconds, options.signal);
  }
}

const readJson = async (path, options) => (await request(path, options)).json();

export const getInfo = (signal) => readJson('info', { signal });
export const getProgress = () => readJson('progress');
export const getItem = (id, signal) => readJson(`items/${id}`, { signal });
export const getDuplicates = (offset, limit, signal) =>
  readJson(`duplicates?limit=${limit}&offset=${offset}`, { signal, isPatient: true });
export const getNames = (path, signal) => readJson(path, { signal });
export const getTable = async () => (await request('export.csv')).blob();
// A writer that waits for another program is waited for: what was decided is not lost.
export const decide = (path, decision) => readJson(path, { body: JSON.stringify(decision), isPatient: true });
export const getImage = async (id, signal) => (await request(`items/${id}/image`, { signal })).blob();

// `fields` beside the images, and the images: [{id, weight}] or [{blob, name, weight, crop}].
function bodyOf(fields, images) {
  const form = new FormData();
  const described = images.map(({ id, blob, name, weight, crop }, i) => {
    if (!blob) return { id, weight };
    form.append(`f${i}`, blob, name);
    return { part: `f${i}`, weight, ...(crop && { crop }) };
  });
  const query = JSON.stringify({ images: described, ...fields });
  if (images.every(({ blob }) => !blob)) return query;
  form.append('query', new Blob([query], { type: 'application/json' }));
  return form;
}

export const search = (fields, images, signal) => readJson('search', { body: bodyOf(fields, images), signal });
export const explain = (hit, image, signal) => readJson('explain', { body: bodyOf({ hit }, [image]), signal });

// Pictures go through fetch, not <img src>, because an <img> cannot send a token. The latest are kept.
const pictures = new Map();

function picture(path, signal) {
  let kept = pictures.get(path);
  pictures.delete(path);
  kept ??= request(path, { signal }).then((response) => response.blob()).then(URL.createObjectURL);
  pictures.set(path, kept);
  kept.catch(() => { if (pictures.get(path) === kept) pictures.delete(path); });
  if (pictures.size > KEPT_PICTURES) {
    const [oldest, url] = pictures.entries().next().value;
    pictures.delete(oldest);
    url.then(URL.revokeObjectURL, () => {});
  }
  return kept;
}

export const thumbUrl = (id, side, signal) => picture(`items/${id}/thumb?side=${side}`, signal);
export const imageUrl = (id, signal) => picture(`items/${id}/image`, signal);
