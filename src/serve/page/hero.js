// What the page shows before anything was asked: what to do, and some items to begin with.
import { nameOf, thumb } from './cards.js';
import { button, h, icon } from './dom.js';
import { missingModel, openChooser } from './intake.js';

function target(info) {
  if (!info.can_embed)
    return h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find similar items'),
      h('p', {}, info.missing_model ? `${missingModel(info)} Until then, search with one of its items.` :
        'This index was made from vectors, without a model: search with one of its items.'));
  const choose = (id, name, text, kind) =>
    button({ class: `${kind} ${id}`, onclick: () => openChooser(id, 'new') }, icon(name), text);
  return h('div', { class: 'target' }, icon('image'), h('h2', {}, 'Find images like yours'),
    h('p', {}, 'Drop an image here, paste one with ', h('kbd', {}, 'Ctrl'), ' ', h('kbd', {}, 'V'), ', or'),
    h('div', { class: 'buttons' }, choose('choose', 'image', 'Choose an image', 'main'),
      choose('photograph', 'camera', 'Take a photo', '')));
}

export function fillHero(place, info, like) {
  const items = info.samples ?? [];
  const samples = h('div', { class: 'samples', hidden: true });
  place.replaceChildren(target(info), samples);
  if (items.length === 0) return;
  samples.replaceChildren(h('h2', {}, 'Or start from one of these'), h('ul', {}, items.map((item) =>
    h('li', {}, button({ 'aria-label': `Search with ${nameOf(item)}`, title: nameOf(item),
      onclick: () => like(item) }, thumb(item))))));
  samples.hidden = false;
}
