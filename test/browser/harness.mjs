// Cases in a browser: each gets a fresh page, and fails on any JavaScript error, on anything the Content-Security-Policy
// refused, and on any request to elsewhere.
import { existsSync } from 'node:fs';

const LIMIT_MS = 60000; // the machine may be busy with other tests

export const CHROMIUM = [process.env.KITH_CHROMIUM, '/usr/bin/chromium'].find((path) => path && existsSync(path));

export async function loadTools() {
  if (!CHROMIUM) throw new Error('no chromium: scripts/setup.sh browser installs it');
  try {
    const { chromium } = await import('playwright-core');
    const { AxeBuilder } = await import('@axe-core/playwright');
    return { chromium, AxeBuilder };
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('no playwright-core or @axe-core/playwright: scripts/setup.sh browser installs them');
  }
}

// As root, as in a container, Chromium's sandbox cannot be had; the flags behind it let Chromium run on small machines.
export function launch(chromium) {
  return chromium.launch({
    executablePath: CHROMIUM,
    timeout: LIMIT_MS,
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', '--enable-features=NetworkServiceInProcess'],
  });
}

export function equal(found, wanted, what) {
  const [a, b] = [found, wanted].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`${what}: found ${a}, wanted ${b}`);
}

export function check(is, what) {
  if (!is) throw new Error(what);
}

// Until `look` gives what is wanted; says both values otherwise.
export async function becomes(look, wanted, what) {
  const until = Date.now() + LIMIT_MS / 2;
  const isRight = typeof wanted === 'function' ? wanted : (value) => JSON.stringify(value) === JSON.stringify(wanted);
  for (;;) {
    const found = await look();
    if (isRight(found)) return found;
    if (Date.now() > until)
      throw new Error(
        `${what}: found ${JSON.stringify(found)}, wanted ${typeof wanted === 'function' ? wanted : JSON.stringify(wanted)}`,
      );
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

// Chromium, started anew when it has ended by itself.
export class Browser {
  constructor(chromium) {
    this.chromium = chromium;
  }

  async open() {
    if (!this.one?.isConnected()) this.one = await launch(this.chromium);
    return this.one;
  }

  async close() {
    await this.one?.close().catch(() => {});
  }
}

// One case in a window of its own: what was wrong, or null.
async function attempt(browser, site, { name, run, context = {}, mayFail = null }, tools) {
  const errors = [];
  let place = null, page = null;
  try {
    place = await (await browser.open()).newContext({ viewport: { width: 1360, height: 860 }, ...context });
    page = await place.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    page.on('pageerror', (error) => errors.push(`JavaScript error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' && !mayFail?.test(message.text())) errors.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (!['blob:', 'data:'].includes(url.protocol) && url.origin !== new URL(site.url).origin)
        errors.push(`a request to elsewhere: ${url}`);
    });
    await run(page, site, tools);
    equal(errors, [], 'errors');
    return null;
  } catch (error) {
    if (process.env.KITH_SHOTS && page)
      await page.screenshot({ path: `${process.env.KITH_SHOTS}/${name.replace(/\W+/g, '-')}.png` }).catch(() => {});
    return [...error.message.split('\n').slice(0, 12), ...errors].join('\n    ');
  } finally {
    await place?.close().catch(() => {});
  }
}

// Runs the cases of one site: [{name, run(page, site, tools), context: options of the page, mayFail: RegExp of console
// errors that belong to the case}]. Chromium misses a moment now and then on a machine that is busy: a case has failed when it
// fails twice. Returns how many passed and failed.
export async function runCases(browser, site, cases, tools) {
  let n_passed = 0;
  const failed = [];
  for (const one of cases) {
    let wrong = await attempt(browser, site, one, tools);
    if (wrong !== null) {
      console.log(`once more: ${site.name}: ${one.name}\n    ${wrong}`);
      wrong = await attempt(browser, site, one, tools);
    }
    if (wrong === null) n_passed++;
    else failed.push(one.name);
    console.log(`${wrong === null ? '[       OK ]' : '[  FAILED  ]'} ${site.name}: ${one.name}${wrong === null ? '' : `\n    ${wrong}`}`);
  }
  return { n_passed, failed };
}

// ---- what people do ----

export const cards = (page) => page.locator('#found .grid:not(.waiting) .card');
export const ids = (page) => cards(page).evaluateAll((all) => all.map((card) => Number(card.dataset.id)));

export async function settled(page) {
  await page.waitForFunction(
    () =>
      document.querySelector('#found .grid:not(.waiting) .card, #found .nothing, .problem') &&
      !document.querySelector('#found[aria-busy]'),
  );
}

export const fileOf = (buffer, name = 'query.png', type = 'image/png') => ({ name, mimeType: type, buffer });

export async function choose(page, file) {
  await page.setInputFiles('#choose', file);
  await settled(page);
}

// A paste or a drop with files, as the browser gives it to the page.
export function transfer(page, kind, selector, { name, mimeType, buffer }) {
  return page.evaluate(
    ({ kind: type, selector: at, name: fileName, mimeType: fileType, bytes }) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], fileName, { type: fileType }));
      const target = document.querySelector(at);
      if (type === 'paste') {
        target.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        return;
      }
      for (const step of ['dragenter', 'dragover'])
        target.dispatchEvent(new DragEvent(step, { dataTransfer: data, bubbles: true, cancelable: true }));
      const zone = [...document.querySelectorAll('#drop .zone')].find((one) => one.dataset.how === type);
      zone.dispatchEvent(new DragEvent('dragover', { dataTransfer: data, bubbles: true, cancelable: true }));
      zone.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
    },
    { kind, selector, name, mimeType, bytes: [...buffer] },
  );
}

// Rules of WCAG 2.2 A and AA and of good practice. Chromium's page of violations would be long: id, how many, where.
export async function noViolations(page, AxeBuilder, where) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  equal(
    violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .map((node) => node.target)
          .join(' | ')
          .slice(0, 300)}`,
    ),
    [],
    `axe, ${where}`,
  );
}

export async function noOverflow(page) {
  equal(
    await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    0,
    'pixels that stick out to the right',
  );
}
