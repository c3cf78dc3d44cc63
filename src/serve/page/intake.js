// Images that are dropped, pasted, chosen or photographed. They stay in this tab's memory under a key.
import { getImage, Problem } from './api.js';
import { byId, count, h } from './dom.js';

// KEY → {blob, name, url, width, height}; width is 0 where this browser cannot show the picture (HEIC, for example):
// the server may still be able to read it.
export const uploads = new Map();
let n_uploads = 0;

async function shrink(bitmap, limits) {
  let scale = Math.min(1, Math.sqrt(limits.pixels / (bitmap.width * bitmap.height)));
  for (; ; scale *= 0.8) {
    const canvas = document.createElement('canvas');
    canvas.width = Math.max(1, Math.floor(bitmap.width * scale));
    canvas.height = Math.max(1, Math.floor(bitmap.height * scale));
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.92));
    if (blob && blob.size <= limits.body_bytes) return { blob, width: canvas.width, height: canvas.height };
    if (canvas.width < 64 || canvas.height < 64) return null;
  }
}

export const missingModel = (info) => `The index's model ${info.missing_model} cannot be opened. ` +
  'Start the server with --model and the folder of the run where it lies now.';

// A key for the file. A picture over the server's limits is made smaller here, where the browser can read it.
export async function takeFile(file, info) {
  if (!info.can_embed)
    throw new Problem({ title: 'This index cannot be searched with images',
      detail: info.missing_model ? missingModel(info) : 'It was made from vectors, without a model.',
      hint: info.missing_model ? 'Until then, search with items of the index.' :
        'Search with items of the index, or make it again with --model.' });
  const limits = {
    pixels: info.limits?.pixels ?? Infinity,
    body_bytes: (info.limits?.body_bytes ?? Infinity) - 65536, // what else is in the request
  };
  if (file.type && !file.type.startsWith('image/'))
    throw new Problem({ title: 'Not an image', detail: `${file.name} is ${file.type}.`,
      hint: 'Use a picture file: JPEG, PNG, WebP, HEIC or AVIF.' });
  const bitmap = await createImageBitmap(file).catch(() => null);
  let taken = { blob: file, width: bitmap?.width ?? 0, height: bitmap?.height ?? 0 };
  const isTooLarge = file.size > limits.body_bytes || taken.width * taken.height > limits.pixels;
  if (isTooLarge) taken = bitmap && (await shrink(bitmap, limits));
  bitmap?.close();
  if (!taken)
    throw new Problem({ title: 'The image is too large', detail: `${file.name} has ${count(file.size)} bytes.`,
      hint: 'Make it smaller and try again.' });
  const key = ++n_uploads;
  uploads.set(key, { ...taken, name: file.name || 'pasted image', url: URL.createObjectURL(taken.blob) });
  return key;
}

// An image of the query as it is sent. The crop of an item is cut from its picture, so that is sent along.
export async function sendable(image, signal) {
  const { id, weight, crop } = image;
  if (image.upload !== undefined) {
    const { blob, name } = uploads.get(image.upload);
    return { blob, name, weight, crop };
  }
  return crop ? { blob: await getImage(id, signal), name: `item-${id}.jpg`, weight, crop } : { id, weight };
}

const NOTHING_ELSE = 'this page loads nothing from elsewhere.';
const imageFiles = (transfer) => [...(transfer?.files ?? [])];
const isTyping = (element) => element?.closest?.('input:not([type=checkbox], [type=range], [type=file]), textarea');

// take(files, 'new' | 'plus' | 'minus'). hasQuery() says whether there is something to add to.
export function listen(take, hasQuery, complain) {
  document.addEventListener('paste', (event) => {
    const files = imageFiles(event.clipboardData);
    if (files.length > 0) {
      event.preventDefault();
      take(files, 'new');
    } else if (!isTyping(event.target)) {
      complain({ title: 'No image in the clipboard', hint: `Copy a picture, not its address: ${NOTHING_ELSE}` });
    }
  });
  for (const id of ['choose', 'photograph'])
    byId(id).addEventListener('change', (event) => {
      const how = event.target.dataset.how || 'new';
      if (event.target.files.length > 0) take([...event.target.files], how);
      event.target.value = '';
    });
  listenForDrops(take, hasQuery, complain);
}

export function openChooser(id, how) {
  byId(id).dataset.how = how;
  byId(id).click();
}

function listenForDrops(take, hasQuery, complain) {
  const sheet = byId('drop');
  const zone = (how, title, about) =>
    h('div', { class: 'zone', 'data-how': how }, h('strong', {}, title), h('span', {}, about));
  const hide = () => { sheet.hidden = true; };
  const show = () => {
    if (!sheet.hidden) return;
    sheet.replaceChildren(zone('new', 'Search', 'with this image'),
      ...(hasQuery() ? [zone('plus', 'Plus', 'like this one too'), zone('minus', 'Minus', 'unlike this one')] : []));
    sheet.hidden = false;
  };
  document.addEventListener('dragenter', (event) => { event.preventDefault(); show(); });
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    for (const other of sheet.children) other.classList.toggle('over', other === event.target.closest?.('.zone'));
  });
  // Leaving the window has no element that is entered instead.
  document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) hide(); });
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    hide();
    const files = imageFiles(event.dataTransfer);
    if (files.length > 0) take(files, event.target.closest?.('.zone')?.dataset.how ?? 'new');
    else complain({ title: 'No image file in what was dropped',
      hint: `Save the picture first, or copy and paste it: ${NOTHING_ELSE}` });
  });
}
