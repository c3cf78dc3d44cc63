// How the page holds at the sizes, in the dark, and by keyboard alone.
import { becomes, cards, check, equal, noOverflow, noViolations, settled } from './harness.mjs';

const sized = (width, height, more = {}) => ({ viewport: { width, height }, ...more });

const PAGES = ['', '?like=3', '?like=3&item=3', '?view=duplicates'];

async function throughThePages(page, site, AxeBuilder, name, pages = PAGES) {
  for (const search of pages) {
    await page.goto(`${site.url}${search}`);
    await page
      .locator('.target:visible, dialog .facts dd, .group .card, #found .grid:not(.waiting) .card')
      .first()
      .waitFor();
    await noOverflow(page);
    await noViolations(page, AxeBuilder, `${name} ${search}`);
  }
}

const inside = (page, selector) =>
  page.evaluate(
    (at) =>
      [...document.querySelectorAll(at)].filter((element) => {
        const { left, right, width } = element.getBoundingClientRect();
        return width > 0 && (left < -1 || right > document.documentElement.clientWidth + 1);
      }).length,
    selector,
  );

export const lookCases = [
  {
    name: '400 px',
    context: sized(400, 800, { hasTouch: true, isMobile: true, deviceScaleFactor: 2 }),
    async run(page, site, { AxeBuilder }) {
      await throughThePages(page, site, AxeBuilder, '400 px');
      await page.goto(site.url);
      check(await page.getByRole('button', { name: 'Take a photo' }).isVisible(), 'no button for the camera');
      equal(await page.locator('#photograph').getAttribute('capture'), 'environment', 'camera');
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      equal(await inside(page, 'button, input, .card'), 0, 'controls outside of the screen');
      const tools = cards(page).first().locator('.tools .tool');
      equal(
        await cards(page)
          .first()
          .evaluate(
            (card) =>
              [...card.querySelectorAll('.tool')].filter(
                (tool) => tool.getBoundingClientRect().right > card.getBoundingClientRect().right,
              ).length,
          ),
        0,
        'tools that stick out of their card',
      );
      check(await tools.first().isVisible(), 'no tools without a mouse');
      const { width, height } = await tools.first().boundingBox();
      check(width >= 36 && height >= 40, `a finger needs 36 x 40 px: found ${width} x ${height}`);
      check(!(await page.locator('#threshold').isVisible()), 'the filters take the first screen');
      await page.getByText('Narrow down').click();
      check(await page.locator('#threshold').isVisible(), 'the filters do not open');
    },
  },

  {
    name: '2560 px',
    context: sized(2560, 1440),
    async run(page, site, { AxeBuilder }) {
      await throughThePages(page, site, AxeBuilder, '2560 px', ['?like=3']);
      await settled(page);
      const [first, last] = await cards(page).evaluateAll((all) =>
        [all[0], all.filter((card) => card.offsetTop === all[0].offsetTop).at(-1)].map(
          (card) => card.getBoundingClientRect().right,
        ),
      );
      check(last > 2400 && first < 800, `the grid does not use the width: its first row ends at ${last}`);
    },
  },

  {
    name: 'dark',
    context: { colorScheme: 'dark' },
    async run(page, site, { AxeBuilder }) {
      await throughThePages(page, site, AxeBuilder, 'dark');
      equal(
        await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
        'rgb(20, 23, 26)',
        'background',
      );
    },
  },

  {
    name: 'text at 200 %',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.setViewportSize({ width: 680, height: 430 }); // what is left of 1360 x 860 when everything is twice as large
      await noOverflow(page);
    },
  },

  {
    name: 'keyboard only',
    async run(page, site) {
      await page.goto(site.url);
      await page
        .getByRole('button', { name: /^Search with / })
        .first()
        .waitFor();
      const focused = () =>
        page.evaluate(() => {
          const at = document.activeElement;
          return at.getAttribute('aria-label') ?? at.textContent.trim();
        });
      const tabTo = async (wanted, most = 60) => {
        for (let i = 0; i < most; i++) {
          await page.keyboard.press('Tab');
          const { name, seen } = await page.evaluate(() => {
            const at = document.activeElement;
            const { outlineStyle } = getComputedStyle(at);
            return {
              name: at.getAttribute('aria-label') ?? at.textContent.trim(),
              seen: outlineStyle !== 'none' || at.matches('.skip, input'),
            };
          });
          check(seen || name === '', `the focus on '${name}' cannot be seen`);
          if (wanted.test(name)) return name;
        }
        throw new Error(`Tab does not reach ${wanted}; it is at '${await focused()}'`);
      };
      equal(await tabTo(/./), 'Skip to the results', 'the first stop');
      await tabTo(/^Choose an image$/);
      await tabTo(/^Search with /);
      await page.keyboard.press('Enter');
      await settled(page);
      equal(await page.evaluate(() => document.activeElement.id), 'results', 'focus after a search');
      await tabTo(/^Open /);
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowDown');
      check(/^Open /.test(await focused()), await focused());
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      equal(await focused(), 'Close', 'focus in the dialog');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      check(/^Open /.test(await becomes(focused, (name) => /^Open /.test(name), 'focus after closing')), 'focus');
      await tabTo(/^Plus/);
      await page.keyboard.press('Enter');
      await becomes(() => page.locator('.tiles li').count(), 2, 'tiles');
      await settled(page);
      await page.keyboard.press('Shift+Tab');
      check((await focused()) !== '', 'the focus is lost after a plus');
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      await page.locator('.crop').waitFor(); // the box is there when its picture is
      await tabTo(/^Crop:/);
      await page.keyboard.press('ArrowRight');
      check(/^Crop: \d+ by/.test(await focused()), await focused());
    },
  },

  {
    name: 'landmarks and headings',
    async run(page, site) {
      await page.goto(`${site.url}?like=3`);
      await settled(page);
      for (const role of ['banner', 'navigation', 'search', 'main', 'contentinfo'])
        equal(await page.getByRole(role).count(), 1, role);
      equal(await page.getByRole('heading', { level: 1 }).textContent(), 'Results', 'h1');
      equal(await page.locator('html').getAttribute('lang'), 'en', 'language');
    },
  },
];
