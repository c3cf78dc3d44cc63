// What is asked, as plain data, and how it is written into the page's address.
//
//   images: [{id: 17} or {upload: KEY}, with weight 1 or -1 and perhaps crop: [x, y, w, h]]
//   filters, where: see where.js     same: a false-match rate or null     hideDuplicates
//
// In the address: like=17  like=17@10,20,300,200  unlike=9  is.COLUMN=V  has.COLUMN=V  min.COLUMN=V  max.COLUMN=V
// where=EXPRESSION  same=0.01  duplicates=hide  item=17 (the hit that is open)  why=1  view=duplicates.
// An uploaded image has no address: uploads=N says only how many there were.

export const emptyQuery = () => ({ images: [], filters: {}, where: '', same: null, hideDuplicates: false });
export const emptyState = () => ({ view: 'search', query: emptyQuery(), item: null, why: false });

const isId = (text) => /^\d{1,15}$/.test(text);

function readImage(text, weight) {
  const [id, crop] = text.split('@');
  if (!isId(id)) return null;
  const image = { id: Number(id), weight };
  const box = crop?.split(',').map(Number);
  const isBox = box?.length === 4 && box.every((x) => Number.isInteger(x) && x >= 0) && box[2] > 0 && box[3] > 0;
  if (isBox) image.crop = box;
  return image;
}

// What cannot be read is passed over: links get cut. `uploads`: how many images the link could not hold.
export function stateFromSearch(search) {
  const state = emptyState();
  const { query } = state;
  let uploads = 0;
  for (const [name, value] of new URLSearchParams(search)) {
    const [kind, column] = name.includes('.') ? [name.slice(0, name.indexOf('.')), name.slice(name.indexOf('.') + 1)]
      : [name, ''];
    if (name === 'like' || name === 'unlike') {
      const image = readImage(value, name === 'like' ? 1 : -1);
      if (image) query.images.push(image);
    } else if (column && ['has', 'min', 'max'].includes(kind)) {
      query.filters[column] = { ...query.filters[column], [kind]: value };
    } else if (column && kind === 'is') {
      const filter = query.filters[column] ?? {};
      query.filters[column] = { ...filter, is: [...(filter.is ?? []), value] };
    } else if (name === 'where') query.where = value;
    else if (name === 'same' && Number(value) > 0 && Number(value) < 1) query.same = Number(value);
    else if (name === 'duplicates') query.hideDuplicates = value === 'hide';
    else if (name === 'item' && isId(value)) state.item = Number(value);
    else if (name === 'why') state.why = value === '1';
    else if (name === 'view' && ['duplicates', 'name'].includes(value)) state.view = value;
    else if (name === 'uploads' && isId(value)) uploads = Math.min(Number(value), 99);
  }
  return { state, uploads };
}

export function searchFromState({ view, query, item, why }) {
  const out = new URLSearchParams();
  if (view !== 'search') out.append('view', view);
  for (const image of query.images)
    if (image.id !== undefined)
      out.append(image.weight > 0 ? 'like' : 'unlike', image.crop ? `${image.id}@${image.crop}` : image.id);
  const uploads = query.images.filter((image) => image.upload !== undefined).length;
  if (uploads > 0) out.append('uploads', uploads);
  for (const [column, filter] of Object.entries(query.filters)) {
    for (const value of filter.is ?? []) out.append(`is.${column}`, value);
    for (const kind of ['has', 'min', 'max']) if (filter[kind]) out.append(`${kind}.${column}`, filter[kind]);
  }
  if (query.where) out.append('where', query.where);
  if (query.same !== null) out.append('same', query.same);
  if (query.hideDuplicates) out.append('duplicates', 'hide');
  if (item !== null) out.append('item', item);
  if (item !== null && why) out.append('why', 1);
  const text = out.toString().replaceAll('%2C', ',').replaceAll('%40', '@');
  return text ? `?${text}` : '';
}

export const samePlace = (a, b) => a.id === b.id && a.upload === b.upload;

// The images with one more, or with the sign of one that is there changed.
export function withImage(images, added) {
  const rest = images.filter((image) => !samePlace(image, added));
  return [...rest, added];
}
