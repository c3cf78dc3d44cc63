// What people do on the page, against any server: site.picture is an image to search with, site.labels two labels and
// site.asked() the last search that the server was asked, where the server can tell.
import { becomes, cards, check, choose, equal, fileOf, ids, noViolations, settled, transfer } from './harness.mjs';

const search = (page) => page.evaluate(() => location.search);
const file = (site) => fileOf(site.picture);

export const searchCases = [
  {
    name: 'the beginning says what to do, and offers items',
    async run(page, site, { AxeBuilder }) {
      await page.goto(site.url);
      await page.getByRole('heading', { name: 'Find images like yours' }).waitFor();
      await page
        .getByRole('button', { name: /^Search with / })
        .first()
        .waitFor();
      await noViolations(page, AxeBuilder, 'beginning');
      await page
        .getByRole('button', { name: /^Search with / })
        .first()
        .click();
      await settled(page);
      check(/^\?like=\d+$/.test(await search(page)), `address: ${await search(page)}`);
    },
  },

  {
    name: 'upload',
    async run(page, site, { AxeBuilder }) {
      await page.goto(site.url);
      await choose(page, file(site));
      check((await ids(page)).length > 3, 'no hits');
      equal(await search(page), '?uploads=1', 'address');
      check(
        await page.getByText('but not the uploaded image').isVisible(),
        'the page does not say that the address lacks the image',
      );
      const first = cards(page).first();
      check(/\d\.\d{3}/.test(await first.locator('.score').textContent()), 'no score');
      check(/1 of [\d,]+ pairs of different things/.test(await first.locator('.false-matches').textContent()), 'no false-match rate');
      check((await first.locator('.name').textContent()).length > 0, 'no label');
      check((await first.locator('.path').textContent()).includes('/'), 'no path');
      await first.locator('.thumb.there').waitFor();
      await becomes(
        () => page.locator('#status').textContent(),
        (text) => /^\d+ results\. Best: /.test(text),
        'said to screen readers',
      );
      await noViolations(page, AxeBuilder, 'results');
    },
  },

  {
    name: 'paste',
    async run(page, site) {
      await page.goto(site.url);
      await page.locator('#hero .target').waitFor();
      await transfer(page, 'paste', 'body', file(site));
      await settled(page);
      check((await ids(page)).length > 3, 'no hits');
    },
  },

  {
    name: 'drop, then drop as a minus',
    async run(page, site) {
      await page.goto(site.url);
      await page.locator('#hero .target').waitFor();
      await transfer(page, 'new', 'body', file(site));
      await settled(page);
      const before = await ids(page);
      await transfer(page, 'minus', 'body', fileOf(site.other, 'other.png'));
      await becomes(() => page.locator('.tiles li').count(), 2, 'tiles');
      equal(await page.locator('.tiles .minus').count(), 1, 'minus tiles');
      await becomes(
        () => ids(page),
        (now) => JSON.stringify(now) !== JSON.stringify(before),
        'hits after the minus',
      );
    },
  },

  {
    name: 'what is no image is refused in plain words',
    async run(page, site) {
      await page.goto(site.url);
      await page.locator('#hero .target').waitFor();
      await transfer(page, 'paste', 'body', fileOf(Buffer.from('hello'), 'notes.txt', 'text/plain'));
      equal(
        await page.getByRole('alert').innerText(),
        'Not an image\n\nnotes.txt is text/plain.\n\nUse a picture file: JPEG, PNG, WebP, HEIC or AVIF.',
        'words',
      );
    },
  },

  {
    name: 'crop with the mouse, live',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, file(site));
      const before = await ids(page);
      const box = await page.locator('.view .picture').boundingBox();
      await page.mouse.move(box.x + box.width * 0.1, box.y + box.height * 0.1);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.45, box.y + box.height * 0.5, { steps: 5 });
      // The button is still down: results follow the drag.
      await becomes(
        () => ids(page),
        (now) => JSON.stringify(now) !== JSON.stringify(before),
        'hits while dragging',
      );
      await page.mouse.up();
      await settled(page);
      const label = await page.locator('.crop').getAttribute('aria-label');
      check(/^Crop: \d+ by \d+ pixels at \d+, \d+$/.test(label), label);
      await page.getByRole('button', { name: 'Whole picture' }).click();
      await becomes(() => ids(page), before, 'hits of the whole picture');
      await page.goBack();
      await becomes(() => page.locator('.crop').getAttribute('aria-label'), label, 'crop after Back');
    },
  },

  {
    name: 'crop with the keyboard and in numbers',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, file(site));
      const box = page.locator('.crop');
      const whole = await box.getAttribute('aria-label');
      await box.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Shift+ArrowLeft');
      check(/ at [1-9]|, [1-9]/.test(await box.getAttribute('aria-label')), await box.getAttribute('aria-label'));
      await page.keyboard.press('Escape');
      equal(await box.getAttribute('aria-label'), whole, 'after Escape');
      await page.getByText('Crop in numbers').click();
      await page.getByLabel('width', { exact: true }).fill('20');
      await page.keyboard.press('Enter');
      await becomes(
        () => box.getAttribute('aria-label'),
        (label) => label.startsWith('Crop: 20 by'),
        'after a number',
      );
      await settled(page);
    },
  },

  {
    name: 'crop with a finger',
    context: { hasTouch: true, isMobile: true, viewport: { width: 400, height: 800 } },
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, file(site));
      const handle = await page.locator('[data-edge=se]').boundingBox();
      const [x, y] = [handle.x + handle.width / 2, handle.y + handle.height / 2];
      const client = await page.context().newCDPSession(page);
      const touch = (type, ...points) => client.send('Input.dispatchTouchEvent', { type, touchPoints: points });
      await touch('touchStart', { x, y });
      for (let i = 1; i <= 5; i++) await touch('touchMove', { x: x - 12 * i, y: y - 8 * i });
      await touch('touchEnd');
      await becomes(
        () => page.locator('.crop').getAttribute('aria-label'),
        (label) => /^Crop: \d+ by \d+ pixels at 0, 0$/.test(label),
        'crop',
      );
    },
  },

  {
    name: 'more like this, plus and minus, and Back',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      const [, second, third, fourth] = await ids(page);
      const tool = (id, name) => page.locator(`.card[data-id="${id}"]`).getByRole('button', { name });
      await cards(page).nth(1).hover();
      await tool(second, /^More like this/).click();
      await becomes(() => search(page), `?like=${second}`, 'address');
      await page.goBack();
      await becomes(() => search(page), '?like=3', 'address after Back');
      await becomes(async () => (await ids(page)).slice(0, 4), [3, second, third, fourth], 'hits after Back');
      await cards(page).nth(2).hover();
      await tool(third, /^Plus/).click();
      await becomes(() => search(page), `?like=3&like=${third}`, 'address after plus');
      await becomes(() => page.locator('.tiles li').count(), 2, 'tiles');
      await page
        .locator('.tiles li')
        .nth(1)
        .getByRole('button', { name: /make it a minus/ })
        .click();
      await becomes(() => search(page), `?like=3&unlike=${third}`, 'address after turning it');
      await settled(page);
      await page
        .locator('.tiles li')
        .nth(0)
        .getByRole('button', { name: /make it a minus/ })
        .click();
      check(await page.getByText('All images are a minus').isVisible(), 'no word about a query of minuses');
      await page.goBack();
      await settled(page);
      await page
        .locator('.tiles li')
        .nth(1)
        .getByRole('button', { name: /^Remove/ })
        .click();
      await becomes(() => search(page), '?like=3', 'address after removing');
    },
  },

  {
    name: 'filters from the columns, in the address, with chips',
    async run(page, site, { AxeBuilder }) {
      const [one, two] = site.labels;
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      const group = page.locator('#filters').getByRole('group', { name: 'label' });
      await group.getByLabel(one, { exact: true }).check();
      await becomes(
        () =>
          cards(page)
            .locator('.name')
            .evaluateAll((all) => [...new Set(all.map((name) => name.textContent))]),
        [one],
        'labels',
      );
      check(
        await group.getByLabel(one, { exact: true }).evaluate((box) => box === document.activeElement),
        'the focus left the checkbox',
      );
      await group.getByLabel(two, { exact: true }).check();
      await becomes(
        () => search(page),
        `?like=3&${new URLSearchParams([
          ['is.label', one],
          ['is.label', two],
        ])}`,
        'address',
      );
      await page.getByText('Expression').click();
      await becomes(() => page.locator('.where').textContent(), `label in ('${one}', '${two}')`, 'expression');
      await noViolations(page, AxeBuilder, 'filters');
      await page.reload();
      await settled(page);
      equal(await page.locator('.chip').count(), 2, 'chips after a reload');
      await page.getByRole('button', { name: `Remove the filter label ${one}` }).click();
      await becomes(() => search(page), `?like=3&is.label=${encodeURIComponent(two)}`, 'address');
      await page.goBack();
      await becomes(() => page.locator('.chip').count(), 2, 'chips after Back');
    },
  },

  {
    name: 'a wrong expression is said in the words of the server',
    mayFail: /status of 400/,
    async run(page, site) {
      await page.goto(`${site.url}?like=3&where=lable+%3D%3D%3D`);
      await page.getByRole('alert').waitFor();
      check(
        (await page.getByRole('alert').innerText()).includes('where: character'),
        await page.getByRole('alert').innerText(),
      );
      await page.getByLabel('Expression', { exact: true }).fill('');
      await page.keyboard.press('Enter');
      await settled(page);
      equal(await page.getByRole('alert').count(), 0, 'alerts');
    },
  },

  {
    name: 'the slider over the false-match rate',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      const slider = page.getByRole('slider', { name: 'False-match rate' });
      equal(await slider.getAttribute('aria-valuetext'), 'any false-match rate', 'words at first');
      const all = (await ids(page)).length;
      await slider.focus();
      await page.keyboard.press('End');
      await becomes(
        () => search(page),
        (text) => /same=[\de.-]+/.test(text),
        'address',
      );
      await becomes(
        () => cards(page).count(),
        (n) => n < all,
        'fewer hits',
      );
      check(
        /^false-match rate at most 1 in [\d,]+, score at least \d\.\d{3}$/.test(await slider.getAttribute('aria-valuetext')),
        await slider.getAttribute('aria-valuetext'),
      );
      const address = await search(page);
      await page.keyboard.press('Home');
      await becomes(() => cards(page).count(), all, 'all hits again');
      await page.goBack();
      await becomes(() => search(page), address, 'address after Back');
      equal(await slider.inputValue(), await slider.getAttribute('max'), 'the slider after Back');
    },
  },

  {
    name: 'hide duplicates',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.getByLabel('Hide duplicates').check();
      await becomes(() => search(page), '?like=3&duplicates=hide', 'address');
      await settled(page);
    },
  },

  {
    name: 'open a hit, go through the hits, close it',
    async run(page, site, { AxeBuilder }) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      const [first, second] = await ids(page);
      await cards(page).first().locator('.open').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(/^1 of \d+$/).waitFor();
      await dialog.getByText('path', { exact: true }).waitFor();
      await noViolations(page, AxeBuilder, 'detail');
      await page.keyboard.press('ArrowRight');
      await becomes(() => search(page), `?like=3&item=${second}`, 'address');
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      equal(await search(page), '?like=3', 'address after closing');
      await page.goForward();
      await dialog.waitFor();
      await page.goBack();
      await dialog.waitFor({ state: 'hidden' });
      check(first === 3, `first hit: found ${first}, wanted 3`);
    },
  },

  {
    name: 'show more',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      const before = await ids(page);
      await page.getByRole('button', { name: 'Show more' }).click();
      await becomes(
        () => cards(page).count(),
        (n) => n > before.length,
        'more cards',
      );
      const now = await ids(page);
      equal(now.slice(0, before.length), before, 'the first ones');
      equal(new Set(now).size, now.length, 'different ids');
    },
  },

  {
    name: 'duplicates',
    async run(page, site, { AxeBuilder }) {
      await page.goto(site.url);
      await page.getByRole('link', { name: 'Duplicates' }).click();
      await page
        .getByRole('heading', { name: /^Group 1 the same/ })
        .first()
        .waitFor();
      equal(await search(page), '?view=duplicates', 'address');
      await noViolations(page, AxeBuilder, 'duplicates');
      await page.locator('.group .card').first().hover();
      await page
        .locator('.group .card')
        .first()
        .getByRole('button', { name: /^More like this/ })
        .click();
      await settled(page);
      check(/^\?like=\d+$/.test(await search(page)), await search(page));
      await page.goBack();
      await page
        .getByRole('heading', { name: /^Group 1 the same/ })
        .first()
        .waitFor();
    },
  },

  {
    name: 'a link with an uploaded image says what it lacks',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, file(site));
      await page.reload();
      await page.getByText('An uploaded image was part of this search').waitFor();
      await page.goto(`${site.url}?uploads=2&like=3`);
      await page.getByText('2 uploaded images were part of this search').waitFor();
      await settled(page);
    },
  },

  {
    name: 'the crop of an item of the index',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.locator('.crop').focus();
      await page.keyboard.press('ArrowDown');
      await becomes(
        () => search(page),
        (text) => /^\?like=3@\d+,\d+,\d+,\d+$/.test(text),
        'address',
      );
      await settled(page);
      check((await ids(page)).length > 0, 'no hits');
    },
  },
];

