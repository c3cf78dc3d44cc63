// The page: one state, which the address holds, and the parts that show it.
import * as api from './api.js';
import { arrowKeys, card, nameOf, skeletons, thumb } from './cards.js';
import { Detail } from './detail.js';
import { byId, count, h, icon, plural, say } from './dom.js';
import { showDuplicates } from './duplicates.js';
import { Filters } from './filters.js';
import { listen, openChooser, sendable, takeFile, uploads } from './intake.js';
import { emptyQuery, searchFromState, stateFromSearch, withImage } from './query.js';
import { Stage } from './stage.js';
import { makeThreshold } from './threshold.js';
import { chipsOf, whereOf } from './where.js';

let info = null;
let state = null;
let n_lost = 0; // uploaded images that a link or a reload could not bring back
let parts = null;
let shownView = null;

const found = byId('found');
const hits = { list: [], key: null, grid: null, isMore: false };
let running = null; // the search under way: {controller}
let isStale = false; // the query changed during a search that was let run
const pageSize = () => Math.min(window.innerWidth >= 1600 ? 48 : 24, info.limits?.k ?? 24);

// ---- problems, notices, the token ----

function showProblem(problem, retry = null) {
  const box = h('div', { class: 'problem', role: 'alert' },
    h('strong', {}, problem.title || 'Something went wrong'),
    problem.detail && h('p', {}, problem.detail), problem.hint && h('p', { class: 'hint' }, problem.hint),
    retry && h('button', { type: 'button', class: 'small', onclick: () => { clearProblem(); retry(); } }, 'Try again'));
  byId('problem').replaceChildren(box);
}

const clearProblem = () => byId('problem').replaceChildren();

function askForToken(wasRefused) {
  const dialog = byId('token'), input = byId('token-value');
  byId('token-title').textContent = wasRefused ? 'The token was not accepted' : 'This server asks for a token';
  input.value = '';
  dialog.returnValue = 'cancel';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'ok' ? input.value.trim() : null), { once: true });
  });
}

function showNotice() {
  const lost = n_lost === 0 ? null : h('div', { class: 'notice' },
    `${n_lost === 1 ? 'An uploaded image was' : `${n_lost} uploaded images were`} part of this search. An address cannot hold `,
    `${n_lost === 1 ? 'it: add it' : 'them: add them'} again.`);
  const hasUpload = state.query.images.some((image) => image.upload !== undefined);
  const here = hasUpload && state.view === 'search' ? h('p', { class: 'quiet aside' }, 'The address of this page holds the query without the uploaded image.') : null;
  const isMinus = state.query.images.length > 0 && !hasPlus();
  byId('notice').replaceChildren(...[lost, isMinus && h('div', { class: 'notice' }, 'All images are a minus. Make one a plus, or add what to look for.')].filter(Boolean));
  byId('facts').replaceChildren(...factsLine(), ...(here ? [here] : []));
}

// ---- state and address ----

const hasPlus = () => state.query.images.some((image) => image.weight > 0);
const plain = (value) => JSON.parse(JSON.stringify(value));

// how: 'push' for a step that Back should undo, 'replace', or 'live' while something is dragged.
function go(change, how = 'push') {
  state = { ...state, ...change };
  if (how !== 'live') {
    const address = location.pathname + searchFromState(state);
    history[how === 'push' ? 'pushState' : 'replaceState']({ state: plain(state), opened: Boolean(change.item) && how === 'push' }, '', address);
  }
  render(how === 'live');
}

const ask = (change, how) => {
  n_lost = 0;
  go({ view: 'search', item: null, query: { ...state.query, ...change } }, how);
};

// The state of the history entry knows uploaded images by their keys; after a reload they are gone.
function readAddress() {
  const kept = history.state?.state;
  const fromAddress = stateFromSearch(location.search);
  state = kept ? plain(kept) : fromAddress.state;
  n_lost = kept ? 0 : fromAddress.uploads;
  const there = state.query.images.filter((image) => image.upload === undefined || uploads.has(image.upload));
  n_lost += state.query.images.length - there.length;
  state.query.images = there;
  render(false);
}

