// kith serve over an index of drawn signs: what the stand-in cannot show, namely that page and server understand each
// other.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PROGRAM = process.env.KITH_PROGRAM;
const LIMIT_MS = 120000;

// 12 classes of 6 signs through a small network with random weights, false-match rates, one file that is there twice.
export function makeIndex() {
  const folder = mkdtempSync(join(tmpdir(), 'kith-browser-'));
  const kith = (...words) =>
    execFileSync(PROGRAM, words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], timeout: LIMIT_MS });
  kith('synth', 'signs', '--classes', '12', '--images', '6', '--colour', '--background');
  copyFileSync(join(folder, 'signs/glyph00001/00002.png'), join(folder, 'signs/glyph00001/copy.png'));
  kith(
    'embed',
    '--backbone',
    'convnet4',
    '--embedding',
    '32',
    '--seed',
    '1',
    '--generate',
    '2',
    '--save',
    'model.safetensors',
  );
  kith('index', 'signs', '-o', 'signs.kith', '--model', 'model.safetensors');
  kith('index', 'signs.kith', '--calibrate', 'signs');
  return {
    folder,
    picture: readFileSync(join(folder, 'signs/glyph00003/00001.png')),
    other: readFileSync(join(folder, 'signs/glyph00007/00002.png')),
    labels: ['glyph00002', 'glyph00005'],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

// 200 signs without a name, and 4 of each of 10 names: what is drawn is the beginning of the file's name.
export function makeNameless() {
  const folder = mkdtempSync(join(tmpdir(), 'kith-names-'));
  const kith = (...words) =>
    execFileSync(PROGRAM, words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], timeout: LIMIT_MS });
  kith('synth', 'drawn', '--classes', '10', '--images', '24', '--colour');
  for (const kind of readdirSync(join(folder, 'drawn')))
    readdirSync(join(folder, 'drawn', kind)).forEach((file, i) => {
      const to = join(folder, 'signs', i < 4 ? kind : '');
      mkdirSync(to, { recursive: true });
      copyFileSync(join(folder, 'drawn', kind, file), join(to, `${kind}-${file}`));
    });
  kith('index', 'signs', '-o', 'signs.kith');
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export const NAMERS = { anna: 'anna-correct-horse-battery', bert: 'bert-correct-horse-battery', reader: 'reader-correct-horse' };

export async function startNaming(index) {
  const lines = `write anna ${NAMERS.anna}\nwrite bert ${NAMERS.bert}\nread-only ${NAMERS.reader}\n`;
  writeFileSync(join(index.folder, 'tokens'), lines, { mode: 0o600 });
  return start(index, ['serve', 'signs.kith', '--port', '0', '--rate', '1000', '--burst', '1000', '--edit', '--token-file', 'tokens'], NAMERS.anna);
}

// The server says where it is when it is ready. token: one that it asks for. what: the index, or the folder of photos.
export async function startKith(index, token = null, what = 'signs.kith') {
  const words = ['serve', what, '--port', '0', '--rate', '1000', '--burst', '1000'];
  if (what === 'signs') words.push('--model', 'model.safetensors', '--cache', 'cache', '--rescan', '1');
  if (token) {
    writeFileSync(join(index.folder, 'tokens'), `token ${token}\n`, { mode: 0o600 });
    words.push('--token-file', 'tokens');
  }
  return start(index, words, token);
}

async function start(index, words, token) {
  const server = spawn(PROGRAM, words, { cwd: index.folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  const url = await new Promise((resolve, reject) => {
    server.stderr.on('data', (data) => {
      said += data;
      const found = said.match(/ at (http:\/\/\S+)/);
      if (found) resolve(found[1]);
    });
    server.on('exit', (code) => reject(new Error(`kith serve ended with status ${code}: ${said}`)));
  });
  const ended = new Promise((resolve) => {
    server.on('exit', resolve);
  });
  const info = token ? {} : await (await fetch(`${url}api/v1/info`)).json();
  return {
    name: 'kith serve',
    url,
    token,
    canExplain: info.can_explain,
    ...index,
    close: async () => {
      server.kill('SIGTERM');
      await ended;
    },
  };
}
