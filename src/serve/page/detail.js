// One hit, large, beside the image that it was found with; colours show where the score comes from.
import { explain, getItem, imageUrl } from './api.js';
import { falseMatches, nameOf } from './cards.js';
import { button, h, icon, iconButton } from './dom.js';
import { heatMap, heatText } from './heat.js';
import { sendable } from './intake.js';
import { describe } from './stage.js';

function bytesText(bytes) {
  const units = ['bytes', 'kB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`;
}

const isThere = (value) => value !== undefined && value !== null;
const emptyFrame = () => h('div', { class: 'frame empty' });
const blind = (text) => h('div', { class: 'frame' }, h('p', { class: 'blind' }, icon('image'), text));

// A picture in a frame, with room for what lies over it.
function framed(url, width, height, alt) {
  const element = h('div', { class: 'frame' }, h('img', { src: url, alt, draggable: 'false' }));
  return { element, shape: width / height };
}

async function frameOfHit(item) {
  if (item.image === false) return { element: blind('This item has no picture.') };
  try {
    const picture = new Image();
    picture.src = await imageUrl(item.id);
    await picture.decode();
    return framed(picture.src, picture.naturalWidth, picture.naturalHeight, nameOf(item));
  } catch (problem) {
    return { element: blind(problem.detail || 'The picture cannot be shown.') };
  }
}

async function frameOfQuery(image) {
  const about = await describe(image).catch(() => null);
  return about?.url ? framed(about.url, about.width, about.height, 'The query')
    : { element: blind('The query has no picture that can be shown.') };
}

// actions: close(), step(by), like(item), add(item, weight), only(label), why(isOn).
export class Detail {
  constructor(dialog, info, actions) {
    Object.assign(this, { dialog, info, actions, item: null });
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      actions.close();
    });
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog) actions.close();
    });
    dialog.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by && !event.target.matches('select')) actions.step(by);
    });
  }

  hide() {
    if (!this.dialog.open) return;
    this.controller.abort();
    this.item = null;
    this.dialog.close();
    if (this.opener?.isConnected) this.opener.focus();
  }

  // hit may be just {id} until the hits are there. images: those of the query. place: "3 of 24" or ''.
  show(hit, images, why, place) {
    const isNew = hit.id !== this.item?.id;
    if (!this.dialog.open) {
      this.opener = document.activeElement;
      this.dialog.showModal();
    }
    if (isNew) this.draw(hit, images);
    this.item = { ...this.item, ...hit };
    this.place.textContent = place;
    for (const step of this.steps) step.disabled = place === '';
    this.showFacts();
    if (isNew || why !== this.why) this.showWhy(why);
  }

  draw(hit, images) {
    this.controller?.abort();
    this.controller = new AbortController();
    const focused = this.dialog.contains(document.activeElement) && document.activeElement.dataset.key;
    const { like, add, step, close, why } = this.actions;
    this.item = hit;
    this.images = images;
    this.title = h('h2', { id: 'detail-title' });
    this.place = h('span', { class: 'quiet' });
    this.left = h('figure', {}, h('figcaption', {}, 'Query'));
    this.right = h('figure', {}, h('figcaption', {}, 'Found'));
    this.told = h('p', { class: 'told', 'aria-live': 'polite' });
    this.facts = h('dl', { class: 'facts' });
    this.toggle = button({ class: 'small', 'data-key': 'why', onclick: () => why(!this.why) },
      icon('why'), 'Why it matched');
    this.steps = [iconButton('previous', 'Previous hit', () => step(-1), { 'data-key': 'previous' }),
      iconButton('next', 'Next hit', () => step(1), { 'data-key': 'next' })];
    const canExplain = this.info.can_explain && images.length > 0 && hit.image !== false;
    this.dialog.replaceChildren(
      h('header', {}, this.title, this.place, h('div', { class: 'steps' }, this.steps,
        iconButton('close', 'Close', close, { 'data-key': 'close' }))),
      h('div', { class: 'pair' }, images.length > 0 && this.left, this.right),
      h('div', { class: 'buttons' }, canExplain && [this.toggle, images.length > 1 && this.chooser()],
        button({ class: 'small', onclick: () => like(this.item) }, icon('like'), 'More like this'),
        button({ class: 'small', onclick: () => add(this.item, 1) }, icon('plus'), 'Plus'),
        button({ class: 'small', onclick: () => add(this.item, -1) }, icon('minus'), 'Minus')),
      this.told, this.facts);
    this.dialog.querySelector(`[data-key="${focused || 'close'}"]`)?.focus();
    this.fill(this.right, frameOfHit(hit));
    this.look(images.find((image) => image.weight > 0));
    this.load(hit.id, this.controller.signal);
  }

  // A figure waits for its frame; figure.frame is the promise of it.
  fill(figure, frame) {
    const wait = emptyFrame();
    figure.querySelector('.frame')?.remove();
    figure.append(wait);
    figure.frame = frame.then((made) => {
      wait.replaceWith(made.element);
      if (made.shape) figure.style.setProperty('--shape', made.shape);
      return made;
    });
  }

  // The image of the query that the hit is explained with.
  look(image) {
    this.image = image;
    this.heat = null;
    if (image) this.fill(this.left, frameOfQuery(image));
  }

  chooser() {
    const change = (event) => {
      this.look(this.images[event.target.value]);
      this.showWhy(this.why);
    };
    return h('label', { class: 'choice' }, 'for ', h('select', { onchange: change }, this.images.map((image, i) =>
      h('option', { value: i }, `image ${i + 1} (${image.weight > 0 ? 'plus' : 'minus'})`))));
  }

  async load(id, signal) {
    const item = await getItem(id, signal).catch(() => null);
    if (!item || signal.aborted) return;
    this.item = { ...item, ...this.item };
    this.showFacts();
  }

  showFacts() {
    const { item } = this;
    const rows = [];
    const row = (name, ...value) => rows.push(h('div', {}, h('dt', {}, name), h('dd', {}, ...value)));
    if (isThere(item.score)) row('score', item.score.toFixed(4));
    const odds = falseMatches(item);
    if (odds) row('wrong?', odds.title);
    if (isThere(item.label)) {
      const only = () => this.actions.only(item.label);
      row('label', h('bdi', {}, item.label), ' ', button({ class: 'link', onclick: only }, 'only these'));
    }
    if (item.path) row('path', h('bdi', { class: 'code' }, item.path));
    row('id', String(item.id));
    for (const [name, value] of Object.entries(item.values ?? {}))
      if (isThere(value)) row(name, h('bdi', {}, String(value)));
    if (item.bytes > 0) row('size', bytesText(item.bytes));
    if (item.mtime > 0) row('changed', new Date(item.mtime * 1000).toISOString().slice(0, 16).replace('T', ' '));
    this.facts.replaceChildren(...rows);
    this.title.replaceChildren(h('bdi', {}, nameOf(item)));
  }

  async showWhy(why) {
    const { item: { id }, image, controller: { signal } } = this;
    this.why = why;
    this.toggle.setAttribute('aria-pressed', why);
    this.dialog.classList.toggle('why', why);
    this.dialog.querySelectorAll('.heat').forEach((canvas) => canvas.remove());
    this.told.replaceChildren();
    if (!why || !this.info.can_explain || !image) return;
    this.told.textContent = 'Looking where the score comes from …';
    try {
      this.heat ??= await explain(id, await sendable(image, signal), signal);
      const [left, right] = await Promise.all([this.left.frame, this.right.frame]);
      if (signal.aborted || image !== this.image || !this.why || this.dialog.querySelector('.heat')) return;
      const { query, hit, score, estimate } = this.heat;
      if (left.shape) left.element.append(heatMap(query));
      if (right.shape) right.element.append(heatMap(hit));
      const legend = (name, text) => h('span', { class: 'legend' }, h('i', { class: name }), text);
      const all = hit.rest ? `With ${hit.rest.toFixed(4)} that has no place, they add up to` : 'All places add up to';
      this.told.replaceChildren(heatText(hit, estimate ? 'estimate' : 'score'), estimate ? ' The score is ' : ` ${all} the score, `,
        h('b', {}, score.toFixed(4)), estimate ? `. Where it comes from is an estimate: ${estimate}. ` : '. ',
        legend('warm', 'adds to it'), legend('cold', 'takes from it'));
    } catch (problem) {
      if (!signal.aborted) this.told.textContent = [problem.detail || problem.title, problem.hint].join(' ');
    }
  }
}
