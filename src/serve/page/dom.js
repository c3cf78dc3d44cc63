// Small helpers for elements and numbers. Strings only ever become text or attributes, never markup: labels and
// paths come from files that anyone may have named.

// h('button', {class: 'main', onclick: f, hidden: false}, 'text', child): an element. Attributes that are false, null
// or undefined are left out, and so are such children.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== false && child !== null && child !== undefined));
  return element;
}

export const button = (attributes, ...children) => h('button', { type: 'button', ...attributes }, ...children);

export const byId = (id) => document.getElementById(id);

// Drawn on a grid of 16 with round strokes; `icon` names one.
const ICONS = {
  like: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.4 10.4 14 14',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  why: 'M8 1.8c1 2.4 3.8 3.6 3.8 7a3.8 3.8 0 0 1-7.6 0c0-1.6.8-2.6 1.6-3.4.2 1.4.8 1.8 1.2 2C7.6 5.6 7 4 8 1.8Z',
  image: 'M2.5 3h11v10h-11zM2.5 11l3-3 2.5 2.5 2.5-3.5 3 4M6 6.2h.01',
  camera: 'M2 5h3l1-1.8h4L11 5h3v8H2zM8 6.6a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4Z',
  whole: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  previous: 'M10 3 5 8l5 5',
  next: 'M6 3l5 5-5 5',
};

export function icon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, onclick, attributes = {}) {
  return button({ class: 'tool', 'aria-label': label, title: label, onclick, ...attributes }, icon(name));
}

// Said by screen readers; the same text twice is said twice.
export function say(text) {
  const status = byId('status');
  status.textContent = '';
  requestAnimationFrame(() => { status.textContent = text; });
}

export const count = (n) => n.toLocaleString('en');
export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

// 0.0041 → "0.41 %": two digits, as many decimals as that needs.
export function percent(rate) {
  if (rate === 0) return '0 %';
  const text = (rate * 100).toPrecision(2);
  return `${Number(text).toLocaleString('en', { maximumFractionDigits: 8 })} %`;
}

// A path as folder and file, so that the folder can be cut and the file stays.
export function pathParts(path) {
  const cut = path.lastIndexOf('/') + 1;
  return [path.slice(0, cut), path.slice(cut)];
}
