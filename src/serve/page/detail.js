// One hit, large, beside the image that it was found with; where the score comes from lies over both as colours.
import { explain, getItem, imageUrl } from './api.js';
import { errorText, nameOf } from './cards.js';
import { h, icon, iconButton, say } from './dom.js';
import { heatMap, heatText } from './heat.js';
import { sendable } from './intake.js';
import { describe } from './stage.js';

function bytesText(bytes) {
  const units = ['bytes', 'kB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`;
}

function dateText(mtime) {
  const date = new Date(typeof mtime === 'number' ? mtime * 1000 : mtime);
  return Number.isNaN(date.getTime()) ? String(mtime) : date.toISOString().slice(0, 16).replace('T', ' ');
}

// A picture with its natural size, and room for what lies over it.
function frame(url, width, height, alt) {
  const element = h('div', { class: 'frame' }, h('img', { src: url, alt, draggable: 'false' }));
  element.style.setProperty('--shape', width / height);
  return { element, width, height };
}

// actions: close(), step(by), like(hit), add(hit, weight), only(label), why(isOn).
export class Detail {
  constructor(dialog, info, actions) {
    Object.assign(this, { dialog, info, actions, id: null });
    dialog.addEventListener('cancel', (event) => { event.preventDefault(); actions.close(); });
    dialog.addEventListener('click', (event) => { if (event.target === dialog) actions.close(); });
    dialog.addEventListener('keydown', (event) => {
      if (event.target.matches('input, select')) return;
      if (event.key === 'ArrowLeft') actions.step(-1);
      if (event.key === 'ArrowRight') actions.step(1);
    });
  }

  hide() {
    if (!this.dialog.open) return;
    this.controller?.abort();
    this.id = null;
    this.dialog.close();
    this.dialog.replaceChildren();
    if (this.opener?.isConnected) this.opener.focus();
  }

  // hit may be just {id}. images: those of the query. place: "3 of 24" or ''.
  show(hit, images, why, place) {
    if (!this.dialog.open) {
      this.opener = document.activeElement;
      this.dialog.showModal();
    }
    const isNew = hit.id !== this.id;
    if (isNew) {
      this.id = hit.id;
      this.image = images.find((image) => image.weight > 0) ?? null;
      this.images = images;
      this.draw(hit, place);
    }
    if (isNew || why !== this.why) this.showWhy(why);
  }

  draw(hit, place) {
    this.controller?.abort();
    this.controller = new AbortController();
    const inside = this.dialog.contains(document.activeElement) ? document.activeElement.dataset?.key : null;
    this.heat = null;
    this.left = h('figure', { hidden: !this.image }, h('figcaption', {}, 'Query'), h('div', { class: 'frame empty' }));
    this.right = h('figure', {}, h('figcaption', {}, 'Found'), h('div', { class: 'frame empty' }));
    this.told = h('p', { class: 'told', 'aria-live': 'polite' });
    this.facts = h('dl', { class: 'facts' });
    this.toggle = h('button', { type: 'button', class: 'small', 'aria-pressed': 'false', 'data-key': 'why', onclick: () => this.actions.why(!this.why) },
      icon('why'), 'Why it matched');
    const canExplain = this.info.can_explain && this.image && hit.image !== false;
    const step = (name, label, by) => iconButton(name, label, () => this.actions.step(by), { 'data-key': name, disabled: !place });
    this.dialog.replaceChildren(
      h('header', {}, h('h2', { id: 'detail-title' }, h('bdi', {}, nameOf(hit))), h('span', { class: 'quiet' }, place),
        h('div', { class: 'steps' }, step('previous', 'Previous hit', -1), step('next', 'Next hit', 1),
          iconButton('close', 'Close', () => this.actions.close(), { 'data-key': 'close' }))),
      h('div', { class: 'pair' }, this.left, this.right),
      h('div', { class: 'buttons' }, canExplain && this.toggle, canExplain && this.chooser(),
        h('button', { type: 'button', class: 'small', onclick: () => this.actions.like(hit) }, icon('like'), 'More like this'),
        h('button', { type: 'button', class: 'small', onclick: () => this.actions.add(hit, 1) }, icon('plus'), 'Plus'),
        h('button', { type: 'button', class: 'small', onclick: () => this.actions.add(hit, -1) }, icon('minus'), 'Minus')),
      this.told, this.facts);
    (this.dialog.querySelector(`[data-key="${inside ?? 'close'}"]`) ?? this.dialog.querySelector('[data-key=close]')).focus();
    this.showFacts(hit);
    this.loadFacts(hit, this.controller.signal);
    this.leftFrame = this.image && this.loadQuery();
    this.rightFrame = this.loadHit(hit);
  }

  // With several images, a map is for one of them.
  chooser() {
    if (this.images.length < 2) return null;
    return h('label', { class: 'choice' }, 'for ', h('select', { onchange: (event) => {
      this.image = this.images[event.target.value];
      this.heat = null;
      this.left.lastChild.replaceWith(h('div', { class: 'frame empty' }));
      this.leftFrame = this.loadQuery();
      this.showWhy(this.why);
    } }, this.images.map((image, i) => h('option', { value: i, selected: image === this.image },
      `image ${i + 1} (${image.weight > 0 ? 'plus' : 'minus'})`))));
  }

  async loadQuery() {
    const about = await describe(this.image).catch(() => null);
    if (!about?.url) return null;
    const made = frame(about.url, about.width, about.height, 'The query');
    this.left.lastChild.replaceWith(made.element);
    return made;
  }

  async loadHit(hit) {
    if (hit.image === false) {
      this.right.lastChild.replaceChildren(h('p', { class: 'blind' }, icon('image'), 'This item has no picture.'));
      return null;
    }
    const picture = new Image();
    const { right } = this;
    try {
      picture.src = await imageUrl(hit.id);
      await picture.decode();
    } catch (problem) {
      right.lastChild.replaceChildren(h('p', { class: 'blind' }, icon('image'), problem.detail || 'The picture cannot be shown.'));
      return null;
    }
    const made = frame(picture.src, picture.naturalWidth, picture.naturalHeight, nameOf(hit));
    right.lastChild.replaceWith(made.element);
    return made;
  }

  showFacts(item) {
    const rows = [];
    const row = (name, ...value) => rows.push(h('div', {}, h('dt', {}, name), h('dd', {}, ...value)));
    if (item.score !== undefined && item.score !== null) row('score', item.score.toFixed(4));
    if (item.error_rate !== null && item.error_rate !== undefined) row('error rate', errorText(item.error_rate).lastChild);
    if (item.label !== null && item.label !== undefined)
      row('label', h('bdi', {}, item.label), ' ', h('button', { type: 'button', class: 'link', onclick: () => this.actions.only(item.label) }, 'only these'));
    if (item.path) row('path', h('bdi', { class: 'code' }, item.path));
    row('id', String(item.id));
    for (const [name, value] of Object.entries(item.values ?? {}))
      if (value !== null) row(name, h('bdi', {}, String(value)));
    if (item.bytes) row('size', bytesText(item.bytes));
    if (item.mtime) row('changed', dateText(item.mtime));
    this.facts.replaceChildren(...rows);
  }

  async loadFacts(hit, signal) {
    const item = await getItem(hit.id, signal).catch(() => null);
    if (!item || signal.aborted) return;
    const all = { ...hit, ...item };
    this.showFacts(all);
    this.dialog.querySelector('#detail-title').replaceChildren(h('bdi', {}, nameOf(all)));
  }

  async showWhy(why) {
    this.why = why;
    this.toggle.setAttribute('aria-pressed', String(why));
    this.dialog.classList.toggle('why', why);
    if (!why || !this.info.can_explain || !this.image) {
      this.told.textContent = '';
      this.dialog.querySelectorAll('.heat').forEach((canvas) => canvas.remove());
      return;
    }
    const { id, image, controller: { signal } } = this;
    this.told.textContent = 'Looking where the score comes from …';
    try {
      this.heat ??= await explain(id, await sendable(image, signal), signal);
      const [left, right] = await Promise.all([this.leftFrame, this.rightFrame]);
      if (signal.aborted || image !== this.image || !this.why) return;
      this.dialog.querySelectorAll('.heat').forEach((canvas) => canvas.remove());
      if (left) left.element.append(heatMap(this.heat.query, left.width, left.height));
      if (right) right.element.append(heatMap(this.heat.hit, right.width, right.height));
      const legend = (name, text) => h('span', { class: 'legend' }, h('i', { class: name }), text);
      this.told.replaceChildren(heatText(this.heat.hit), ' All places together are the score, ', h('b', {}, this.heat.score.toFixed(4)), '. ',
        legend('warm', 'adds to it'), legend('cold', 'takes from it'));
    } catch (problem) {
      if (signal.aborted) return;
      this.told.textContent = [problem.detail || problem.title, problem.hint].filter(Boolean).join(' ');
      say(this.told.textContent);
    }
  }
}
