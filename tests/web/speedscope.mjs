// speedscope in Chromium opens a trace: it names the file, finds a profile for each thread, and complains about nothing.
import assert from 'node:assert';
import fs from 'node:fs';
import path from 'node:path';
import {serve} from './serve.mjs';

const release = path.join(import.meta.dirname, 'node_modules/speedscope/dist/release');

export async function checkSpeedscope(browser, file) {
  const trace = JSON.parse(fs.readFileSync(file, 'utf8'));
  const threads = new Set(trace.traceEvents.filter((event) => event.ph === 'X').map((event) => `${event.pid}/${event.tid}`));
  const server = await serve((name) => (name === '/trace.json' ? file : path.join(release, name)));
  const page = await browser.newPage();
  const complaints = [];
  page.on('console', (message) => {
    const driver = message.text().includes('GL Driver Message');  // of the machine, not of the trace
    if (['warning', 'error'].includes(message.type()) && !driver) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${server.url}/index.html#profileURL=${encodeURIComponent(`${server.url}/trace.json`)}`);
  try {
    // The toolbar has "rank 0 (stage 0): compute (1/24)"; of one profile it has no count.
    await page.waitForFunction((count) => document.title.startsWith('trace.json') && document.body.innerText.includes(`/${count})`), threads.size, {timeout: 120000})
      .catch(async () => assert.fail(`no ${threads.size} profiles: ${await page.evaluate(() => document.body.innerText)} ${complaints}`));
    assert.deepEqual(complaints.slice(0, 3), []);
  } finally {
    await page.close();
    server.close();
  }
}
