// The search page in a real browser, with kith serve (KITH_PROGRAM) and with a stand-in that has faults: node run.mjs in this
// folder. Prints a line per case and the counts as CMocka does, so that the summary of the tests counts cases. Fails without
// what scripts/setup.sh browser installs. KITH_SHOTS names a folder for pictures of what failed, KITH_CASES a part of the
// names to run.
import { execSync } from 'node:child_process';
import { Browser, loadTools, runCases } from './harness.mjs';
import { makeIndex, makeNameless, startKith, startNaming } from './kith.mjs';
import { drawPng, startMock } from './mock.mjs';
import { faultCases, tokenCases } from './fault_cases.mjs';
import { lookCases } from './look_cases.mjs';
import { nameCases } from './name_cases.mjs';
import { indexingCases, photosCases } from './progress_cases.mjs';
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
const results = [await runPlain()];

let tools = null;
try {
  tools = await loadTools();
} catch (error) {
  console.log(error.message);
  process.exit(1);
}
const browser = new Browser(tools.chromium);
await browser.open();
const index = makeIndex();
try {
  const kithCases = [...searchCases, ...explainCases, ...lookCases];
  results.push(await runSite(browser, tools, await startKith(index), kithCases));
  results.push(await runSite(browser, tools, await startKith(index, null, 'signs'), photosCases));
  results.push(await runSite(browser, tools, await startKith(index, 'correct-horse-battery-staple'), tokenCases));
} finally {
  index.remove();
}
const nameless = makeNameless();
try {
  results.push(await runSite(browser, tools, await startNaming(nameless), nameCases));
} finally {
  nameless.remove();
}
results.push(await runSite(browser, tools, await mockSite({}), faultCases));
results.push(await runSite(browser, tools, await mockSite({}), indexingCases));
results.push(await runSite(browser, tools, await mockSite({ token: 'secret' }, { token: 'secret' }), tokenCases));
await browser.close();

const failed = results.flatMap((result) => result.failed);
const n_passed = results.reduce((n, result) => n + result.n_passed, 0);
const n_counted = Number(execSync('awk -f count.awk ./*.mjs'));
if (!process.env.KITH_CASES && n_counted !== n_passed + failed.length)
  failed.push(`count.awk, by which make test names the cases it skips: ${n_counted}, but ${n_passed + failed.length} ran`);
console.log(`[  PASSED  ] ${n_passed} test(s).`);
if (failed.length > 0) console.log(`[  FAILED  ] ${failed.length} test(s), listed below:\n${failed.join('\n')}`);
process.exit(failed.length > 0 ? 1 : 0);
