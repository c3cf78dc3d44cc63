// A search and what it found: the grid, the line above it, more of it.
import { search } from './api.js';
import { arrowKeys, card, nameOf, skeletons } from './cards.js';
import { button, byId, h, icon, plural, say } from './dom.js';
import { sendable } from './intake.js';
import { chipsOf, whereOf } from './where.js';

const nothing = (query, ask) => {
  const isNarrow = query.same !== null || whereOf(query.filters, query.where);
  return h('div', { class: 'nothing' },
    h('h2', {}, query.same !== null ? 'Nothing is this similar' : 'Nothing found'),
    h('p', {}, isNarrow ? 'Allow a higher false-match rate, or take filters away.' : 'The index is empty.'),
    isNarrow && button({ onclick: () => ask({ same: null, filters: {}, where: '' }) },
      'Show everything'));
};

const timeText = (ms) => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

// page: {actions (of cards.js), ask(change of the query), complain(problem, retry), clear(), shown()}; shown() is told
// when there are new hits.
export class Results {
  constructor(place, info, page) {
    Object.assign(this, { place, info, page, running: null, isStale: false });
    this.forget();
  }

  forget() {
    this.hits = [];
    this.key = null; // of the query that is shown or being asked
    this.grid = null;
    this.place.replaceChildren();
  }

  leave() {
    this.running?.abort();
    this.running = null;
    this.forget();
  }

  // How many hits to ask for behind the first `offset`; the server limits both together.
  roomAt(offset) {
    return Math.min(window.innerWidth >= 1600 ? 48 : 24, (this.info.limits?.k ?? Infinity) - offset);
  }

  fields(query, offset) {
    const where = whereOf(query.filters, query.where);
    return {
      k: this.roomAt(offset), offset, ...(where && { where }), ...(query.same !== null && { same: query.same }),
      ...(query.hideDuplicates && { hide_duplicates: true }),
    };
  }

  async ask(query, offset, signal) {
    const images = await Promise.all(query.images.map((image) => sendable(image, signal)));
    return search(this.fields(query, offset), images, signal);
  }

  // While something is dragged, one search at a time runs to its end and the newest query follows it. Otherwise a new
  // query takes the place of the search under way.
  want(query, isLive) {
    const key = JSON.stringify(query);
    this.query = query;
    if (key === this.key) return;
    if (this.running && isLive) {
      this.isStale = true;
      return;
    }
    this.running?.abort();
    this.run(query, key);
  }

  async run(query, key) {
    const controller = new AbortController();
    const { signal } = controller;
    Object.assign(this, { running: controller, isStale: false, key });
    this.place.setAttribute('aria-busy', 'true');
    if (!this.grid) this.place.replaceChildren(skeletons(12));
    try {
      const answer = await this.ask(query, 0, signal);
      if (signal.aborted) return;
      this.page.clear();
      this.show(answer, query);
    } catch (problem) {
      if (signal.aborted) return;
      this.forget();
      this.page.complain(problem, () => this.want(query, false));
    }
    this.running = null;
    this.place.removeAttribute('aria-busy');
    if (this.isStale) this.want(this.query, true);
  }

  show(answer, query) {
    const focus = this.focused();
    const { hits } = answer;
    this.hits = hits;
    this.grid = h('ul', { class: 'grid', 'aria-label': 'Results', onkeydown: arrowKeys },
      hits.map((hit) => card(hit, this.page.actions)));
    this.more = button({ class: 'more', onclick: () => this.showMore(query) }, 'Show more');
    this.offerMore(hits.length, 0, answer.n_allowed);
    this.place.replaceChildren(this.line(answer, query), hits.length > 0 ? this.grid : nothing(query, this.page.ask),
      this.more);
    if (focus) this.refocus(focus);
    const [best] = hits;
    say(best ? `${plural(hits.length, 'result', 'results')}. Best: ${nameOf(best)}, score ${best.score.toFixed(3)}`
      : 'No results');
    this.page.shown();
  }

  offerMore(n_new, offset, n_allowed) {
    const n = offset + n_new;
    this.more.hidden = n_new < this.roomAt(offset) || n >= n_allowed || this.roomAt(n) < 1;
  }

  async showMore(query) {
    const { key } = this;
    this.more.disabled = true;
    try {
      const { hits, n_allowed } = await this.ask(query, this.hits.length);
      if (key !== this.key) return;
      const first = this.hits.length;
      this.hits.push(...hits);
      this.grid.append(...hits.map((hit) => card(hit, this.page.actions)));
      this.grid.children[first]?.querySelector('.open').focus();
      this.offerMore(hits.length, first, n_allowed);
      say(plural(this.hits.length, 'result', 'results'));
    } catch (problem) {
      this.page.complain(problem, () => this.showMore(query));
    } finally {
      this.more.disabled = false;
    }
  }

  // Cards are drawn anew; whoever was on a button of one stays on it.
  focused() {
    const at = document.activeElement?.closest?.('.card');
    if (!at || !this.place.contains(at)) return null;
    return { id: at.dataset.id, button: [...at.querySelectorAll('button')].indexOf(document.activeElement) };
  }

  refocus({ id, button }) {
    const again = this.grid.querySelector(`[data-id="${id}"]`)?.querySelectorAll('button')[button];
    (again ?? byId('results')).focus({ preventScroll: true });
  }

  line(answer, query) {
    const { ask } = this.page;
    const where = whereOf(query.filters, query.where);
    const chips = chipsOf(query.filters).map(({ column, text, rest }) => h('li', {},
      button({ class: 'chip', 'aria-label': `Remove the filter ${column} ${text}`, onclick: () => {
        ask({ filters: rest });
        byId('results').focus({ preventScroll: true });
      } }, h('bdi', {}, h('span', { class: 'quiet' }, column), ' ', text), icon('close'))));
    return h('div', { class: 'count' },
      h('p', {}, h('b', {}, plural(answer.hits.length, 'result', 'results')),
        ` of ${plural(answer.n_allowed, 'item', 'items')}${where ? ' that the filters let through' : ''}`,
        h('span', { class: 'quiet' }, ` · ${timeText(answer.took_ms)}`)),
      chips.length > 0 && h('ul', { class: 'chips', 'aria-label': 'Filters in use' }, chips),
      answer.hits.length > 0 && h('p', { class: 'quiet key' },
        'score'));
  }
}
