// The page: one state, which the address holds, and the parts that show it.
import { configure, getInfo, getProgress } from './api.js';
import { nameOf, skeletons } from './cards.js';
import { Detail } from './detail.js';
import { button, byId, count, h, plural, say } from './dom.js';
import { Filters } from './filters.js';
import { fillHero } from './hero.js';
import { listen, takeFile, uploads } from './intake.js';
import { progressText } from './progress.js';
import { emptyQuery, searchFromState, stateFromSearch, withImage } from './query.js';
import { Results } from './results.js';
import { Stage } from './stage.js';
import { makeThreshold } from './threshold.js';
import { chipsOf } from './where.js';

let info = null;
let state = null; // see query.js
let n_lost = 0; // uploaded images that a link or a reload could not bring back
let parts = null;
let other = null; // the controller of a view that is not the search while it is shown

// Views that few open: each is a module of its name, loaded when it is needed.
const VIEWS = { duplicates: 'Duplicates', name: 'Name photos' };

// ---- problems, notices, the token ----

const clearProblem = () => byId('problem').replaceChildren();

function complain(problem, retry = null) {
  const again = () => {
    clearProblem();
    retry();
  };
  byId('problem').replaceChildren(h('div', { class: 'problem', role: 'alert' },
    h('strong', {}, problem.title || 'Something went wrong'), problem.detail && h('p', {}, problem.detail),
    problem.hint && h('p', { class: 'hint' }, problem.hint),
    retry && button({ class: 'small', onclick: again }, 'Try again')));
}

function askForToken(wasRefused) {
  const dialog = byId('token'), input = byId('token-value');
  byId('token-title').textContent = wasRefused ? 'The token was not accepted' : 'This server asks for a token';
  input.value = '';
  dialog.returnValue = 'cancel';
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(dialog.returnValue === 'ok' ? input.value.trim() : null);
    dialog.addEventListener('close', answer, { once: true });
  });
}

function showNotices() {
  const { images } = state.query;
  const notices = [];
  if (n_lost > 0)
    notices.push(`${n_lost === 1 ? 'An uploaded image was' : `${n_lost} uploaded images were`} part of this search. ` +
      `An address cannot hold ${n_lost === 1 ? 'it: add it' : 'them: add them'} again.`);
  if (images.length > 0 && !hasPlus())
    notices.push('All images are a minus. Make one a plus, or add what to look for.');
  byId('notice').replaceChildren(...notices.map((text) => h('p', { class: 'notice' }, text)));
  byId('not-held').hidden = !images.some((image) => image.upload !== undefined);
}

// ---- state and address ----

const hasPlus = () => state.query.images.some((image) => image.weight > 0);
const copyOf = (value) => JSON.parse(JSON.stringify(value));

// how: 'push' for a step that Back undoes, 'replace', or 'live' while something is dragged. An entry of the history
// remembers whether it opened the detail: then closing it is going back.
function go(change, how = 'push') {
  state = { ...state, ...change };
  if (how !== 'live') {
    const opened = how === 'push' ? Boolean(change.item) : Boolean(history.state?.opened && state.item !== null);
    const entry = { state: copyOf(state), opened };
    history[how === 'push' ? 'pushState' : 'replaceState'](entry, '', location.pathname + searchFromState(state));
  }
  render(how === 'live');
}

function ask(change, isFinal = true) {
  n_lost = 0;
  go({ view: 'search', item: null, query: { ...state.query, ...change } }, isFinal ? 'push' : 'live');
}

// An entry of the history knows uploaded images by their keys; after a reload they are gone.
function readAddress() {
  const kept = history.state?.state;
  const fromAddress = stateFromSearch(location.search);
  state = kept ? copyOf(kept) : fromAddress.state;
  const there = state.query.images.filter((image) => image.upload === undefined || uploads.has(image.upload));
  n_lost = state.query.images.length - there.length + (kept ? 0 : fromAddress.uploads);
  state.query.images = there;
  render(false);
}

// ---- what people do ----

async function take(files, how) {
  clearProblem();
  try {
    const added = [];
    for (const file of files)
      added.push({ upload: await takeFile(file, info), weight: how === 'minus' ? -1 : 1 });
    ask({ images: how === 'new' ? added : [...state.query.images, ...added] });
  } catch (problem) {
    complain(problem);
  }
}

function like(item) {
  ask({ images: [{ id: item.id, weight: 1 }] });
  window.scrollTo({ top: 0 });
  byId('results').focus({ preventScroll: true });
}

function add(item, weight) {
  ask({ images: withImage(state.query.images, { id: item.id, weight }) });
  say(`${nameOf(item)} added as a ${weight > 0 ? 'plus' : 'minus'}`);
}

const open = (item) => go({ item: item.id });

const detailActions = {
  like, add,
  close: () => (history.state?.opened ? history.back() : go({ item: null }, 'replace')),
  step: (by) => {
    const { hits } = parts.results;
    const next = hits[hits.findIndex((hit) => hit.id === state.item) + by];
    if (next) go({ item: next.id }, 'replace');
  },
  only: (label) => ask({ filters: { ...state.query.filters, label: { is: [label] } } }),
  why: (why) => go({ why }, 'replace'),
};

