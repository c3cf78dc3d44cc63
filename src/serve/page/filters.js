// Filters of the columns: checkboxes for a few values, a text for many, from and to for numbers.
import { h } from './dom.js';
import { isNumber, prune, whereOf } from './where.js';

const SEARCHED_FROM = 9; // values in a list that gets a box to find one
const TEXT = { type: 'text', spellcheck: 'false', autocomplete: 'off' };

function checkboxes(column, filter, set) {
  const chosen = new Set(filter.is ?? []);
  const all = [...new Set([...column.values, ...chosen])];
  const rows = all.map((value) => h('label', { class: 'check' },
    h('input', { type: 'checkbox', value, checked: chosen.has(value), onchange: (event) => {
      if (event.target.checked) chosen.add(value);
      else chosen.delete(value);
      set({ ...filter, is: all.filter((other) => chosen.has(other)) });
    } }), h('bdi', {}, value === '' ? '(empty)' : value)));
  const list = h('div', { class: 'values' }, rows);
  if (all.length < SEARCHED_FROM) return [list];
  const narrow = (event) => {
    const wanted = event.target.value.toLowerCase();
    rows.forEach((row, i) => { row.hidden = !all[i].toLowerCase().includes(wanted); });
  };
  const find = h('input', { type: 'search', placeholder: `Find among ${all.length}`,
    'aria-label': `Find a value of ${column.name}`, oninput: narrow });
  return [find, list];
}

function textField(column, filter, set, id) {
  return [h('label', { class: 'field', for: id }, 'contains'),
    h('input', { ...TEXT, id, value: filter.has ?? '', 'aria-label': `${column.name} contains`,
      title: 'Upper and lower case are different', onchange: (event) => set({ ...filter, has: event.target.value }) })];
}

function numberField(column, filter, set, kind) {
  const limit = column[kind];
  const input = h('input', { ...TEXT, inputmode: 'decimal', value: filter[kind] ?? '', placeholder: limit ?? '',
    'aria-label': `${column.name} ${kind === 'min' ? 'from' : 'up to'}`,
    onchange: () => {
      const isRight = input.value.trim() === '' || isNumber(input.value);
      input.setAttribute('aria-invalid', String(!isRight));
      if (isRight) set({ ...filter, [kind]: input.value.trim() });
    } });
  return h('label', {}, kind === 'min' ? 'from' : 'up to', input);
}

function controls(column, filter, set, i) {
  if (column.type !== 'text')
    return [h('div', { class: 'range' }, ['min', 'max'].map((kind) => numberField(column, filter, set, kind)))];
  if (column.values) return checkboxes(column, filter, set);
  return textField(column, filter, set, `has-${i}`);
}

// change(filters, where) is called when one of them changes.
export class Filters {
  constructor(place, info, change) {
    this.place = place;
    this.change = change;
    const names = info.columns.map((column) => column.name);
    this.columns = [...info.columns, ...(names.includes('path') ? [] : [{ name: 'path', type: 'text', values: null }])];
    this.opened = new Set(this.columns.slice(0, 1).map((column) => column.name));
    this.shown = null;
  }

  show(filters, where) {
    const shown = JSON.stringify([filters, where]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focus = this.place.contains(document.activeElement) ? this.pathOf(document.activeElement) : null;
    const scrolls = [...this.place.querySelectorAll('.values')].map((list) => list.scrollTop);
    this.place.replaceChildren(...this.columns.map((column, i) => this.group(column, i, filters, where)),
      this.expression(filters, where));
    this.place.querySelectorAll('.values').forEach((list, i) => { list.scrollTop = scrolls[i] ?? 0; });
    if (focus) this.elementAt(focus)?.focus();
  }

  // Drawn anew when they change; whoever was at the third input stays there.
  pathOf(element) {
    return [...this.place.querySelectorAll('input, summary, button')].indexOf(element);
  }

  elementAt(i) {
    return this.place.querySelectorAll('input, summary, button')[i];
  }

  group(column, i, filters, where) {
    const filter = filters[column.name] ?? {};
    const isActive = Boolean(prune({ x: filter }).x);
    const set = (changed) => this.change(prune({ ...filters, [column.name]: changed }), where);
    return h('details', { class: 'filter', open: isActive || this.opened.has(column.name), ontoggle: (event) => {
      if (event.target.open) this.opened.add(column.name);
      else this.opened.delete(column.name);
    } }, h('summary', {}, h('bdi', {}, column.name), isActive && h('span', { class: 'dot', title: 'in use' })),
    h('div', { class: 'inside', role: 'group', 'aria-label': column.name }, controls(column, filter, set, i)));
  }

  expression(filters, where) {
    const all = whereOf(filters, where);
    return h('details', { class: 'filter', open: Boolean(where) || this.opened.has('\n'), ontoggle: (event) => {
      if (event.target.open) this.opened.add('\n');
      else this.opened.delete('\n');
    } }, h('summary', {}, 'Expression', where && h('span', { class: 'dot', title: 'in use' })),
    h('div', { class: 'inside' },
      h('input', { ...TEXT, value: where, class: 'code', 'aria-label': 'Expression',
        placeholder: "label = 'tern' or id < 100",
        onchange: (event) => this.change(filters, event.target.value.trim()) }),
      all && h('p', { class: 'quiet' }, 'Together, as for ', h('code', {}, 'kith search --where'), ':'),
      all && h('pre', { class: 'where', tabindex: 0, 'aria-label': 'The whole expression' }, all)));
  }
}
