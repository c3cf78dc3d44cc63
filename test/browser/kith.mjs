// kith serve over an index of drawn signs: what the stand-in cannot show, namely that page and server understand each
// other.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

// The server says where it is when it is ready. token: one that it asks for. what: the index, or the folder of photos.
export async function startKith(index, token = null, what = 'signs.kith') {
  const words = ['serve', what, '--port', '0', '--rate', '1000', '--burst', '1000'];
  if (what === 'signs') words.push('--model', 'model.safetensors', '--cache', 'cache', '--rescan', '1');
  if (token) {
    writeFileSync(join(index.folder, 'tokens'), `token ${token}\n`, { mode: 0o600 });
    words.push('--token-file', 'tokens');
  }
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
