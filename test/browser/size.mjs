// The page's files: under 100 kB together, nothing from elsewhere, nothing that the Content-Security-Policy refuses.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { check } from './harness.mjs';

const FOLDER = fileURLToPath(new URL('../../src/serve/page/', import.meta.url));
const MOST_BYTES = 100000;
const files = readdirSync(FOLDER)
  .filter((name) => /\.(html|css|js)$/.test(name))
  .map((name) => ({ name, bytes: readFileSync(FOLDER + name) }));
const text = ({ bytes }) => bytes.toString();
// The views that app.js loads when they are opened, with their styles.
const [, views] = /const VIEWS = \{(.*)\}/.exec(text(files.find(({ name }) => name === 'app.js')));
const later = [...views.matchAll(/(\w+):/g)].map(([, view]) => view);
const isLater = ({ name }) => later.includes(name.split('.')[0]);
const MOST_LATER_BYTES = 25000;
const sumOf = (some) => some.reduce((n, { bytes }) => n + bytes.length, 0);

export const sizeCases = [
  [
    'the page is under 100 kB',
    () => {
      const sum = sumOf(files.filter((file) => !isLater(file)));
      check(sum < MOST_BYTES, `found ${sum} bytes, wanted fewer than ${MOST_BYTES}`);
    },
  ],
  [
    'what is loaded when a view is opened is under 25 kB',
    () => {
      check(later.length === 2 && files.some(isLater), `found the views ${later}`);
      const sum = sumOf(files.filter(isLater));
      check(sum < MOST_LATER_BYTES, `found ${sum} bytes, wanted fewer than ${MOST_LATER_BYTES}`);
    },
  ],
  [
    'nothing comes from elsewhere',
    () => {
      for (const file of files)
        for (const [url] of text(file)
          .replaceAll('http://www.w3.org/2000/svg', '')
          .matchAll(/\b(https?:)?\/\/[a-z0-9.-]+\.[a-z]{2,}[^\s'"`)]*/gi))
          throw new Error(`${file.name}: ${url}`);
    },
  ],
  [
    'no markup from strings, no script or style inside the markup',
    () => {
      for (const file of files) {
        const found = text(file).match(
          file.name.endsWith('.html')
            ? /<script(?! type="module" src=)|<style|\sstyle=|\son\w+=/i
            : /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\('style'/,
        );
        check(!found, `${file.name}: ${found?.[0]}`);
      }
    },
  ],
];