async function take(files, how) {
  clearProblem();
  if (!info.can_embed) {
    showProblem({ title: 'This index cannot be searched with images', detail: 'It was made from vectors, without a model.', hint: 'Search with items of the index, or make it again with --model.' });
    return;
  }
  try {
    const keys = [];
    for (const file of files) keys.push(await takeFile(file, info.limits));
    const added = keys.map((upload) => ({ upload, weight: how === 'minus' ? -1 : 1 }));
    ask({ images: how === 'new' ? added : [...state.query.images, ...added] });
  } catch (problem) {
    showProblem(problem);
  }
}

const actions = {
  open: (hit) => go({ item: hit.id, why: state.why }),
  like: (hit) => { ask({ images: [{ id: hit.id, weight: 1 }] }); toTop(); },
  add: (hit, weight) => {
    ask({ images: withImage(state.query.images, { id: hit.id, weight }) });
    say(`${nameOf(hit)} added as a ${weight > 0 ? 'plus' : 'minus'}`);
  },
  why: (hit) => go({ item: hit.id, why: true }),
};

const detailActions = {
  ...actions,
  close: () => { if (history.state?.opened) history.back(); else go({ item: null }, 'replace'); },
  step: (by) => {
    const at = hits.list.findIndex((hit) => hit.id === state.item);
    const next = hits.list[at + by];
    if (at < 0 || !next) return;
    const { opened } = history.state ?? {};
    go({ item: next.id }, 'replace');
    history.replaceState({ ...history.state, opened }, '');
  },
  only: (label) => ask({ filters: { ...state.query.filters, label: { is: [label] } } }),
  why: (isOn) => {
    const { opened } = history.state ?? {};
    go({ why: isOn }, 'replace');
    history.replaceState({ ...history.state, opened }, '');
  },
};

function toTop() {
  window.scrollTo({ top: 0 });
  byId('results').focus({ preventScroll: true });
}

// ---- what is shown ----

function render(isLive) {
  const { view, query } = state;
  const isEmpty = view === 'search' && query.images.length === 0;
  document.body.dataset.view = view;
  document.body.dataset.query = query.images.length > 0 ? 'some' : 'none';
  byId('title').textContent = view === 'duplicates' ? 'Duplicates' : isEmpty ? 'Search' : 'Results';
  document.title = view === 'duplicates' ? 'Duplicates · kith' : 'kith search';
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.go === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!isLive) parts.stage.show(query.images);
  parts.threshold.show(query.same);
  parts.filters.show(query.filters, query.where);
  byId('hide-duplicates').checked = query.hideDuplicates;
  const n_narrow = chipsOf(query.filters).length + Boolean(query.where) + (query.same !== null) + query.hideDuplicates;
  byId('narrow-count').textContent = n_narrow > 0 ? String(n_narrow) : '';
  showNotice();
  byId('hero').hidden = !isEmpty;
  if (view !== shownView) leaveView();
  if (view === 'duplicates') {
    if (shownView !== view) startDuplicates();
  } else if (hasPlus()) wantSearch(isLive);
  else leaveView();
  shownView = view;
  showDetail();
}

function leaveView() {
  running?.controller.abort();
  running = null;
  clearProblem();
  Object.assign(hits, { list: [], key: null, grid: null });
  found.replaceChildren();
}

function startDuplicates() {
  running = { controller: new AbortController() };
  showDuplicates(found, { open: actions.open, like: actions.like }, running.controller.signal, showProblem);
}

function showDetail() {
  if (state.item === null) {
    parts.detail.hide();
    return;
  }
  const at = hits.list.findIndex((hit) => hit.id === state.item);
  const images = state.view === 'search' ? state.query.images : [];
  parts.detail.show(hits.list[at] ?? { id: state.item }, images, state.why, at < 0 ? '' : `${at + 1} of ${hits.list.length}`);
}

// ---- searching ----

function fieldsOf(query, offset) {
  const where = whereOf(query.filters, query.where);
  return {
    k: pageSize(), offset,
    ...(where && { where }), ...(query.same !== null && { same: query.same }),
    ...(query.hideDuplicates && { hide_duplicates: true }),
  };
}

