// Items as cards, with what can be done with them.
import { thumbUrl } from './api.js';
import { button, count, h, icon, iconButton, pathParts } from './dom.js';

const THUMB_SIDE = 320, AT_ONCE = 4;

// A few pictures at a time, so that a new search need not wait behind those of the last one; cards that are gone are passed over.
const waiting = [];
let n_loading = 0;

async function loadNext() {
  while (n_loading < AT_ONCE && waiting.length > 0) {
    const { img, id } = waiting.shift();
    if (!img.isConnected) continue;
    n_loading++;
    thumbUrl(id, THUMB_SIDE)
      .then((url) => { img.src = url; }, () => { img.closest('.thumb')?.classList.add('none'); })
      .finally(() => { n_loading--; loadNext(); });
  }
}

// The picture of an item in a frame; the frame stays where there is none.
export function thumb(item) {
  const frame = h('span', { class: 'thumb' }, h('span', { class: 'blank' }, icon('image')));
  if (item.image === false) {
    frame.classList.add('none');
    return frame;
  }
  const img = h('img', { alt: '', draggable: 'false', onload: () => frame.classList.add('there') });
  frame.append(img);
  waiting.push({ img, id: item.id });
  queueMicrotask(loadNext);
  return frame;
}

export const nameOf = (item) => item.label ?? (item.path ? pathParts(item.path)[1] : `item ${item.id}`);

export function pathLine(path) {
  const [folder, file] = pathParts(path);
  return h('bdi', { class: 'path', title: path }, h('span', { class: 'folder' }, folder), h('span', {}, file));
}

export function falseMatches({ error_rate: wrong, false_match_rate: rate }) {
  const x = wrong ?? rate;
  if (typeof x !== 'number') return false;
  const of = x < 0.4 ? `1 of ${count(Number((1 / x).toPrecision(2)))}` : `${Math.round(10 * x)} of 10`;
  const about = wrong ? `about ${of} such hits are wrong` : `${of} pairs of different things look this alike`;
  return h('span', { class: 'false-matches', title: about }, h('span', { class: 'hidden' }, about),
    h('span', { class: 'number', 'aria-hidden': true }, wrong ? `${of} wrong` : `${of} pairs`));
}

// actions: open(hit), like(hit), add(hit, weight), why(hit) or null. `tag` is a word in the corner of the picture.
export function card(hit, actions, tag = null) {
  const name = nameOf(hit);
  const score = hit.score?.toFixed(3) ?? '';
  return h('li', { class: 'card', 'data-id': hit.id },
    button({ class: 'open', 'aria-label': `Open ${name}${score && `, score ${score}`}`,
      onclick: () => actions.open(hit) }, thumb(hit), tag && h('span', { class: 'tag' }, tag)),
    h('div', { class: 'text' },
      h('div', { class: 'row' }, h('bdi', { class: 'name', title: name }, name),
        score && h('span', { class: 'score', title: 'score' }, score)),
      h('div', { class: 'row under' }, hit.path ? pathLine(hit.path) : h('span', { class: 'path' }, `item ${hit.id}`),
        falseMatches(hit))),
    h('div', { class: 'tools' },
      iconButton('like', `More like this: ${name}`, () => actions.like(hit)),
      actions.add && iconButton('plus', `Plus: like ${name} too`, () => actions.add(hit, 1)),
      actions.add && iconButton('minus', `Minus: unlike ${name}`, () => actions.add(hit, -1)),
      actions.why && iconButton('why', `Why ${name} matched`, () => actions.why(hit))));
}

// Arrow keys go from card to card, Home and End to the first and last.
export function arrowKeys(event) {
  const cards = [...event.currentTarget.querySelectorAll('.card')];
  const at = cards.indexOf(document.activeElement.closest('.card'));
  if (at < 0 || !document.activeElement.matches('.open')) return;
  const top = cards[at].offsetTop;
  const n_columns = Math.max(1, cards.filter((other) => other.offsetTop === cards[0].offsetTop).length);
  const step = {
    ArrowLeft: -1, ArrowRight: 1, ArrowUp: -n_columns, ArrowDown: n_columns, Home: -at, End: cards.length - 1 - at,
  }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const to = cards[at + step] ?? (event.key === 'ArrowDown' && cards.at(-1).offsetTop > top ? cards.at(-1) : null);
  to?.querySelector('.open').focus();
}

export const skeletons = (n) =>
  h('ul', { class: 'grid waiting', 'aria-hidden': 'true' }, Array.from({ length: n }, () =>
    h('li', { class: 'card' }, h('span', { class: 'thumb' }), h('div', { class: 'text' },
      h('span', { class: 'bone' }), h('span', { class: 'bone short' })))));
