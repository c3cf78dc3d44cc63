// The images of the query: the one that is looked at, with its crop box, and all of them as tiles with their signs.
import { getItem, imageUrl } from './api.js';
import { nameOf, thumb } from './cards.js';
import { Crop } from './crop.js';
import { button, h, icon, iconButton } from './dom.js';
import { openChooser, uploads } from './intake.js';
import { samePlace } from './query.js';

// What is known of an image of the query: {name, url, width, height}; url is null where there is no picture.
export async function describe(image) {
  if (image.upload !== undefined) {
    const { name, url, width, height } = uploads.get(image.upload);
    return { name, url: width > 0 ? url : null, width, height };
  }
  const item = await getItem(image.id);
  const name = item.path ?? nameOf(item);
  if (!item.image) return { name, url: null };
  const picture = new Image();
  picture.src = await imageUrl(image.id);
  await picture.decode();
  return { name, url: picture.src, width: picture.naturalWidth, height: picture.naturalHeight };
}

// An item's picture in a frame, as soon as it is known whether it has one.
function frameOf(id) {
  const frame = thumb({ image: false });
  getItem(id).then((item) => frame.replaceWith(thumb(item)), () => {});
  return frame;
}

// change(images, isFinal) is told what the images are now.
export class Stage {
  constructor(place, info, change) {
    this.place = place;
    this.info = info;
    this.change = change;
    this.images = [];
    this.active = 0;
    this.crop = new Crop((crop, isFinal) => this.setCrop(crop, isFinal));
    this.view = h('div', { class: 'view' });
    this.caption = h('div', { class: 'caption' });
    this.tiles = h('ul', { class: 'tiles', 'aria-label': 'Images of the query' });
    this.whole = button({ class: 'small', onclick: () => this.setWhole() }, icon('whole'), 'Whole picture');
    place.replaceChildren(this.view, this.caption, this.crop.fields, this.tiles, this.buttons());
  }

  buttons() {
    const choose = (how, name, text, id = 'choose') =>
      button({ class: `small ${id}`, onclick: () => openChooser(id, how) }, icon(name), text);
    return h('div', { class: 'buttons' }, this.info.can_embed && [
      choose('new', 'image', 'New image'), choose('new', 'camera', 'Photo', 'photograph'),
      choose('plus', 'plus', 'Add image')]);
  }

  show(images) {
    const last = this.images[this.active];
    const added = images.findIndex((image) => !this.images.some((other) => samePlace(other, image)));
    const kept = last ? images.findIndex((image) => samePlace(image, last)) : -1;
    // An added picture is not looked at by itself: one comes back to the crop of the first.
    this.active = Math.max(0, kept >= 0 ? kept : added >= 0 ? added : 0);
    this.images = images;
    this.showTiles();
    this.showPicture();
  }

  async showPicture() {
    const image = this.images[this.active];
    if (!image) {
      this.shown = null;
      this.view.replaceChildren();
      return;
    }
    if (this.shown && samePlace(this.shown, image)) {
      if (this.crop.width > 0) this.crop.set(image.crop);
      this.showWhole(image);
      return;
    }
    this.shown = image;
    this.crop.width = 0;
    let about = null;
    try {
      about = await describe(image);
    } catch { /* the search says what is wrong with it */ }
    if (this.shown !== image) return;
    this.caption.replaceChildren(h('bdi', { class: 'path', title: about?.name ?? '' }, about?.name ?? ''), this.whole);
    const canCrop = Boolean(about?.url) && this.info.can_embed;
    this.crop.fields.hidden = !canCrop;
    if (canCrop) {
      const picture = h('img', { src: about.url, alt: 'The query', draggable: 'false' });
      this.crop.show(picture, about.width, about.height, image.crop);
      this.crop.element.style.setProperty('--shape', about.width / about.height);
      this.view.replaceChildren(this.crop.element);
    } else {
      this.view.replaceChildren(about?.url ? h('img', { class: 'plain', src: about.url, alt: 'The query' })
        : h('p', { class: 'blind' }, icon('image'), image.upload !== undefined
          ? 'This browser cannot show the picture. kith may still read it.' : 'This item has no picture.'));
    }
    this.showWhole(image);
  }

  showWhole(image) {
    this.whole.hidden = !image.crop;
  }

  showTiles() {
    this.tiles.hidden = this.images.length < 2;
    this.tiles.replaceChildren(...this.images.map((image, i) => this.tile(image, i)));
  }

  tile(image, i) {
    const name = image.upload !== undefined ? uploads.get(image.upload).name : `item ${image.id}`;
    const picture = image.upload !== undefined && uploads.get(image.upload).width > 0
      ? h('span', { class: 'thumb there' }, h('img', { src: uploads.get(image.upload).url, alt: '' }))
      : image.upload !== undefined ? thumb({ image: false }) : frameOf(image.id);
    const [sign, other] = image.weight > 0 ? ['plus', 'minus'] : ['minus', 'plus'];
    const look = { class: 'look', 'aria-label': `Show ${name}`, 'aria-pressed': String(i === this.active) };
    const turn = { class: 'sign', 'aria-label': `${name} is a ${sign}: make it a ${other}` };
    return h('li', { class: sign }, button({ ...look, onclick: () => this.look(i) }, picture),
      button({ ...turn, onclick: () => this.turn(i) }, icon(sign)),
      iconButton('close', `Remove ${name}`, () => this.remove(i), { class: 'tool remove' }));
  }

  look(i) {
    this.active = i;
    this.showTiles();
    this.tiles.children[i].querySelector('.look').focus();
    this.showPicture();
  }

  turn(i) {
    const images = this.images.map((image, j) => (i === j ? { ...image, weight: -image.weight } : image));
    this.change(images, true);
    this.tiles.children[i]?.querySelector('.sign').focus();
  }

  remove(i) {
    this.change(this.images.filter((_, j) => j !== i), true);
    const next = this.tiles.children[Math.min(i, this.tiles.children.length - 1)];
    (this.images.length > 1 ? next.querySelector('.remove') : this.crop.box).focus();
  }

  setCrop(crop, isFinal) {
    const images = this.images.map((image, j) => {
      if (j !== this.active) return image;
      const { crop: before, ...rest } = image;
      return crop ? { ...rest, crop } : rest;
    });
    this.images = images;
    this.showWhole(images[this.active]);
    this.change(images, isFinal);
  }

  setWhole() {
    this.crop.set(null);
    this.setCrop(null, true);
    this.crop.box.focus();
  }
}
