// The groups of pictures that are the same one: copied, resized, saved again.
import { getDuplicates } from './api.js';
import { arrowKeys, card, skeletons } from './cards.js';
import { button, h, plural, say } from './dom.js';

const AT_ONCE = 20;

function group({ items, kind }, number, actions) {
  return h('section', { class: 'group', 'aria-labelledby': `group-${number}` },
    h('h2', { id: `group-${number}` }, `Group ${number} `,
      h('span', { class: 'quiet' }, `the same ${kind === 'same' ? 'file' : 'picture'}, ${items.length} times`)),
    h('ul', { class: 'grid small', onkeydown: arrowKeys },
      items.map((item, i) => card(item, actions, i === 0 ? 'first' : null))));
}

// Fills `place`; resolves when the first groups are there. fail(problem) is told what went wrong.
export async function show(place, actions, signal, fail) {
  const list = h('div', { class: 'groups' });
  const line = h('p', { class: 'count' }, 'Comparing pictures: the server reads each of them once …');
  const more = button({ hidden: true, onclick: () => load() }, 'Show more');
  const wait = skeletons(8);
  place.replaceChildren(line, list, wait, more);
  let n_shown = 0;

  async function load() {
    more.disabled = true;
    try {
      const { groups, n_groups } = await getDuplicates(n_shown, AT_ONCE, signal);
      wait.remove();
      list.append(...groups.map((found, i) => group(found, n_shown + i + 1, actions)));
      n_shown += groups.length;
      line.textContent = n_groups === 0 ? 'No picture is in the index twice.'
        : `${plural(n_groups, 'group', 'groups')} of pictures that are the same`;
      say(line.textContent);
      more.hidden = n_shown >= n_groups || groups.length === 0;
    } catch (problem) {
      if (signal.aborted) return;
      wait.remove();
      if (n_shown === 0) line.remove();
      fail(problem, load);
    } finally {
      more.disabled = false;
    }
  }
  await load();
}