// ---- what is shown ----

function render(isLive) {
  if (state.view === 'name' && !info.can_name) state.view = 'search';
  const { view, query } = state;
  const isSearch = view === 'search', isEmpty = query.images.length === 0;
  document.body.dataset.view = view;
  document.body.dataset.query = isEmpty ? 'none' : 'some';
  document.title = isSearch ? 'kith search' : `${VIEWS[view]} · kith`;
  byId('title').textContent = !isSearch ? VIEWS[view] : isEmpty ? 'Search' : 'Results';
  byId('hero').hidden = !isSearch || !isEmpty;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.go === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!isLive) parts.stage.show(query.images);
  parts.threshold.show(query.same);
  parts.filters.show(query.filters, query.where);
  byId('hide-duplicates').checked = query.hideDuplicates;
  const n_narrow = chipsOf(query.filters).length + Boolean(query.where) + (query.same !== null) + query.hideDuplicates;
  byId('narrow-count').textContent = n_narrow > 0 ? n_narrow : '';
  showNotices();
  showView(view, isLive);
  showDetail();
}

async function showOther(view, signal) {
  const { show } = await import(`./${view}.js`);
  if (!signal.aborted) show(byId('found'), { open, like }, signal, complain);
}

function showView(view, isLive) {
  const { results } = parts;
  const isSearch = view === 'search';
  if (!isSearch && other?.view === view) return;
  if (other || !isSearch || !hasPlus()) {
    other?.abort();
    other = null;
    clearProblem();
    results.leave();
  }
  if (!isSearch) {
    other = Object.assign(new AbortController(), { view });
    showOther(view, other.signal).catch(complain);
  } else if (hasPlus()) {
    results.want(state.query, isLive);
  }
}

function showDetail() {
  if (state.item === null) {
    parts.detail.hide();
    return;
  }
  const { hits } = parts.results;
  const at = hits.findIndex((hit) => hit.id === state.item);
  const images = state.view === 'search' ? state.query.images : [];
  parts.detail.show(hits[at] ?? { id: state.item }, images, state.why, at < 0 ? '' : `${at + 1} of ${hits.length}`);
}

// ---- the beginning ----

// Of the index as a whole.
function showInfo() {
  parts.threshold = makeThreshold(byId('threshold'), info, (same, isFinal) => ask({ same }, isFinal));
  byId('about').textContent = plural(info.items, 'item', 'items');
  byId('facts').replaceChildren([`kith ${info.version}`, `${info.tier} search`, info.metric,
    `${count(info.dim)} values an item`, `generation ${count(info.generation)}`, ''].join(' · '),
  h('a', { href: 'openapi.json' }, 'API'));
  fillHero(byId('hero'), info, like);
}

// While photos are indexed.
async function follow() {
  let isReady = true;
  try {
    const now = await getProgress();
    isReady = now.state === 'ready';
    if (now.generation !== info.generation && (isReady || !info.samples[0])) {
      Object.assign(info, await getInfo());
      showInfo();
      parts.threshold.show(state.query.same);
    }
    byId('about').textContent = progressText(now);
  } catch { /* the next time */ }
  setTimeout(follow, isReady ? 1e4 : 1000);
}

function build() {
  const actions = { open, like, add, why: info.can_explain ? (item) => go({ item: item.id, why: true }) : null };
  const page = { actions, ask, complain, clear: clearProblem, shown: showDetail };
  parts = {
    stage: new Stage(byId('stage'), info, (images, isFinal) => ask({ images }, isFinal)),
    filters: new Filters(byId('filters'), info, (filters, where) => ask({ filters, where })),
    results: new Results(byId('found'), info, page),
    detail: new Detail(byId('detail'), info, detailActions),
  };
  showInfo();
  document.querySelector('[data-go="name"]').hidden = !info.can_name;
  byId('hide-duplicates').addEventListener('change', (event) => ask({ hideDuplicates: event.target.checked }));
  byId('narrow').open = window.matchMedia('(min-width: 860px)').matches;
  document.addEventListener('click', (event) => {
    const to = event.target.closest?.('a[data-go]')?.dataset.go;
    if (!to || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    n_lost = 0;
    go(to === 'home' ? { view: 'search', item: null, query: emptyQuery() } : { view: to, item: null });
  });
  listen(take, () => state.view === 'search' && state.query.images.length > 0, complain);
  window.addEventListener('popstate', readAddress);
  readAddress();
  if (info.is_indexing) follow();
}

async function start() {
  byId('found').replaceChildren(skeletons(12));
  try {
    info = await getInfo();
  } catch (problem) {
    byId('found').replaceChildren();
    complain(problem, start);
    return;
  }
  byId('found').replaceChildren();
  build();
}

configure({
  ask: askForToken,
  busy: (seconds) => say(`The server is busy; trying again in ${plural(seconds, 'second', 'seconds')}`),
});
start();
