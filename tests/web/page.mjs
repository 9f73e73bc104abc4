// report.html in Chromium: node page.mjs PROGRAM [FOLDER for pictures]. Of each kind of report: result.json keeps to its schema (ajv), nothing on the console, no request but the file's
// own, every number as result.json has it, bars that add up to the step, nothing wider than a phone, no finding of axe-core in light and dark,
// tables that sort and search by keyboard, all sections in print, and names out of a user's file as text.
import assert from 'node:assert';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {HtmlValidate} from 'html-validate';
import Ajv from 'ajv/dist/2020.js';
import {launch} from './browser.mjs';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [program, pictures] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rehearse-page-'));
const keepsToSchema = new Ajv.Ajv2020({allErrors: true, allowUnionTypes: true})
  .compile(JSON.parse(fs.readFileSync(path.join(import.meta.dirname, '../../docs/result.schema.json'), 'utf8')));
const hostile = '</script><img src=x onerror=alert(1)>"&\'';
const jobs = path.join(import.meta.dirname, '../../workloads/jobs');

function hostileJob() {
  const file = path.join(folder, 'hostile.yaml');
  fs.writeFileSync(file, `name: ${JSON.stringify(hostile)}\n${fs.readFileSync(path.join(jobs, 'llama3-8b-8-h100.yaml'), 'utf8').replace(/^name:.*\n/m, '')}`);
  return file;
}

const reports = {
  compare: ['compare', 'llama2-70b-128-a100'],
  hostile: ['simulate', hostileJob()],
  failure: ['simulate', 'llama3-8b-8-h100', '--fault', 'gpu 5 at 1 s'],
  alone: ['simulate', 'dgx-h100-ndr400', '--gpus', '16', '--collective', 'all-reduce', '--size', '1MiB..1GiB'],
  explain: ['explain', 'llama3-8b-8-h100'],
  history: ['run', 'llama3-405b-54-days'],
  seeds: ['run', 'llama3-405b-54-days', '--runs', '20', '--set', 'training.time=5 days'],
  round: ['compare', 'raspberry-pis-4', '--methods', 'all'],
  rounds: ['run', 'phones-200'],
  serving: ['compare', 'serve-llama3-70b-two-types'],
  deployments: ['tune', 'serve-llama3-70b-two-types', '--set', 'tune={goal: [cost, tpot], inventory: {rich: 8, wide: 16}, price: {rich: 3 /h, wide: 1 /h}}'],
  tune: ['tune', 'llama2-70b-128-a100', '--confirm', '2', '--goal', 'step,memory'],
  nothing: ['tune', hostileJob(), '--memory', '0.01', '--space', 'batch.micro=1,2'],
};

const sections = {
  compare: ['step', 'phases', 'timeline', 'memory', 'collectives', 'comparison', 'job'],
  hostile: ['step', 'phases', 'timeline', 'memory', 'collectives', 'job'],
  failure: ['failure', 'timeline', 'job'],
  alone: ['collectives-alone'],
  explain: ['step', 'phases', 'memory', 'features', 'job'],
  history: ['whole-job', 'losses', 'job'],
  seeds: ['whole-job', 'seeds', 'job'],
  round: ['federated-round', 'federated-methods', 'job'],
  rounds: ['federated-rounds', 'job'],
  serving: ['serving', 'serving-comparison', 'job'],
  deployments: ['serving-tune', 'serving-front', 'job'],
  tune: ['tune-best', 'tune-front', 'tune-keys', 'tune-points', 'job'],
  nothing: ['tune-best', 'tune-points', 'job'],
};

function write(name) {
  const out = path.join(folder, name);
  const made = spawnSync(program, [...reports[name], '-o', out, '--html'], {encoding: 'utf8'});
  assert(made.status === 0 || made.status === 1, made.stderr);
  const page = fs.readFileSync(path.join(out, 'report.html'), 'utf8');
  // A folder says the same as the command that wrote it.
  fs.rmSync(path.join(out, 'report.html'));
  const again = spawnSync(program, ['report', out], {encoding: 'utf8'});
  assert.equal(again.status, 0, again.stderr);
  assert.equal(fs.readFileSync(path.join(out, 'report.html'), 'utf8'), page);
  assert(page.length < 400000, `${page.length} bytes`);
  return out;
}

