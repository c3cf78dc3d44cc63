// Naming photos: one question after the other, by keyboard. What is decided is on its way while the next question is shown.
import { decide, getNames, getTable, thumbUrl } from './api.js';
import { nameOf, thumb } from './cards.js';
import { button, byId, count, h, percent, plural, say } from './dom.js';

const LARGE = 1024, AT_ONCE = 24, FEW = 4, MOST_OPTIONS = 6, SLOW_MS = 3000, SOON_MS = 400;

const KEYS = [
  ['Enter', 'yes, that is the name'], ['N or Backspace', 'no, it is not'], ['any other letter, or a capital', 'type a name'],
  ['Tab', 'in a name: complete it'], ['S', 'skip for now'], ['U', 'undo your last decision'],
  ['arrow keys', 'go from photo to photo'], ['Space', 'take the photo out of the group, or back in'],
  ['X', 'the photo is not the same as the others'], ['M', 'rename a name, or merge two'], ['?', 'these keys'],
];

// 0.026 → "1 of 38".
const oneOf = (rate) => (rate > 0 ? `1 of ${count(Math.max(1, Math.round(1 / rate)))}` : 'none');

export function rateText({ checked, wrong, rate, low, high }) {
  if (!checked) return 'No proposal was checked yet';
  const range = `${oneOf(low)} to ${oneOf(high)}`;
  if (!wrong) return `Of ${plural(checked, 'checked proposal', 'checked proposals')} none was wrong (at most ${oneOf(high)})`;
  return `${oneOf(rate)} proposals is wrong (${range}): ${count(wrong)} of ${count(checked)} that were checked`;
}

// Names that begin so come first, then those with a word that does.
export function matching(names, text) {
  const wanted = text.trim().toLocaleLowerCase();
  if (!wanted) return [];
  const place = (name) => ` ${name.toLocaleLowerCase()}`.indexOf(` ${wanted}`);
  return names.filter((name) => place(name) >= 0)
    .sort((a, b) => Math.sign(place(a)) - Math.sign(place(b)) || a.localeCompare(b)).slice(0, MOST_OPTIONS);
}

function loadStyle() {
  const href = new URL('name.css', import.meta.url).href;
  if ([...document.styleSheets].some((sheet) => sheet.href === href)) return;
  document.head.append(h('link', { rel: 'stylesheet', href }));
}

// Its answer: the form, or null when it was given up.
function askIn(title, ...content) {
  const dialog = h('dialog', { id: 'naming-dialog', 'aria-labelledby': 'naming-dialog-title' },
    h('form', { method: 'dialog' }, h('h2', { id: 'naming-dialog-title' }, title), ...content));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'ok' ? new FormData(dialog.querySelector('form')) : null);
    }, { once: true });
  });
}

class Naming {
  constructor(place, signal, fail) {
    Object.assign(this, { signal, fail, names: [], questions: [], skipped: new Set(), given: new Set(), generation: 0 });
    this.sent = Promise.resolve(); // decisions go one after the other
    this.n_open = 0;
    this.far = h('p', { id: 'naming-far' });
    this.bar = h('progress', { max: 1, value: 0, 'aria-label': 'Photos with a name' });
    this.rate = h('p', { class: 'quiet', id: 'naming-rate' });
    this.was = h('p', { class: 'quiet', id: 'naming-was' });
    this.stage = h('div', { class: 'stage' });
    this.root = h('div', { class: 'naming' },
      h('div', { class: 'far' }, this.far, this.bar, this.rate, this.was), this.stage, this.below());
    place.replaceChildren(this.root);
    document.addEventListener('keydown', (event) => this.key(event), { signal });
    window.addEventListener('beforeunload', (event) => this.n_open > 0 && event.preventDefault(), { signal });
  }

  below() {
    this.done = h('ul', { class: 'done' });
    const details = h('details', { ontoggle: () => details.open && this.listDecisions() },
      h('summary', {}, 'What was decided'), this.done);
    return h('div', {}, h('div', { class: 'more' },
      button({ class: 'small', onclick: () => this.merge() }, 'Rename or merge ', h('kbd', {}, 'M')),
      button({ class: 'small', onclick: () => this.help() }, 'Keys ', h('kbd', {}, '?')),
      button({ class: 'small', onclick: () => this.download() }, 'Names as a table')), details);
  }

  // ---- questions ----

  get now() { return this.questions[0]; }
  chosen() { return this.now.items.filter(({ id }) => !this.now.out?.has(id)); }