export const explainCases = [
  {
    name: 'why it matched',
    async run(page, site, { AxeBuilder }) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await cards(page).nth(1).hover();
      await cards(page).nth(1).getByRole('button', { name: /^Why / }).click();
      const dialog = page.getByRole('dialog');
      await becomes(() => dialog.locator('canvas.heat').count(), 2, 'maps');
      check(
        /^Half of the score comes from \d+ of \d+ places/.test(await dialog.locator('.told').textContent()),
        await dialog.locator('.told').textContent(),
      );
      const drawn = await dialog
        .locator('canvas.heat')
        .first()
        .evaluate((canvas) =>
          canvas
            .getContext('2d')
            .getImageData(0, 0, canvas.width, canvas.height)
            .data.some((byte) => byte > 100),
        );
      check(drawn, 'the map is empty');
      const [map, frame] = await Promise.all([
        dialog.locator('canvas.heat').last().boundingBox(),
        dialog.locator('.frame').last().boundingBox(),
      ]);
      check(
        map.x >= frame.x - 1 && map.x + map.width <= frame.x + frame.width + 1 && map.width > 20,
        `the map is not over the picture: ${JSON.stringify([map, frame])}`,
      );
      await noViolations(page, AxeBuilder, 'why it matched');
      await dialog.getByRole('button', { name: 'Why it matched' }).click();
      await becomes(() => dialog.locator('canvas.heat').count(), 0, 'maps when it is off');
      equal(await page.evaluate(() => new URLSearchParams(location.search).get('why')), null, 'why in the address');
    },
  },

  {
    name: 'why it matched, of an uploaded image with a crop',
    async run(page, site) {
      await page.goto(site.url);
      await choose(page, file(site));
      await page.locator('.crop').focus();
      await page.keyboard.press('ArrowDown');
      await settled(page);
      await cards(page).first().hover();
      await cards(page).first().getByRole('button', { name: /^Why / }).click();
      await becomes(() => page.getByRole('dialog').locator('canvas.heat').count(), 2, 'maps');
    },
  },
];