function atPointer(json, pointer) {
  return pointer.split('/').slice(1).reduce((value, part) => value[part.replaceAll('~1', '/').replaceAll('~0', '~')], json);
}

// "21454.2 ms" as seconds, "37.2 GiB" as bytes, ...; as good as its digits.
const units = {
  ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400, day: 86400, weeks: 604800, years: 31557600,
  B: 1, KiB: 1024, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, '%': 0.01, 'GB/s': 1e9, '/h': 1 / 3600, 'TFLOP/s': 1e12,
};
function assertText(text, value, pointer) {
  const [number, unit] = text.split(' ');
  const nanoseconds = pointer.includes('_ns') ? 1e9 : 1;
  assert(unit === undefined || unit in units, `${pointer}: unit of '${text}'`);
  const scale = (unit === undefined ? 1 : units[unit]) * nanoseconds;
  const digit = 10 ** -(number.split('.')[1]?.length ?? 0);
  const significant = number.includes('e') ? Math.abs(value) * 1e-3 : 0;
  assert(Math.abs(Number(number) * scale - value) <= digit * scale * 0.51 + significant + 1e-9 * Math.abs(value) + (unit ? 0 : Math.abs(value) * 1e-3),
    `${pointer}: '${text}' for ${value}`);
}

async function checkNumbers(page, out, name) {
  if (!fs.existsSync(path.join(out, 'result.json'))) return null;
  const result = JSON.parse(fs.readFileSync(path.join(out, 'result.json'), 'utf8'));
  assert(keepsToSchema(result), JSON.stringify(keepsToSchema.errors?.slice(0, 3)));
  const numbers = await page.$$eval('data[data-at]', (all) => all.map((one) => [one.dataset.at, one.value, one.textContent]));
  assert(numbers.length > 2, `${numbers.length} numbers`);
  for (const [pointer, value, text] of numbers) {
    assert.equal(Number(value), atPointer(result, pointer), pointer);
    assertText(text, Number(value), pointer);
  }
  for (const [from, value] of await page.$$eval('data[data-from]', (all) => all.map((one) => [one.dataset.from, one.value]))) {
    if (from.startsWith('worse ')) {
      const [, plan, best] = from.split(' ');
      assert(Math.abs(Math.abs(atPointer(result, plan) / atPointer(result, best) - 1) - Number(value)) < 1e-12, from);
      continue;
    }
    const [, list, rest] = /^mean (.*)\/\*(.*)$/.exec(from);
    const values = atPointer(result, list).map((one) => atPointer(one, rest));
    const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
    assert(Math.abs(mean - Number(value)) <= 1e-9 * Math.abs(mean), from);
  }
  return result;
}

async function checkBars(page, result) {
  const bars = await page.$$eval('#phases svg g[data-bar]', (all) => all.map((bar) => ({
    name: bar.dataset.bar,
    scale: Number(bar.ownerSVGElement.dataset.scale),
    width: [...bar.querySelectorAll('rect')].reduce((sum, rect) => sum + Number(rect.getAttribute('width')), 0),
  })));
  for (const bar of bars) {
    const method = bar.name.split(', ')[1];
    assert(Math.abs(bar.width - bar.scale * result.results[method].step_s) < 1, `${bar.name} is ${bar.width} wide`);
  }
  return bars.length;
}

// Bars of plans add up to their steps; those of keys are as long as their best plans are worse than the best of all.
async function checkTuneBars(page, result) {
  const plans = await page.$$eval('#tune-best svg g[data-bar]', (all) => all.map((bar) =>
    [...bar.querySelectorAll('rect')].reduce((sum, rect) => sum + Number(rect.getAttribute('width')), 0) / Number(bar.ownerSVGElement.dataset.scale)));
  assert.equal(plans.length, result.tune.best.length);
  plans.forEach((seconds, i) => assert(Math.abs(seconds - result.tune.best[i].step_s) < 2e-3 * seconds, `plan ${i + 1}: ${seconds}`));
  const values = await page.$$eval('#tune-keys svg rect[data-worse]', (all) => all.map((rect) =>
    [rect.dataset.worse, Number(rect.getAttribute('width')) / Number(rect.ownerSVGElement.dataset.scale)]));
  const best = result.tune.best[0].goals[result.tune.goal[0]];
  for (const [pointer, share] of values) assert(Math.abs(share - Math.abs(atPointer(result, pointer) / best - 1)) < 1e-4, pointer);
  const points = await page.locator('#tune-front svg circle').count();
  assert.equal(points, result.tune.front.length);
}