// While something is dragged, one search at a time runs to its end and the newest query follows it. Otherwise a new
// query takes the place of the search under way.
function wantSearch(isLive) {
  const key = JSON.stringify(state.query);
  if (key === hits.key) return;
  if (running && isLive) {
    isStale = true;
    return;
  }
  running?.controller.abort();
  isStale = false;
  runSearch(key);
}

async function runSearch(key) {
  const controller = new AbortController();
  const { signal } = controller;
  const { query } = state;
  running = { controller };
  hits.key = key;
  found.setAttribute('aria-busy', 'true');
  if (!hits.grid) found.replaceChildren(skeletons(12));
  try {
    const images = await Promise.all(query.images.map((image) => sendable(image, signal)));
    const answer = await api.search(fieldsOf(query, 0), images, signal);
    if (signal.aborted) return;
    clearProblem();
    showHits(answer, query);
  } catch (problem) {
    if (signal.aborted) return;
    Object.assign(hits, { list: [], key: null, grid: null });
    found.replaceChildren();
    showProblem(problem, () => wantSearch(false));
  } finally {
    if (running?.controller === controller) {
      running = null;
      found.removeAttribute('aria-busy');
      if (isStale) wantSearch(true);
      isStale = false;
    }
  }
}

async function showMore(button) {
  const { query } = state;
  const { key } = hits;
  button.disabled = true;
  try {
    const images = await Promise.all(query.images.map((image) => sendable(image)));
    const answer = await api.search(fieldsOf(query, hits.list.length), images);
    if (key !== hits.key) return;
    const first = hits.grid.children.length;
    hits.list.push(...answer.hits);
    hits.grid.append(...answer.hits.map((hit) => card(hit, cardActions())));
    hits.grid.children[first]?.querySelector('.open').focus();
    button.hidden = answer.hits.length < pageSize();
    say(`${hits.list.length} results`);
  } catch (problem) {
    showProblem(problem, () => showMore(button));
  } finally {
    button.disabled = false;
  }
}

const cardActions = () => ({ ...actions, why: info.can_explain ? actions.why : null });

function showHits(answer, query) {
  const focus = focusedTool();
  hits.list = answer.hits;
  const grid = h('ul', { class: 'grid', 'aria-label': 'Results', onkeydown: arrowKeys }, answer.hits.map((hit) => card(hit, cardActions())));
  const more = h('button', { type: 'button', class: 'more', hidden: answer.hits.length < pageSize() || answer.hits.length >= answer.n_allowed, onclick: () => showMore(more) }, 'Show more');
  hits.grid = grid;
  found.replaceChildren(countLine(answer, query), answer.hits.length > 0 ? grid : nothing(query), more);
  if (focus) (grid.querySelector(`[data-id="${focus.id}"]`)?.querySelectorAll('button')[focus.at] ?? byId('results')).focus({ preventScroll: true });
  const [best] = answer.hits;
  say(best ? `${plural(answer.hits.length, 'result', 'results')}. Best: ${nameOf(best)}, score ${best.score.toFixed(3)}` : 'No results');
  showDetail();
}

// Cards are drawn anew; whoever was on a button of one stays on it.
function focusedTool() {
  const at = document.activeElement?.closest?.('.card');
  return at && found.contains(at) ? { id: at.dataset.id, at: [...at.querySelectorAll('button')].indexOf(document.activeElement) } : null;
}

function countLine(answer, query) {
  const where = whereOf(query.filters, query.where);
  const chips = chipsOf(query.filters).map(({ column, text, rest }) =>
    h('li', {}, h('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter ${column} ${text}`, onclick: () => { ask({ filters: rest }); byId('results').focus({ preventScroll: true }); } },
      h('bdi', {}, h('span', { class: 'quiet' }, column), ' ', text), icon('close'))));
  return h('div', { class: 'count' },
    h('p', {}, h('b', {}, plural(answer.hits.length, 'result', 'results')), ` of ${plural(answer.n_allowed, 'item', 'items')}${where ? ' that the filters let through' : ''}`,
      h('span', { class: 'quiet' }, ` · ${answer.took_ms < 10 ? answer.took_ms.toFixed(1) : Math.round(answer.took_ms)} ms`)),
    chips.length > 0 && h('ul', { class: 'chips', 'aria-label': 'Filters in use' }, chips));
}