  // first: ids of which the question is to be the next one.
  async load(first = []) {
    try {
      await this.sent;
      const [queue, { names }] = await Promise.all([
        getNames(`queue?limit=${AT_ONCE + this.skipped.size}`, this.signal), getNames('names', this.signal)]);
      if (this.n_open > 0) return; // the last of them loads
      if (queue.generation < this.generation && first.length > 0) {
        setTimeout(() => this.load(first), SOON_MS); // a large index is opened a moment later
        return;
      }
      if (queue.generation >= this.generation) this.given.clear();
      this.names = names.map(({ name }) => name);
      this.n_unnamed = queue.unnamed;
      const isFirst = ({ items }) => items.some(({ id }) => first.includes(id));
      // Who is at a question stays there.
      const kept = first.length === 0 && this.now ? [this.now] : [];
      const isThere = ({ items }) => items.some(({ id }) => kept[0]?.items.some((item) => item.id === id));
      const left = queue.questions.filter((one) =>
        isFirst(one) || !(isThere(one) || one.items.some(({ id }) => this.skipped.has(id) || this.given.has(id))));
      this.questions = [...kept, ...left.filter(isFirst), ...left.filter((one) => !isFirst(one))];
      if (queue.generation >= this.generation) this.showFar(queue.naming);
      if (this.questions.length === 0 && queue.generation < this.generation) setTimeout(() => this.load(), SOON_MS);
      else if (kept.length === 0) this.show();
    } catch (problem) {
      if (!this.signal.aborted) this.fail(problem, () => this.load(first));
    }
  }

  next() {
    this.questions.shift();
    if (this.now) this.show();
    else this.stage.replaceChildren(h('p', { class: 'quiet' }, 'Looking for more …'));
    if (this.questions.length < FEW && this.n_open === 0) this.load();
  }

  // The photos that are left of a group are a question of their own.
  leave(rest) {
    const before = this.questions.shift();
    if (rest.length > 0) this.questions.unshift({ ...before, items: rest, out: null });
    this.questions.unshift(null);
    this.next();
  }

  // ---- decisions ----

  send(path, decision) {
    this.n_open++;
    const wait = setTimeout(() => {
      this.was.textContent = 'The index is being changed by another program: what you decide waits.';
    }, SLOW_MS);
    this.sent = this.sent.then(() => decide(path, decision)).then((done) => {
      byId('problem').replaceChildren();
      this.n_open--;
      this.generation = done.generation;
      this.showFar(done.after, done.before);
      if (this.n_open === 0 && this.questions.length < FEW) this.load();
      return done;
    }, (problem) => {
      this.n_open--;
      for (const id of decision.ids ?? []) this.given.delete(id);
      if (this.signal.aborted) return null;
      this.fail(problem);
      setTimeout(() => this.load(decision.ids), 0);
      return null;
    }).finally(() => clearTimeout(wait));
    return this.sent;
  }

  name(name) {
    if (!this.now) return;
    const chosen = this.chosen(), { proposal } = this.now;
    if (!name || chosen.length === 0) return;
    const isProposed = name === proposal;
    this.send('decide', { act: isProposed ? 'confirm' : 'give', ids: chosen.map(({ id }) => id),
      was: chosen.map(({ label }) => label ?? null), name, ...(proposal && !isProposed && { proposed: proposal }) });
    if (!this.names.includes(name)) this.names.push(name);
    for (const { id } of chosen) this.given.add(id);
    say(`${plural(chosen.length, 'photo is', 'photos are')} ${name}`);
    this.leave(this.now.items.filter((item) => !chosen.includes(item)));
  }

  confirm() { if (this.now?.proposal) this.name(this.now.proposal); }

  async reject() {
    if (!this.now?.proposal) return;
    const ids = this.chosen().map(({ id }) => id), name = this.now.proposal;
    if (ids.length === 0) return;
    say(`Not ${name}`);
    this.now.proposal = null;
    this.show();
    await this.send('decide', { act: 'reject', ids, name });
    this.load(ids);
  }

  async apart() {
    const { items } = this.now ?? {};
    const at = items?.findIndex(({ id }) => id === this.focused());
    if (!items || items.length < 2 || at < 0) return;
    const [one] = items.splice(at, 1);
    await this.send('decide', { act: 'apart', ids: [one.id, items[0].id] });
    say(`${nameOf(one)} is not the same`);
    this.load([items[0].id]);
  }

  skip() {
    if (!this.now) return;
    for (const { id } of this.now.items) this.skipped.add(id);
    say('Skipped');
    this.next();
  }

  async undo(number = 0) {
    const done = await this.send('undo', { number });
    if (!done) return;
    const { decisions } = await getNames('history?limit=20').catch(() => ({ decisions: [] }));
    const ids = decisions.find((one) => one.number === done.number)?.ids ?? [];
    for (const id of ids) this.given.delete(id);
    for (const id of ids) this.skipped.delete(id);
    say('Undone');
    this.load(ids);
  }

