// What the page does when the server refuses, is busy or is gone, and with hostile strings: against the stand-in, which
// can be told to.
import { becomes, cards, check, choose, equal, fileOf, ids, noViolations, settled } from './harness.mjs';

export const faultCases = [
  {
    name: 'hostile labels and paths are text',
    async run(page, site) {
      await page.goto(`${site.url}?like=6`);
      await settled(page);
      const names = await cards(page).locator('.name').allTextContents();
      check(names.includes('<img src=x onerror=window.hacked=1>'), `labels: ${names}`);
      check(
        (await cards(page).locator('.path').allTextContents()).some((path) => path.startsWith('a/<b>bold</b>&amp;/')),
        'path',
      );
      const group = page.locator('#filters').getByRole('group', { name: 'label' });
      await group.getByLabel('"><script>window.hacked=1</script>', { exact: true }).check();
      await page.locator('.chip').waitFor();
      await page.locator('.card .open').first().click();
      await page.getByRole('dialog').getByText('path', { exact: true }).waitFor();
      equal(
        await page.evaluate(() => [
          window.hacked ?? null,
          document.querySelectorAll('#found b b, #found script, img[src="x"]').length,
        ]),
        [null, 0],
        'markup from strings',
      );
    },
  },

  {
    name: 'quotes in filters reach the server whole',
    async run(page, site) {
      await page.goto(`${site.url}?like=5`);
      await settled(page);
      await page.locator('#filters').getByLabel("o'hara", { exact: true }).check();
      await becomes(
        () =>
          cards(page)
            .locator('.name')
            .evaluateAll((all) => [...new Set(all.map((name) => name.textContent))]),
        ["o'hara"],
        'labels',
      );
      equal(site.seen.at(-1).query.where, "label = 'o''hara'", 'expression');
      await page.getByText('year', { exact: true }).click();
      await page.getByLabel('year from').fill('2021');
      await page.keyboard.press('Enter');
      await becomes(() => site.seen.at(-1).query.where, "label = 'o''hara' and year >= 2021", 'expression');
      await page.getByText('note', { exact: true }).click();
      await page.getByLabel('note contains').fill('50%');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Nothing found' }).waitFor();
      equal(site.seen.at(-1).query.where, "label = 'o''hara' and year >= 2021 and note like '%50\\%%'", 'expression');
      await page.getByRole('button', { name: 'Show everything' }).click();
      await becomes(() => cards(page).count(), 24, 'hits');
    },
  },

  {
    name: 'what is sent: the file, the crop, the signs',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, fileOf(site.picture, 'a b"c.png'));
      check(site.seen.at(-1).files.f0.equals(site.picture), 'the file was changed on its way');
      equal(site.seen.at(-1).query, { images: [{ part: 'f0', weight: 1 }], k: 24, offset: 0 }, 'query');
      await page.getByText('Crop in numbers').click();
      for (const [name, value] of [
        ['x', '10'],
        ['y', '20'],
        ['width', '30'],
        ['height', '40'],
      ]) {
        await page.getByLabel(name, { exact: true }).fill(value);
        await page.keyboard.press('Enter');
      }
      await becomes(() => site.seen.at(-1).query.images[0].crop, [10, 20, 30, 40], 'crop');
      await settled(page);
      const [, second] = await ids(page);
      await cards(page).nth(1).hover();
      await cards(page)
        .nth(1)
        .getByRole('button', { name: /^Minus/ })
        .click();
      await becomes(
        () => site.seen.at(-1).query.images,
        [
          { part: 'f0', weight: 1, crop: [10, 20, 30, 40] },
          { id: second, weight: -1 },
        ],
        'images',
      );
    },
  },

  {
    name: 'one search at a time while the crop is dragged',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, fileOf(site.picture));
      site.faults.slowSearch = 400;
      site.load.most = 0;
      const box = await page.locator('.view .picture').boundingBox();
      await page.mouse.move(box.x + 20, box.y + 20);
      await page.mouse.down();
      for (let i = 1; i <= 20; i++) await page.mouse.move(box.x + 20 + 10 * i, box.y + 20 + 8 * i);
      await page.mouse.up();
      const wanted = await page.locator('.crop').getAttribute('aria-label');
      await becomes(
        () => {
          const { crop: [x, y, w, tall] = [] } = site.seen.at(-1).query.images[0];
          return `Crop: ${w} by ${tall} pixels at ${x}, ${y}`;
        },
        wanted,
        'the last search',
      );
      site.faults.slowSearch = 0;
      // The one that was under way when the box was let go is given up; the server may not know yet.
      check(site.load.most <= 2, `${site.load.most} searches at once`);
    },
  },

  {
    name: 'a busy server is asked again',
    mayFail: /status of 503/,
    async run(page, site) {
      site.faults.busy = 2;
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      equal([await page.getByRole('alert').count(), site.faults.busy], [0, 0], 'alerts, refusals left');
    },
  },

  {
    name: 'duplicates are waited for',
    mayFail: /status of 503/,
    async run(page, site) {
      site.faults.comparing = 5;
      await page.goto(`${site.url}?view=duplicates`);
      await page.getByText('the server reads each of them once').waitFor();
      await page.getByRole('heading', { name: /^Group 1/ }).waitFor();
      equal([await page.getByRole('alert').count(), site.faults.comparing], [0, 0], 'alerts, refusals left');
    },
  },

  {
    name: 'a problem is said in the words of the server, with its hint',
    mayFail: /status of 413/,
    async run(page, site, { AxeBuilder }) {
      site.faults.fail = {
        type: 'about:blank',
        title: 'Too large',
        status: 413,
        detail: 'the image has 90,000,000 pixels; at most 40,000,000 are read',
        hint: 'make it smaller <b>',
      };
      await page.goto(`${site.url}?like=3`);
      await page.getByRole('alert').waitFor();
      equal(
        await page.getByRole('alert').innerText(),
        'Too large\n\nthe image has 90,000,000 pixels; at most 40,000,000 are read\n\nmake it smaller <b>\n\nTry again',
        'words',
      );
      await noViolations(page, AxeBuilder, 'a problem');
      await page.getByRole('button', { name: 'Try again' }).click();
      await settled(page);
      equal(await page.getByRole('alert').count(), 0, 'alerts');
    },
  },

  {
    name: 'a server that is gone',
    mayFail: /ERR_/,
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.route('**/api/v1/search', (route) => route.abort('connectionrefused'));
      await page.getByLabel('Hide duplicates').check();
      await page.getByText('Is kith serve still running?').waitFor();
      await page.unroute('**/api/v1/search');
      await page.getByRole('button', { name: 'Try again' }).click();
      await settled(page);
      equal(await page.getByRole('alert').count(), 0, 'alerts');
    },
  },

  {
    name: 'an item that is not there',
    mayFail: /status of 404/,
    async run(page, site) {
      await page.goto(`${site.url}?like=3&item=999999`);
      await settled(page);
      await page.getByRole('dialog').getByText('999999').first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
    },
  },

  {
    name: 'skeletons while it loads',
    async run(page, site) {
      site.faults.slow = 1500;
      await page.goto(`${site.url}?like=3`);
      await page.locator('.grid.waiting').waitFor();
      site.faults.slow = 0;
      await settled(page);
      equal(await page.locator('.grid.waiting').count(), 0, 'skeletons');
    },
  },

  {
    name: 'an index without a model',
    async run(page, site, { AxeBuilder }) {
      site.faults.canEmbed = false;
      await page.goto(site.url);
      await page.getByText('without a model').waitFor();
      equal(await page.getByRole('button', { name: 'Choose an image' }).count(), 0, 'buttons to choose');
      await page
        .getByRole('button', { name: /^Search with / })
        .first()
        .click();
      await settled(page);
      equal(await page.locator('.crop').count(), 0, 'crop boxes');
      await noViolations(page, AxeBuilder, 'no model');
      site.faults.canEmbed = true;
    },
  },

  {
    name: 'an index whose model is missing',
    async run(page, site) {
      Object.assign(site.faults, { canEmbed: false, missingModel: 'birds/model.safetensors' });
      await page.goto(site.url);
      await page.getByText("The index's model birds/model.safetensors cannot be opened.").waitFor();
      await page.getByText('--model').waitFor();
      equal(await page.getByText('made from vectors').count(), 0, 'words of an index of vectors');
      Object.assign(site.faults, { canEmbed: true, missingModel: null });
    },
  },

  {
    name: 'the server chooses what is offered; items without a picture are not asked for one',
    async run(page, site) {
      site.asked.length = 0;
      await page.goto(site.url);
      await page
        .getByRole('button', { name: /^Search with / })
        .first()
        .waitFor();
      equal(await page.getByRole('button', { name: /^Search with / }).count(), 7, 'items offered');
      equal(site.asked.filter((path) => /^items\/\d+$/.test(path)).length, 0, 'guesses of ids');
      await page.goto(`${site.url}?like=28&like=3`);
      await settled(page);
      await page.locator('.tiles .thumb.there').waitFor();
      equal(await page.locator('.tiles .thumb.none').count(), 1, 'frames without a picture');
    },
  },

  {
    name: 'an index without false-match rates',
    async run(page, site) {
      site.faults.isCalibrated = false;
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.getByText('kith index … --calibrate').waitFor();
      equal(await page.locator('.false-matches').count(), 0, 'false-match rates');
      site.faults.isCalibrated = true;
    },
  },
];

export const tokenCases = [
  {
    name: 'the token dialog',
    mayFail: /status of 401/,
    async run(page, site, { AxeBuilder }) {
      await page.goto(`${site.url}?like=3`);
      await page.getByRole('dialog', { name: 'This server asks for a token' }).waitFor();
      await noViolations(page, AxeBuilder, 'token');
      await page.getByLabel('Token', { exact: true }).fill('wrong');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'The token was not accepted' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('alert').waitFor();
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByLabel('Token', { exact: true }).fill(site.token);
      await page.getByRole('button', { name: 'Continue' }).click();
      await settled(page);
      await cards(page).first().locator('.thumb.there').waitFor();
      equal(
        await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie]),
        [1, 0, ''],
        'where the token is kept',
      );
      await page.reload();
      await settled(page);
      equal(await page.getByRole('dialog').count(), 0, 'dialogs after a reload');
    },
  },
];
