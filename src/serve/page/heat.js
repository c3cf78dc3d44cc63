// Why it matched: a map whose sum is the score, as colours and as a sentence.
import { h, percent } from './dom.js';

const WARM = [[255, 214, 90], [240, 90, 20], [200, 10, 30]];
const COLD = [40, 120, 230];

function colourOf(part) {
  if (part < 0) return [...COLD, -part * 180];
  const at = Math.min(part, 0.9999) * (WARM.length - 1);
  const [low, high] = [WARM[Math.floor(at)], WARM[Math.floor(at) + 1]];
  const mix = low.map((x, i) => x + (high[i] - x) * (at % 1));
  return [...mix, part ** 1.2 * 185];
}

// A canvas of one pixel per place; the style sheet makes it as large as the picture, smoothed.
// The map covers `view` of the picture, which has width x height pixels; it is shown at any size.
export function heatMap({ rows, columns, values, view, width, height }) {
  const canvas = h('canvas', { class: 'heat', width: columns, height: rows, 'aria-hidden': 'true' });
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const most = Math.max(...values.map(Math.abs)) || 1;
  values.forEach((value, i) => image.data.set(colourOf(value / most), 4 * i));
  context.putImageData(image, 0, 0);
  const shares = [view[0] / width, view[1] / height, view[2] / width, view[3] / height];
  ['left', 'top', 'width', 'height'].forEach((side, i) => { canvas.style[side] = `${shares[i] * 100}%`; });
  return canvas;
}

// "Half of the score comes from 5 of 49 places, the strongest in the upper left."
export function heatText({ rows, columns, values }, whole = 'score') {
  const order = values.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]);
  const sum = values.reduce((a, b) => a + b, 0);
  const [best, at] = order[0];
  if (!(best > 0) || !(sum > 0)) return 'No place speaks for a match.';
  let n = 0;
  for (let part = 0; part < sum / 2 && n < order.length; n++) part += order[n][0];
  const row = Math.floor(at / columns), column = at % columns;
  const down = ['upper', '', 'lower'][Math.min(2, Math.floor((row / rows) * 3))];
  const across = ['left', '', 'right'][Math.min(2, Math.floor((column / columns) * 3))];
  const where = [down || (across && 'middle'), across || 'middle'].filter(Boolean).join(' ');
  return `Half of the ${whole} comes from ${n} of ${rows * columns} places; the strongest, ` +
    `${percent(best / sum)} of it, is in the ${where}.`;
}
