// A box over a picture that can be drawn, moved and resized by mouse, touch and keyboard. Without a crop it lies around
// the whole picture.
import { h } from './dom.js';

const CORNERS = ['nw', 'ne', 'se', 'sw'];
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

// The box [x, y, w, h] with some of its edges moved by (dx, dy), inside the picture and at least `least` pixels.
export function resized([x, y, w, tall], edges, dx, dy, width, height, least) {
  let [left, top, right, bottom] = [x, y, x + w, y + tall];
  if (edges.includes('w')) left = clamp(left + dx, 0, right - least);
  if (edges.includes('e')) right = clamp(right + dx, left + least, width);
  if (edges.includes('n')) top = clamp(top + dy, 0, bottom - least);
  if (edges.includes('s')) bottom = clamp(bottom + dy, top + least, height);
  return [left, top, right - left, bottom - top];
}

export const moved = ([x, y, w, tall], dx, dy, width, height) =>
  [clamp(x + dx, 0, width - w), clamp(y + dy, 0, height - tall), w, tall];

// change(box or null, isFinal): null is the whole picture.
export class Crop {
  constructor(change) {
    this.change = change;
    this.box = h('div', { class: 'crop', tabindex: 0, role: 'application', 'aria-describedby': 'crop-help' },
      CORNERS.map((corner) => h('span', { class: 'handle', 'data-edge': corner })));
    this.box.addEventListener('keydown', (event) => this.press(event));
    this.element = h('div', { class: 'picture' }, this.box);
    this.element.addEventListener('pointerdown', (event) => this.begin(event));
    this.numbers = ['x', 'y', 'width', 'height'].map((name, i) =>
      h('input', { type: 'number', min: i < 2 ? 0 : 1, step: 1, id: `crop-${name}`, onchange: () => this.type() }));
    this.fields = h('details', { class: 'numbers' }, h('summary', {}, 'Crop in numbers'),
      h('p', { class: 'quiet', id: 'crop-help' }, 'Pixels of the picture. In the box itself, arrow keys move it, ' +
        'with Shift they resize it, and Escape takes the whole picture.'),
      h('div', { class: 'four' }, this.numbers.map((input) => h('label', {}, input.id.slice(5), input))));
  }

  // The picture is an element that fills the place; width and height are its pixels.
  show(picture, width, height, crop) {
    this.width = width;
    this.height = height;
    this.element.replaceChildren(picture, this.box);
    this.set(crop);
  }

  set(crop) {
    const isWhole = !crop;
    this.crop = crop ?? [0, 0, this.width, this.height];
    const [x, y, w, tall] = this.crop;
    const { style } = this.box;
    style.left = `${(x / this.width) * 100}%`;
    style.top = `${(y / this.height) * 100}%`;
    style.width = `${(w / this.width) * 100}%`;
    style.height = `${(tall / this.height) * 100}%`;
    this.box.classList.toggle('whole', isWhole);
    this.box.setAttribute('aria-label', isWhole ? 'Crop: the whole picture'
      : `Crop: ${w} by ${tall} pixels at ${x}, ${y}`);
    this.numbers.forEach((input, i) => {
      input.max = [this.width - 1, this.height - 1, this.width, this.height][i];
      if (document.activeElement !== input) input.value = this.crop[i];
    });
  }

  get least() {
    return Math.max(1, Math.round(Math.min(this.width, this.height) / 20));
  }

  tell(box, isFinal) {
    const whole = box.map(Math.round);
    const [x, y, w, tall] = whole;
    const crop = x === 0 && y === 0 && w === this.width && tall === this.height ? null : whole;
    this.set(crop);
    this.change(crop, isFinal);
  }

  // A finger on the picture scrolls the page unless it is on a handle or in a box; a mouse draws a new box.
  begin(event) {
    if (event.button !== 0) return;
    const edge = event.target.dataset?.edge;
    const isInside = !this.box.classList.contains('whole') && this.box.contains(event.target);
    if (!edge && !isInside && event.pointerType === 'touch') return;
    event.preventDefault();
    this.box.focus({ preventScroll: true, focusVisible: false });
    const place = this.element.getBoundingClientRect();
    const { width, height, least } = this;
    const scale = width / place.width;
    const toPixels = (e) => [(e.clientX - place.left) * scale, (e.clientY - place.top) * scale];
    const [x0, y0] = toPixels(event);
    const from = this.crop;
    let now = null;
    const at = (e) => {
      const [x, y] = toPixels(e);
      const [dx, dy] = [x - x0, y - y0];
      if (edge) return resized(from, edge, dx, dy, width, height, least);
      if (isInside) return moved(from, dx, dy, width, height);
      if (Math.abs(dx) < least || Math.abs(dy) < least) return null;
      const left = clamp(Math.min(x0, x), 0, width), top = clamp(Math.min(y0, y), 0, height);
      return [left, top, clamp(Math.max(x0, x), 0, width) - left, clamp(Math.max(y0, y), 0, height) - top];
    };
    const move = (e) => {
      now = at(e);
      if (now) this.tell(now, false);
    };
    const end = () => {
      this.element.removeEventListener('pointermove', move);
      if (now) this.tell(now, true);
    };
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener('pointermove', move);
    this.element.addEventListener('lostpointercapture', end, { once: true });
  }

  press(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const isWhole = this.box.classList.contains('whole');
    if (event.key === 'Escape' && !isWhole) {
      this.tell([0, 0, this.width, this.height], true);
    } else if (steps[event.key]) {
      const step = Math.max(1, Math.round(Math.min(this.width, this.height) / 40));
      const [dx, dy] = steps[event.key].map((way) => way * step);
      // The whole picture cannot be moved: the first key makes the box smaller.
      this.tell(event.shiftKey || isWhole
        ? resized(this.crop, isWhole && (dx > 0 || dy > 0) ? 'nw' : 'se', dx, dy, this.width, this.height, this.least)
        : moved(this.crop, dx, dy, this.width, this.height), true);
    } else return;
    event.preventDefault();
  }

  type() {
    const [x, y, w, tall] = this.numbers.map((input) => Math.round(Number(input.value)));
    const left = clamp(x || 0, 0, this.width - 1), top = clamp(y || 0, 0, this.height - 1);
    this.tell([left, top, clamp(w || 1, 1, this.width - left), clamp(tall || 1, 1, this.height - top)], true);
    this.numbers.forEach((input, i) => { input.value = this.crop[i]; });
  }
}
