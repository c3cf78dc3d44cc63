// Photos that are indexed while the page is open: against kith serve, and against the stand-in that takes its time.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { becomes, cards, check, choose, equal, fileOf, ids, noViolations } from './harness.mjs';

const about = (page) => page.locator('#about').textContent();
const answer = (state, photos, done, ready, generation, problem = null) => ({
  state,
  photos,
  done,
  ready,
  generation,
  unreadable: 0,
  rate: null,
  seconds_left: null,
  problem,
});

// Each case says what the server answers, one after the other; the last answer stays.
export const indexingCases = [
  {
    name: 'progress in plain words, searchable meanwhile',
    async run(page, site, { AxeBuilder }) {
      site.faults.isEmpty = true;
      site.faults.progress = [
        answer('looking', null, null, 0, 1),
        answer('indexing', 40000, 96, 0, 1),
        answer('indexing', 40000, 1240, 1200, 2),
      ];
      await page.goto(site.url);
      await becomes(() => about(page), 'looking for photos; 0 searchable now', 'at first');
      await becomes(() => about(page), 'indexing: 96 of 40,000 photos', 'before the first commit');
      await becomes(() => about(page), 'indexing: 1,240 of 40,000 photos, searchable now', 'after it');
      await noViolations(page, AxeBuilder, 'indexing');
      await page.getByRole('button', { name: /^Search with / }).first().waitFor();
      await choose(page, fileOf(site.picture));
      check((await ids(page)).length > 3, 'no hits while photos are indexed');
      site.faults.progress = [answer('ready', 40000, 40000, 40000, 9)];
      await becomes(() => about(page), '40,000 photos', 'at the end');
      await becomes(() => page.locator('#facts').textContent(), (text) => text.includes('generation 9'), 'facts');
      check((await cards(page).count()) > 3, 'the hits stay');
    },
  },

  {
    name: 'why photos cannot be indexed is said',
    async run(page, site) {
      site.faults.progress = [answer('failing', 300, 300, 300, 7, 'the folder of photos cannot be read')];
      await page.goto(site.url);
      await becomes(() => about(page), 'the folder of photos cannot be read; 300 searchable now', 'a problem');
      site.faults.progress = [answer('elsewhere', 300, 300, 200, 7)];
      await becomes(() => about(page), 'another process is indexing; 200 searchable now', 'another process');
    },
  },
];

// kith serve PHOTOS: 73 signs, looked at every second.
export const photosCases = [
  {
    name: 'photos without an index: all of them, and one that comes later',
    async run(page, site) {
      await page.goto(site.url);
      await becomes(() => about(page), (text) => /^7[3-9] photos$/.test(text), 'all are in');
      const before = Number.parseInt(await about(page), 10);
      await choose(page, fileOf(site.picture));
      check((await ids(page)).length > 3, 'no hits');
      writeFileSync(join(site.folder, `signs/glyph00002/late-${Date.now()}.png`), site.other);
      await becomes(() => about(page), `${before + 1} photos`, 'after one more');
      equal(await page.locator('#problem').textContent(), '', 'problems');
    },
  },
];
