// Naming photos by keyboard, with kith serve --edit over 200 drawn signs without a name. The cases follow one another: each goes on
// from what those before it have decided.
import { NAMERS } from './kith.mjs';
import { becomes, check, equal, noOverflow, noViolations } from './harness.mjs';

const api = (site, path, token, body) =>
  fetch(`${site.url}api/v1/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
const json = async (...words) => (await api(...words)).json();

async function enter(page, site, who = 'anna') {
  await page.goto(`${site.url}?view=name`);
  await page.locator('#token[open]').waitFor();
  await page.fill('#token-value', NAMERS[who]);
  await page.keyboard.press('Enter');
}

async function open(page, site, who = 'anna') {
  await enter(page, site, who);
  await page.locator('.naming .ask').waitFor();
}

// The token is asked for (401), refused (403), and somebody was first (409).
const MAY_FAIL = /status of 40[139]/;

const asked = (page) => page.locator('.naming .ask').textContent();
const shown = (page) =>
  page.evaluate(() => ({
    ask: document.querySelector('.naming .ask')?.textContent ?? '',
    items: [...document.querySelectorAll('.naming .photos button')].map((one) => ({
      id: Number(one.dataset.id), sign: one.getAttribute('aria-label').split('/').at(-1).split('-')[0], isIn: one.getAttribute('aria-pressed') !== 'false',
    })),
    isDone: Boolean(document.querySelector('.naming .nothing')),
  }));

// What a person does with one question: takes out what is not like the first, then confirms or types.
async function answer(page, { ask, items }) {
  const { sign } = items[0];
  for (const [i, item] of items.entries()) {
    if (item.sign === sign || !item.isIn) continue;
    await page.locator('.naming .photos button').nth(i).focus();
    await page.keyboard.press('Space');
  }
  if (ask.includes(` ${sign}?`)) {
    await page.keyboard.press('Enter');
    return;
  }
  await page.locator('.naming .ask').focus();
  await page.keyboard.type(sign);
  await page.keyboard.press('Enter');
}

export const nameCases = [
  {
    name: 'naming: a question, its evidence, and what is said of errors',
    mayFail: MAY_FAIL,
    async run(page, site, { AxeBuilder }) {
      await open(page, site);
      equal(await page.locator('#naming-far').textContent(), '40 of 240 named', 'progress');
      check((await page.locator('#naming-rate').textContent()).includes('No proposal was checked'), 'errors');
      await page.locator('.naming .evidence .thumb.there').first().waitFor();
      await page.locator('.naming .photos .thumb.there').first().waitFor();
      await noViolations(page, AxeBuilder, 'naming');
      await page.locator('.naming .ask').focus();
      if (process.env.KITH_SHOTS) await page.screenshot({ path: `${process.env.KITH_SHOTS}/naming-light.png` });
      await page.keyboard.press('?');
      await page.locator('#naming-dialog[open]').waitFor();
      await noViolations(page, AxeBuilder, 'keys');
      await page.keyboard.press('Escape');
      await page.keyboard.type('Q');
      equal(await page.locator('#naming-input').inputValue(), 'Q', 'typed');
      await page.keyboard.press('Backspace');
      await page.keyboard.type('glyph');
      await page.locator('#naming-options li').first().waitFor();
      await noViolations(page, AxeBuilder, 'names to choose from');
    },
  },

  {
    name: 'naming: 400 px, and in the dark',
    context: { viewport: { width: 400, height: 800 }, colorScheme: 'dark' },
    mayFail: MAY_FAIL,
    async run(page, site, { AxeBuilder }) {
      await open(page, site);
      await noOverflow(page);
      if (process.env.KITH_SHOTS) await page.screenshot({ path: `${process.env.KITH_SHOTS}/naming-phone.png` });
      await noViolations(page, AxeBuilder, '400 px, dark');
    },
  },

  {
    name: 'naming: no, then undo brings the proposal back',
    mayFail: MAY_FAIL,
    async run(page, site) {
      await open(page, site);
      const before = await shown(page);
      await page.keyboard.press('n');
      await becomes(() => asked(page), (ask) => ask !== before.ask && ask !== '', 'another proposal');
      await becomes(() => page.locator('#naming-rate').textContent(), (text) => / is wrong /.test(text), 'errors');
      check(/Before that decision: No proposal/.test(await page.locator('#naming-was').textContent()), 'errors before');
      await page.keyboard.press('u');
      await becomes(() => asked(page), before.ask, 'the proposal again');
      equal((await json(site, 'names', NAMERS.anna)).naming.checked, 0, 'checked');
    },
  },

  {
    name: 'naming: who was first wins, and the other is told',
    mayFail: MAY_FAIL,
    async run(page, site) {
      await open(page, site);
      const { items } = await shown(page);
      const all = items.map(({ id }) => id);
      const done = await json(site, 'decide', NAMERS.bert, { ids: all.slice(0, 1), was: [null], name: 'Of Bert' });
      check(done.number > 0, JSON.stringify(done));
      await page.keyboard.type('Q of Anna');
      await page.keyboard.press('Enter');
      await page.locator('.problem').waitFor();
      check((await page.locator('.problem').textContent()).includes("'Of Bert'"), 'the page does not say who was first');
      equal((await json(site, `items/${all[0]}`, NAMERS.anna)).label, 'Of Bert', 'label');
      await json(site, 'undo', NAMERS.bert, {});
      equal((await json(site, `items/${all[0]}`, NAMERS.anna)).label, null, 'label after undo');
    },
  },

  {
    name: 'naming: a token that only reads sees no such view',
    mayFail: MAY_FAIL,
    async run(page, site) {
      await enter(page, site, 'reader');
      await page.getByRole('heading', { name: 'Find images like yours' }).waitFor();
      check(!(await page.locator('[data-go="name"]').isVisible()), 'a link to what is refused');
      equal((await api(site, 'decide', NAMERS.reader, { ids: [1], name: 'x' })).status, 403, 'status');
    },
  },

  {
    name: 'naming: 200 signs by keyboard',
    mayFail: MAY_FAIL,
    async run(page, site) {
      await open(page, site);
      const began = Date.now();
      let n_questions = 0;
      for (;;) {
        const now = await becomes(() => shown(page), ({ items, isDone }) => isDone || items.length > 0, 'a question');
        if (now.isDone) break;
        n_questions++;
        check(n_questions < 300, 'more questions than photos');
        await answer(page, now);
      }
      await becomes(() => page.locator('#naming-far').textContent(), '240 of 240 named', 'progress');
      console.log(`    200 signs in ${n_questions} questions and ${((Date.now() - began) / 1000).toFixed(1)} s`);
      const table = await (await api(site, 'export.csv', NAMERS.anna)).text();
      const rows = table.trim().split('\n').slice(1).map((row) => row.split(','));
      equal(rows.length, 240, 'rows');
      equal(rows.filter(([, path, label]) => path.split('/').at(-1).split('-')[0] !== label).length, 0, 'wrong names');
      equal(rows.filter(([, , , by, kind]) => by === 'anna' && kind === 'person').length, 200, 'decided by anna');
      check(/ proposals /.test(await page.locator('#naming-rate').textContent()), 'errors');
    },
  },

  {
    name: 'naming: after a reload all is there; merged, and undone',
    mayFail: MAY_FAIL,
    async run(page, site) {
      await enter(page, site);
      await page.locator('.naming .nothing').waitFor();
      await becomes(() => page.locator('#naming-far').textContent(), '240 of 240 named', 'progress');
      const before = (await json(site, 'names', NAMERS.anna)).names;
      await page.keyboard.press('m');
      await page.fill('#naming-from', before[0].name);
      await page.fill('#naming-to', before[1].name);
      await page.keyboard.press('Enter');
      await becomes(async () => (await json(site, 'names', NAMERS.anna)).names.length, before.length - 1, 'names');
      await page.locator('summary').last().click();
      await page.getByRole('button', { name: /^Undo decision/ }).first().click();
      await becomes(async () => (await json(site, 'names', NAMERS.anna)).names, before, 'names after undo');
    },
  },
];