async function checkTables(page) {
  const table = page.locator('table.sortable').first();
  if (await table.count() === 0) return;
  const button = table.locator('th button').nth(1);
  await button.focus();
  await page.keyboard.press('Enter');
  const column = () => table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => Number(row.cells[1].querySelector('data')?.value ?? NaN)));
  const numeric = !(await column()).some(Number.isNaN);
  if (numeric) assert.deepEqual(await column(), (await column()).sort((a, b) => b - a));
  await page.keyboard.press('Enter');
  if (numeric) assert.deepEqual(await column(), (await column()).sort((a, b) => a - b));
  const search = page.locator('input.search').first();
  if (await search.count() === 0) return;
  const searched = page.locator('input.search + .frame tbody').first();
  await search.fill('no row has this');
  assert.equal(await searched.locator('tr:visible').count(), 0);
  await search.fill('');
  assert(await searched.locator('tr:visible').count() >= 8);
}

async function checkAxe(page, scheme) {
  await page.emulateMedia({colorScheme: scheme});
  const {violations} = await page.evaluate(() => globalThis.axe.run(document));
  const found = violations.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)} ${one.nodes[0].failureSummary}`);
  assert(found.length === 0, `${scheme}: ${found.join('; ')}`);
}

async function checkPage(browser, name) {
  const out = write(name);
  const url = pathToFileURL(path.join(out, 'report.html')).href;
  const context = await browser.newContext({viewport: {width: 1200, height: 900}, bypassCSP: false});
  const page = await context.newPage();
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('dialog', (dialog) => { said.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => { if (request.url() !== url) said.push(`request ${request.url()}`); });
  await page.goto(url);
  assert.deepEqual(await page.$$eval('main > section', (all) => all.map((one) => one.id)), sections[name]);
  const result = await checkNumbers(page, out, name);
  if (sections[name].includes('phases')) assert(await checkBars(page, result) > 0);
  if (sections[name].includes('tune-front')) await checkTuneBars(page, result);
  await checkTables(page);
  if (['hostile', 'nothing'].includes(name)) assert.equal(await page.locator('h1').textContent(), hostile);
  if (pictures) await takePictures(page, name);
  await page.setViewportSize({width: 320, height: 640});
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= 320), 'wider than 320 pixels');
  await page.setViewportSize({width: 1200, height: 900});
  assert.deepEqual(said, []);
  // axe is put in from outside, which the page's policy refuses to scripts: another context, without the policy.
  const open = await (await browser.newContext({viewport: {width: 1200, height: 900}, bypassCSP: true})).newPage();
  await open.goto(url);
  await open.evaluate(axe);
  for (const scheme of ['light', 'dark']) await checkAxe(open, scheme);
  await open.context().close();
  const pdf = await page.pdf();
  assert(pdf.length > 10000);
  await page.emulateMedia({media: 'print'});
  for (const id of sections[name]) assert(await page.locator(`#${id} h2`).isVisible(), `${id} is not printed`);
  await context.close();
  const report = await new HtmlValidate({extends: ['html-validate:standard'], rules: {'no-inline-style': 'off', 'long-title': 'off', 'require-sri': 'off'}})
    .validateFile(path.join(out, 'report.html'));
  assert.deepEqual(report.results.flatMap((one) => one.messages).filter((one) => one.severity === 2).map((one) => `${one.line}: ${one.ruleId}: ${one.message}`).slice(0, 5), []);
  console.log(`${name}: ${fs.statSync(path.join(out, 'report.html')).size} bytes, ${sections[name].length} sections`);
}

async function takePictures(page, name) {
  fs.mkdirSync(pictures, {recursive: true});
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme: scheme});
    await page.screenshot({path: path.join(pictures, `${name}-${scheme}.png`), fullPage: true});
  }
  await page.emulateMedia({colorScheme: 'light'});
}

const browser = await launch();
let failed = 0;
for (const name of Object.keys(reports)) {
  try {
    await checkPage(browser, name);
  } catch (error) {
    ++failed;
    console.log(`${name}: ${error.stack.slice(0, 1500)}`);
  }
}
await browser.close();
fs.rmSync(folder, {recursive: true});
process.exit(failed === 0 ? 0 : 1);
