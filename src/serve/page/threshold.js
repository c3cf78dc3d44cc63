// The slider over the false-match rate: stops at 1, 2 and 5 of every power of ten that was measured.
import { count, h, percent } from './dom.js';

// From the loosest to the strictest, without "no limit".
export function stopsOf(calibration) {
  if (!calibration || calibration.false_match_rate.length === 0) return [];
  const strictest = Math.min(...calibration.false_match_rate), loosest = Math.max(...calibration.false_match_rate);
  const stops = [];
  for (let power = -1; power >= -9; power--)
    for (const digit of [5, 2, 1]) {
      const rate = Number(`${digit}e${power}`);
      if (rate >= strictest && rate <= loosest) stops.push(rate);
    }
  return stops;
}

// The score of a rate, between the points of the curve on a logarithmic scale; null outside.
export function scoreOf(calibration, rate) {
  const { false_match_rate: far, threshold } = calibration;
  for (let i = 0; i < far.length; i++) {
    if (far[i] === rate) return threshold[i];
    if (i === 0 || (far[i - 1] - rate) * (far[i] - rate) >= 0 || far[i] <= 0 || far[i - 1] <= 0) continue;
    const part = Math.log(rate / far[i - 1]) / Math.log(far[i] / far[i - 1]);
    return threshold[i - 1] + part * (threshold[i] - threshold[i - 1]);
  }
  return null;
}

export function rateText(rate) {
  const one = 1 / rate;
  return Math.abs(one - Math.round(one)) < 1e-6 ? `1 in ${count(Math.round(one))}` : percent(rate);
}

// A curve of the model's own side of pictures says so where the index has another: "validation, at 192 px".
export function elsewhereText({ source = '' }) {
  const [, side] = source.match(/, at (\d+) px$/) ?? [];
  return side ? ` Measured with pictures of ${side} pixels, where this index has others.` : '';
}

// The slider in `place`. change(rate or null, isFinal) is called while it is dragged and when it is let go.
export function makeThreshold(place, info, change) {
  const stops = stopsOf(info.calibration);
  if (stops.length === 0) {
    place.replaceChildren(h('p', { class: 'quiet' }, 'No false-match rates: the index is not calibrated. ',
      h('code', {}, 'kith index … --calibrate'), ' measures them.'));
    return { show() {} };
  }
  const slider = h('input', { type: 'range', id: 'same', min: 0, max: stops.length, step: 1, value: 0 });
  const says = h('output', { for: 'same' });
  const note = h('p', { class: 'quiet' });
  const rateAt = (stop) => (stop > 0 ? stops[stop - 1] : null);

  function describe(rate) {
    const score = rate === null ? null : scoreOf(info.calibration, rate);
    says.textContent = rate === null ? 'any' : `at most ${rateText(rate)}`;
    note.textContent = rate === null
      ? 'Everything is shown, the most similar first.'
      : `${rateText(rate)} pairs of different things look this similar or more` +
        `${score === null ? '' : `: a score of ${score.toFixed(3)}`}.${elsewhereText(info.calibration)}`;
    slider.setAttribute('aria-valuetext', rate === null ? 'any false-match rate'
      : `false-match rate at most ${rateText(rate)}${score === null ? '' : `, score at least ${score.toFixed(3)}`}`);
  }
  slider.addEventListener('input', () => {
    const rate = rateAt(slider.valueAsNumber);
    describe(rate);
    change(rate, false);
  });
  slider.addEventListener('change', () => change(rateAt(slider.valueAsNumber), true));
  place.replaceChildren(
    h('div', { class: 'row' }, h('label', { for: 'same' }, 'False-match rate'), says), slider,
    h('div', { class: 'scale', 'aria-hidden': 'true' }, h('span', {}, 'similar'), h('span', {}, 'the same')), note);

  return {
    // A rate from a link may lie between two stops: the slider shows the stricter one.
    show(rate) {
      const stop = rate === null ? 0 : stops.findIndex((other) => other <= rate * (1 + 1e-9)) + 1;
      slider.value = rate !== null && stop === 0 ? stops.length : stop;
      describe(rate);
    },
  };
}