function nothing(query) {
  const isNarrow = query.same !== null || whereOf(query.filters, query.where);
  return h('div', { class: 'nothing' }, h('h2', {}, query.same !== null ? 'Nothing is this similar' : 'Nothing found'),
    h('p', {}, isNarrow ? 'Allow a higher error rate, or take filters away.' : 'The index has no items to compare with.'),
    isNarrow && h('button', { type: 'button', onclick: () => ask({ same: null, filters: {}, where: '' }) }, 'Show everything'));
}

// ---- the beginning ----

async function fillHero() {
  const choose = (id, name, text, kind = '') => h('button', { type: 'button', class: `${kind} ${id}`, onclick: () => openChooser(id, 'new') }, icon(name), text);
  const samples = h('div', { class: 'samples', hidden: true });
  const target = info.can_embed
    ? h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find images like yours'),
      h('p', {}, 'Drop an image here, paste one with ', h('kbd', {}, 'Ctrl'), ' ', h('kbd', {}, 'V'), ', or'),
      h('div', { class: 'buttons' }, choose('choose', 'image', 'Choose an image', 'main'), choose('photograph', 'camera', 'Take a photo')))
    : h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find similar items'),
      h('p', {}, 'This index was made from vectors, without a model: search with one of its items.'));
  byId('hero').replaceChildren(target, samples);
  const n = 8, step = info.items / n, from = Math.random() * step;
  const ids = [...new Set(Array.from({ length: n }, (_, i) => Math.floor(from + i * step)))].filter((id) => id < info.items);
  const items = (await Promise.allSettled(ids.map((id) => api.getItem(id)))).filter((one) => one.status === 'fulfilled').map((one) => one.value);
  if (items.length === 0) return;
  samples.replaceChildren(h('h2', {}, 'Or start from one of these'), h('ul', {}, items.map((item) =>
    h('li', {}, h('button', { type: 'button', 'aria-label': `Search with ${nameOf(item)}`, title: nameOf(item), onclick: () => actions.like(item) }, thumb(item))))));
  samples.hidden = false;
}

function factsLine() {
  const facts = [`kith ${info.version}`, `${info.tier} search`, info.metric, `${count(info.dim)} values an item`, `generation ${count(info.generation)}`];
  return [facts.join(' · '), ' · ', h('a', { href: 'openapi.json' }, 'API')];
}

function build() {
  byId('about').textContent = plural(info.items, 'item', 'items');
  parts = {
    stage: new Stage(byId('stage'), info, (images, isFinal) => {
      if (isFinal) ask({ images });
      else go({ query: { ...state.query, images } }, 'live');
    }),
    threshold: makeThreshold(byId('threshold'), info, (same, isFinal) => {
      if (isFinal) ask({ same });
      else go({ query: { ...state.query, same } }, 'live');
    }),
    filters: new Filters(byId('filters'), info, (filters, where) => ask({ filters, where })),
    detail: new Detail(byId('detail'), info, detailActions),
  };
  byId('hide-duplicates').addEventListener('change', (event) => ask({ hideDuplicates: event.target.checked }));
  byId('narrow').open = !window.matchMedia('(max-width: 859px)').matches;
  document.addEventListener('click', (event) => {
    const to = event.target.closest?.('a[data-go]')?.dataset.go;
    if (!to || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    n_lost = 0;
    if (to === 'home') go({ view: 'search', item: null, query: emptyQuery() });
    else go({ view: to, item: null });
  });
  listen(take, () => state.view === 'search' && state.query.images.length > 0, showProblem);
  window.addEventListener('popstate', readAddress);
  fillHero();
  readAddress();
}

async function start() {
  api.configure({ ask: askForToken, busy: (seconds) => say(`The server is busy; trying again in ${plural(seconds, 'second', 'seconds')}`) });
  found.replaceChildren(skeletons(12));
  try {
    info = await api.getInfo();
    found.replaceChildren();
    build();
  } catch (problem) {
    if (info) throw problem;
    found.replaceChildren();
    showProblem(problem, start);
  }
}

start();
