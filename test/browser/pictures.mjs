// Makes the pictures of the page for the documentation: node pictures.mjs WEIGHTS [OUT]
// WEIGHTS are GoogLeNet's (docs/model-files.md says where to get them); OUT is docs/pictures. KITH_PROGRAM is kith.
// The collection is drawn (birds.mjs), so that the pictures belong to nobody else.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawBirds } from './birds.mjs';
import { becomes, launch, loadTools, settled } from './harness.mjs';
import { startKith } from './kith.mjs';

const weights = resolve(process.argv[2]);
const out = resolve(process.argv[3] ?? fileURLToPath(new URL('../../docs/pictures/', import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), 'kith-pictures-'));
const kith = (...words) =>
  execFileSync(process.env.KITH_PROGRAM, words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
const PLACES = ['garden', 'forest', 'lake', 'meadow'];

// Vectors with a table beside them, so that there are columns to filter by.
async function makeIndex(page) {
  await drawBirds(page, 16, (path, bytes) => {
    mkdirSync(dirname(join(folder, 'birds', path)), { recursive: true });
    writeFileSync(join(folder, 'birds', path), bytes);
  });
  for (const [from, to] of [
    ['robin/0003', 'robin/0003-copy'],
    ['wren/0165', 'wren/garden-wren'],
    ['siskin/0101', 'siskin/old-0101'],
  ])
    copyFileSync(join(folder, `birds/${from}.jpg`), join(folder, `birds/${to}.jpg`));
  kith('embed', weights, 'birds', '--backbone', 'googlenet', '-o', 'birds.npy', '--save', 'model.safetensors');
  const [paths, labels] = ['paths', 'labels'].map((name) =>
    readFileSync(join(folder, `birds.${name}.txt`), 'utf8')
      .trim()
      .split('\n'),
  );
  const rows = paths.map((path, i) =>
    [path, labels[i].replace('-', ' '), PLACES[(i * 7 + 3) % 4], 2019 + ((i * 5) % 7)].join(','),
  );
  writeFileSync(join(folder, 'items.csv'), `path,label,place,year\n${rows.join('\n')}\n`);
  kith('index', 'birds.npy', '-o', 'signs.kith', '--meta', 'items.csv', '--model', 'model.safetensors');
  kith('index', 'signs.kith', '--calibrate', 'birds');
  return (path) => paths.indexOf(`birds/${path}.jpg`);
}

const { chromium } = await loadTools();
const browser = await launch(chromium);
const idOf = await makeIndex(await browser.newPage());
const site = await startKith({ folder });

async function shoot(name, search, context, act = async () => {}) {
  const place = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...context });
  const page = await place.newPage();
  page.setDefaultTimeout(60000);
  // The second time is what people see who use it: the first search makes the network's kernels.
  for (let i = 0; i < 2; i++) {
    await page.goto(site.url + search);
    await settled(page);
  }
  await act(page);
  await becomes(
    () =>
      page.evaluate(
        () =>
          [...document.querySelectorAll('.card .thumb:not(.none)')].filter(
            (thumb) => !thumb.classList.contains('there'),
          ).length,
      ),
    0,
    'pictures to come',
  );
  await page.waitForTimeout(600); // they fade in
  await page.screenshot({ path: join(out, name), type: 'jpeg', quality: 88 });
  await place.close();
}

const why = async (page) => {
  await page.locator('.card').nth(2).hover();
  await page.locator('.card').nth(2).getByRole('button', { name: /^Why / }).click();
  await becomes(() => page.locator('dialog .heat').count(), 2, 'maps');
  await page.mouse.move(5, 5);
  await page.evaluate(() => document.activeElement.blur());
};
const kingfisher = idOf('kingfisher/0023'),
  siskin = idOf('siskin/0098'),
  goldfinch = idOf('goldfinch/0036');
await shoot('serve-light.jpg', `?like=${kingfisher}@110,30,330,290&same=0.05`, {});
await shoot(
  'serve-dark.jpg',
  `?like=${siskin}&like=${goldfinch}&unlike=${idOf('robin/0007')}&is.place=garden&is.place=lake&is.place=forest`,
  { colorScheme: 'dark' },
);
await shoot('serve-phone.jpg', `?like=${kingfisher}`, {
  viewport: { width: 400, height: 860 },
  hasTouch: true,
  isMobile: true,
  deviceScaleFactor: 1.5,
});
await shoot('serve-why.jpg', `?like=${idOf('robin/0003')}`, {}, why);

await browser.close();
await site.close();
rmSync(folder, { recursive: true, force: true });
