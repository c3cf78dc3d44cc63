// What the page shows before anything was asked: what to do, and some items to begin with.
import { getItem } from './api.js';
import { nameOf, thumb } from './cards.js';
import { button, h, icon } from './dom.js';
import { openChooser } from './intake.js';

const N_SAMPLES = 8;

function target(canEmbed) {
  if (!canEmbed)
    return h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find similar items'),
      h('p', {}, 'This index was made from vectors, without a model: search with one of its items.'));
  const choose = (id, name, text, kind) =>
    button({ class: `${kind} ${id}`, onclick: () => openChooser(id, 'new') }, icon(name), text);
  return h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find images like yours'),
    h('p', {}, 'Drop an image here, paste one with ', h('kbd', {}, 'Ctrl'), ' ', h('kbd', {}, 'V'), ', or'),
    h('div', { class: 'buttons' }, choose('choose', 'image', 'Choose an image', 'main'),
      choose('photograph', 'camera', 'Take a photo', '')));
}

// Ids spread over the index. Some may be gone: items that were removed leave their ids behind.
function sampleIds(n_items) {
  const step = n_items / N_SAMPLES, from = Math.random() * step;
  const ids = Array.from({ length: N_SAMPLES }, (_, i) => Math.floor(from + i * step));
  return [...new Set(ids)].filter((id) => id < n_items);
}

export async function fillHero(place, info, like) {
  const samples = h('div', { class: 'samples', hidden: true });
  place.replaceChildren(target(info.can_embed), samples);
  const asked = await Promise.allSettled(sampleIds(info.items).map((id) => getItem(id)));
  const items = asked.flatMap(({ value }) => (value?.image ? [value] : []));
  if (items.length === 0) return;
  samples.replaceChildren(h('h2', {}, 'Or start from one of these'), h('ul', {}, items.map((item) =>
    h('li', {}, button({ 'aria-label': `Search with ${nameOf(item)}`, title: nameOf(item),
      onclick: () => like(item) }, thumb(item))))));
  samples.hidden = false;
}
