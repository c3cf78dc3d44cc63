// The parts of the page that need no browser: filters as expressions, the address, the slider's stops, the crop box.
import { execFileSync } from 'node:child_process';
import { equal } from './harness.mjs';

const PAGE = '../../src/serve/page/';
const GUESSES = '--experimental-detect-module';

export async function unitCases() {
  const where = await import(`${PAGE}where.js`);
  const query = await import(`${PAGE}query.js`);
  const threshold = await import(`${PAGE}threshold.js`);
  const crop = await import(`${PAGE}crop.js`);
  const heat = await import(`${PAGE}heat.js`);
  const state = (search) => query.stateFromSearch(search).state;

  return [
    [
      'Node need not guess that the scripts are modules', // Node 18 does not guess
      () => {
        const words = process.allowedNodeEnvironmentFlags.has(GUESSES) ? ['--no-experimental-detect-module'] : [];
        const script = `import(${JSON.stringify(new URL(`${PAGE}where.js`, import.meta.url).href)})`;
        execFileSync(process.execPath, [...words, '--input-type=module', '--eval', `await ${script}`], { stdio: 'pipe' });
      },
    ],
    [
      'values are quoted, and quotes doubled',
      () => {
        equal(where.whereOf({ label: { is: ["o'hara"] } }), "label = 'o''hara'", 'one value');
        equal(
          where.whereOf({ label: { is: ['a', "b' or '1' = '1"] } }),
          "label in ('a', 'b'' or ''1'' = ''1')",
          'two values',
        );
        equal(where.whereOf({ label: { is: [''] } }), "label = ''", 'the empty value');
      },
    ],
    [
      'wildcards of a text stand for themselves',
      () => {
        equal(where.whereOf({ path: { has: '50%_a\\b' } }), "path like '%50\\%\\_a\\\\b%'", 'contains');
      },
    ],
    [
      'numbers are numbers or left out',
      () => {
        equal(where.whereOf({ year: { min: ' 2019 ', max: '2e3' } }), 'year >= 2019 and year <= 2e3', 'both');
        equal(where.whereOf({ year: { min: '1 or id > 0' } }), '', 'not a number');
      },
    ],
    [
      'an expression keeps its own meaning beside filters',
      () => {
        equal(
          where.whereOf({ site: { is: ['north'] } }, 'id = 1 or id = 2'),
          "site = 'north' and (id = 1 or id = 2)",
          'both',
        );
        equal(where.whereOf({}, ' id = 1 or id = 2 '), 'id = 1 or id = 2', 'alone');
      },
    ],
    [
      'a chip takes one filter away',
      () => {
        const chips = where.chipsOf({ label: { is: ['a', 'b'] }, year: { min: '3' } });
        equal(
          chips.map(({ text }) => text),
          ['a', 'b', 'from 3'],
          'texts',
        );
        equal(chips[0].rest, { label: { is: ['b'] }, year: { min: '3' } }, 'without the first');
        equal(chips[2].rest, { label: { is: ['a', 'b'] } }, 'without the last');
      },
    ],
    [
      'the address holds the query and gives it back',
      () => {
        const asked = {
          view: 'search',
          query: {
            images: [
              { id: 17, weight: 1, crop: [1, 2, 30, 40] },
              { id: 9, weight: -1 },
            ],
            filters: {
              label: { is: ['a&b=c', 'd'] },
              'odd.name': { has: '100% +' },
              year: { min: '2019', max: '2020' },
            },
            where: "id < 5 or label = 'x'",
            same: 0.01,
            hideDuplicates: true,
          },
          item: 18,
          why: true,
        };
        const search = query.searchFromState(asked);
        equal(state(search), asked, search);
        equal(query.searchFromState(state('')), '', 'the empty query');
      },
    ],
    [
      'uploaded images are only counted in the address',
      () => {
        const search = query.searchFromState({
          ...query.emptyState(),
          query: { ...query.emptyQuery(), images: [{ upload: 3, weight: 1 }] },
        });
        equal(search, '?uploads=1', 'address');
        equal(query.stateFromSearch(search).uploads, 1, 'uploads');
      },
    ],
    [
      'an address that makes no sense is passed over',
      () => {
        equal(
          state('?like=-1&like=x&like=1e9&same=2&same=abc&item=../etc&view=other&is.=3&like=4@1,2,0,5&nonsense=1'),
          { ...query.emptyState(), query: { ...query.emptyQuery(), images: [{ id: 4, weight: 1 }] } },
          'state',
        );
      },
    ],
    [
      'an image that is added again changes its sign',
      () => {
        equal(
          query.withImage(
            [
              { id: 1, weight: 1 },
              { id: 2, weight: 1 },
            ],
            { id: 1, weight: -1 },
          ),
          [
            { id: 2, weight: 1 },
            { id: 1, weight: -1 },
          ],
          'images',
        );
      },
    ],
    [
      'the slider stops where the calibration can tell',
      () => {
        const calibration = { false_match_rate: [0.3, 0.03, 0.004], threshold: [0.2, 0.5, 0.8] };
        equal(threshold.stopsOf(calibration), [0.2, 0.1, 0.05, 0.02, 0.01, 0.005], 'stops');
        equal(threshold.stopsOf(null), [], 'without one');
        equal(threshold.scoreOf(calibration, 0.03), 0.5, 'at a point');
        equal(threshold.scoreOf(calibration, Math.sqrt(0.3 * 0.03)).toFixed(6), '0.350000', 'half way');
        equal(threshold.scoreOf(calibration, 0.5), null, 'outside');
        equal([0.01, 0.005, 0.3].map(threshold.rateText), ['1 in 100', '1 in 200', '30 %'], 'words');
      },
    ],
    [
      'rates that were measured at another side say so',
      () => {
        const said = ' Measured with pictures of 192 pixels, where this index has others.';
        equal(threshold.elsewhereText({ source: 'validation, at 192 px' }), said, "the model's");
        equal(threshold.elsewhereText({ source: 'validation, at 192 px, index' }), '', "and the index's own");
        equal(threshold.elsewhereText({}), '', 'an older server');
      },
    ],
    [
      'an estimate is not called the score',
      () => {
        const map = { rows: 1, columns: 2, values: [1, 0] };
        equal(heat.heatText(map).slice(0, 31), 'Half of the score comes from 1 ', 'exact');
        equal(heat.heatText(map, 'estimate').slice(0, 34), 'Half of the estimate comes from 1 ', 'estimated');
      },
    ],
    [
      'the crop box stays in the picture and keeps a size',
      () => {
        equal(crop.moved([10, 10, 50, 50], 100, -100, 100, 80), [50, 0, 50, 50], 'moved');
        equal(crop.resized([10, 10, 50, 50], 'se', 500, -500, 100, 80, 5), [10, 10, 90, 5], 'south east');
        equal(crop.resized([10, 10, 50, 50], 'nw', -500, 500, 100, 80, 5), [0, 55, 60, 5], 'north west');
      },
    ],
  ];
}