  async merge() {
    const field = (name, text, value) => [h('label', { for: `naming-${name}` }, text),
      h('input', { type: 'text', id: `naming-${name}`, name, value, list: 'naming-list', required: true, autocomplete: 'off' })];
    const given = await askIn('Rename a name, or merge two', ...field('from', 'All photos of', this.now?.proposal ?? ''),
      ...field('to', 'get the name', ''), h('datalist', { id: 'naming-list' }, this.names.map((value) => h('option', { value }))),
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main', value: 'ok' }, 'Rename'),
        h('button', { type: 'submit', value: 'cancel', formnovalidate: true }, 'Cancel')));
    if (!given) return;
    const from = given.get('from').trim(), name = given.get('to').trim();
    await this.send('decide', { act: this.names.includes(name) ? 'merge' : 'rename', from, name });
    this.load(this.now?.items.map(({ id }) => id));
  }

  help() {
    askIn('Keys', h('dl', {}, KEYS.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])),
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main', value: 'close' }, 'Close')));
  }

  async download() {
    try {
      const href = URL.createObjectURL(await getTable());
      h('a', { href, download: 'names.csv' }).click();
      setTimeout(() => URL.revokeObjectURL(href), 1e4);
    } catch (problem) {
      this.fail(problem);
    }
  }

  async listDecisions() {
    try {
      const { decisions } = await getNames('history?limit=20', this.signal);
      this.done.replaceChildren(...decisions.map((one) => h('li', {},
        h('span', {}, `${one.number}. ${one.who}: ${one.act} ${one.name ?? ''} `,
          h('span', { class: 'quiet' }, one.undone_by ? 'undone' : plural(one.items, 'photo', 'photos'))),
        !one.undone_by && button({ class: 'link', 'aria-label': `Undo decision ${one.number}`,
          onclick: () => this.undo(one.number).then(() => this.listDecisions()) }, 'Undo'))));
      if (decisions.length === 0) this.done.replaceChildren(h('li', { class: 'quiet' }, 'Nothing yet'));
    } catch (problem) {
      if (!this.signal.aborted) this.fail(problem);
    }
  }

  // ---- keys ----

  focused() {
    return Number(document.activeElement?.closest('.photos button')?.dataset.id ?? NaN);
  }

  move(by) {
    const all = [...this.stage.querySelectorAll('.photos button')];
    const at = all.indexOf(document.activeElement);
    all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))]?.focus();
  }

  key(event) {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (target.matches('input, select, textarea')) return;
    const isOwn = target.matches('button, a, summary') && !target.closest('.photos');
    if (isOwn && (key === 'Enter' || key === ' ')) return;
    const acts = {
      Enter: () => this.confirm(), Backspace: () => this.reject(), n: () => this.reject(), s: () => this.skip(),
      u: () => this.undo(), m: () => this.merge(), x: () => this.apart(), '?': () => this.help(),
      ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1),
    };
    const act = acts[key];
    if (act) {
      event.preventDefault();
      act();
    } else if (key.length === 1 && key !== ' ' && this.input?.isConnected) {
      this.input.focus(); // the letter goes into it
    }
  }

  // ---- what is shown ----

  showFar(naming, before = null) {
    this.naming = naming;
    this.far.textContent = `${count(naming.named)} of ${count(naming.items)} named`;
    this.bar.max = Math.max(1, naming.items);
    this.bar.value = naming.named;
    this.rate.textContent = rateText(naming);
    if (before) this.was.textContent = `Before that decision: ${rateText(before)}`;
  }

  show() {
    if (!this.now) {
      this.showEnd();
      return;
    }
    const { items, proposal } = this.now;
    const isGroup = items.length > 1;
    const ask = proposal ? (isGroup ? `Are these ${proposal}?` : `Is this ${proposal}?`)
      : isGroup ? `Who or what is on these ${items.length} photos?` : 'Who or what is this?';
    const title = h('h2', { class: 'ask', tabindex: '-1' }, h('bdi', {}, ask));
    this.stage.replaceChildren(title, h('div', { class: 'both' },
      h('ul', { class: isGroup ? 'photos' : 'photos one', 'aria-label': 'Photos' }, items.map((item) => this.photo(item, isGroup))),
      h('div', { class: 'side' }, proposal && this.why(this.now), this.form(), this.acts(proposal))));
    title.focus({ preventScroll: true });
    say(ask);
    for (const item of this.questions[1]?.items.slice(0, 6) ?? [])
      thumbUrl(item.id, this.questions[1].items.length > 1 ? 320 : LARGE).catch(() => {});
  }

  showEnd() {
    const n = this.skipped.size;
    const again = () => { this.skipped.clear(); this.load(); };
    this.stage.replaceChildren(h('div', { class: 'nothing' },
      h('h2', { tabindex: '-1' }, n > 0 ? `${plural(n, 'photo was', 'photos were')} skipped` : 'Every photo has a name'),
      n > 0 && button({ class: 'main', onclick: again }, 'Show them again')));
    say(this.stage.textContent);
  }

  photo(item, isGroup) {
    const isIn = !this.now.out?.has(item.id);
    const toggle = () => {
      if (!isGroup) return;
      this.now.out ??= new Set();
      if (!this.now.out.delete(item.id)) this.now.out.add(item.id);
      const isNow = !this.now.out.has(item.id);
      one.setAttribute('aria-pressed', isNow);
      say(`${nameOf(item)} ${isNow ? 'in' : 'out'}`);
    };
    const frame = isGroup ? thumb(item) : this.large(item);
    const one = button({ 'data-id': item.id, 'aria-pressed': isGroup ? String(isIn) : null,
      'aria-label': item.path ?? `item ${item.id}`, title: item.path, onclick: toggle,
      onkeydown: (event) => event.key === 'Enter' && event.preventDefault() }, frame);
    return h('li', {}, one);
  }

  large(item) {
    const frame = h('span', { class: 'thumb' });
    const img = h('img', { alt: '', draggable: 'false', onload: () => frame.classList.add('there') });
    thumbUrl(item.id, LARGE, this.signal).then((url) => { img.src = url; }, () => frame.classList.add('none'));
    frame.append(img);
    return frame;
  }

  why({ proposal, evidence, false_match_rate: rate, error_rate: error, error_rate_interval: range }) {
    return h('div', { class: 'side' }, h('ul', { class: 'evidence', 'aria-label': `Photos of ${proposal}` },
      evidence.map((item) => h('li', { title: item.path }, thumb(item)))),
    h('p', { class: 'quiet' }, `The nearest photos named ${proposal}. `,
      typeof error === 'number' ? `About ${oneOf(error)} proposals like this is wrong (${oneOf(range[0])} to ${oneOf(range[1])}). `
        : typeof rate === 'number' && `${percent(rate)} of pairs of different things look at least this similar. `,
      `${rateText(this.naming)}.`));
  }

  form() {
    const options = h('ul', { class: 'options', id: 'naming-options', role: 'listbox', 'aria-label': 'Names', hidden: true });
    const input = h('input', { type: 'text', id: 'naming-input', role: 'combobox', autocomplete: 'off', spellcheck: 'false',
      maxlength: 200, 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': 'naming-options' });
    let found = [], at = -1;
    const choose = (to) => {
      at = to;
      [...options.children].forEach((one, i) => one.setAttribute('aria-selected', String(i === at)));
      if (at < 0) input.removeAttribute('aria-activedescendant');
      else input.setAttribute('aria-activedescendant', `naming-option-${at}`);
    };
    const list = () => {
      found = matching(this.names, input.value);
      options.replaceChildren(...found.map((name, i) => h('li', { role: 'option', id: `naming-option-${i}`, 'aria-selected': 'false',
        onmousedown: (event) => { event.preventDefault(); this.name(name); } }, name)));
      options.hidden = found.length === 0;
      input.setAttribute('aria-expanded', String(found.length > 0));
      choose(-1);
    };
    input.addEventListener('input', list);
    input.addEventListener('blur', () => { options.hidden = true; });
    input.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length > 0) choose(Math.max(-1, Math.min(found.length - 1, at + step)));
      else if (event.key === 'Tab' && !event.shiftKey && found.length > 0 && input.value !== found[0]) {
        input.value = found[Math.max(0, at)];
        list();
      } else if (event.key === 'Escape' || (event.key === 'Backspace' && !input.value)) {
        input.value = '';
        list();
        this.stage.querySelector('.ask').focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.input = input;
    const submit = (event) => {
      event.preventDefault();
      this.name((at >= 0 ? found[at] : input.value).trim());
    };
    return h('form', { onsubmit: submit }, h('label', { for: 'naming-input' }, 'Another name'), input, options);
  }

  acts(proposal) {
    const act = (text, key, run, kind = '') => button({ class: kind, onclick: () => run.call(this) }, text, h('kbd', { 'aria-hidden': 'true' }, key));
    return h('div', { class: 'acts' }, proposal && act('Yes', 'Enter', this.confirm, 'main'),
      proposal && act('No', 'N', this.reject), act('Skip', 'S', this.skip), act('Undo', 'U', () => this.undo()),
      this.now.items.length > 1 && act('Not the same', 'X', this.apart));
  }
}

// Fills `place`; fail(problem, retry) is told what went wrong.
export async function show(place, actions, signal, fail) {
  loadStyle();
  byId('title').focus?.();
  await new Naming(place, signal, fail).load();
}
