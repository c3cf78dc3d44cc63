// The search page in a real browser, with kith serve (KITH_PROGRAM) and with a stand-in that has faults: node run.mjs. Prints a line per case and the counts as CMocka does, so that the
// summary of the tests counts cases; exits 77 where there is no browser. KITH_SHOTS names a folder for pictures of what
// failed, KITH_CASES a part of the names to run.
import { Browser, loadTools, runCases } from './harness.mjs';
import { hasServe, makeIndex, startKith } from './kith.mjs';
import { drawPng, startMock } from './mock.mjs';
import { faultCases, tokenCases } from './fault_cases.mjs';
import { lookCases } from './look_cases.mjs';
import { explainCases, searchCases } from './search_cases.mjs';
import { sizeCases } from './size.mjs';
import { unitCases } from './unit.mjs';

const wanted = (cases) => cases.filter(({ name }) => name.includes(process.env.KITH_CASES ?? ''));

async function runPlain() {
  const failed = [];
  let n_passed = 0;
  for (const [name, run] of [...sizeCases, ...(await unitCases())]) {
    if (!name.includes(process.env.KITH_CASES ?? '')) continue;
    try {
      await run();
      n_passed++;
      console.log(`[       OK ] ${name}`);
    } catch (error) {
      failed.push(name);
      console.log(`[  FAILED  ] ${name}\n    ${error.message}`);
    }
  }
  return { n_passed, failed };
}

async function runSite(browser, tools, site, cases) {
  try {
    return await runCases(browser, site, wanted(cases), tools);
  } finally {
    await site.close();
  }
}

const pictures = { picture: drawPng(5, 120, 90), other: drawPng(40, 120, 90) };
const mockSite = async (faults, more = {}) => ({
  name: 'stand-in',
  labels: ['gull', 'tern'],
  ...pictures,
  ...more,
  ...(await startMock(faults)),
});
const kithCases = [...searchCases, ...explainCases, ...lookCases];
const mockCases = [...faultCases, ...tokenCases];
const results = [await runPlain()];
let n_skipped = 0;

function skip(cases, why) {
  n_skipped += wanted(cases).length;
  console.log(`skipped: ${why}`);
}

async function runKith(browser, tools) {
  if (!hasServe()) {
    skip([...kithCases, ...tokenCases], 'KITH_PROGRAM is not a kith with the command serve');
    return;
  }
  const index = makeIndex();
  try {
    results.push(await runSite(browser, tools, await startKith(index), kithCases));
    results.push(await runSite(browser, tools, await startKith(index, 'correct-horse-battery-staple'), tokenCases));
  } finally {
    index.remove();
  }
}

let tools = null, browser = null;
try {
  tools = await loadTools();
  browser = new Browser(tools.chromium);
  await browser.open();
} catch (error) {
  tools = null;
  skip([...kithCases, ...tokenCases, ...mockCases], error.message);
}
if (tools) {
  await runKith(browser, tools);
  results.push(await runSite(browser, tools, await mockSite({}), faultCases));
  results.push(await runSite(browser, tools, await mockSite({ token: 'secret' }, { token: 'secret' }), tokenCases));
  await browser.close();
}
const failed = results.flatMap((result) => result.failed);
console.log(`[  PASSED  ] ${results.reduce((n, { n_passed }) => n + n_passed, 0)} test(s).`);
if (n_skipped > 0) console.log(`[  SKIPPED ] ${n_skipped} test(s).`);
if (failed.length > 0) console.log(`[  FAILED  ] ${failed.length} test(s), listed below:\n${failed.join('\n')}`);
process.exit(failed.length > 0 ? 1 : 0);
