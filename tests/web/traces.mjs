// Traces of the shipped jobs, read by the programs that they are for: node traces.mjs PROGRAM [JOB ...]. Without jobs: all. The rules are asked of
// the first and last rank's own file and, with the DevTools parser and speedscope, of timeline.json where it is of a size that they and a patient
// reader stand; where it is not, DevTools and speedscope read the first rank's, as much of it from its beginning as speedscope stands. The exit
// code is 0 only when every reader agrees with every file that it gets.
import assert from 'node:assert';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import {launch} from './browser.mjs';
import {checkDevTools} from './devtools.mjs';
import {checkJoint, checkRank} from './rules.mjs';
import {checkSpeedscope} from './speedscope.mjs';

const MB = 1e6;
const mostForParsers = 30 * MB;
const mostForSpeedscope = 12 * MB;

const [program, ...named] = process.argv.slice(2);
const shipped = fs.readdirSync(path.join(import.meta.dirname, '../../workloads/jobs')).filter((file) => file.endsWith('.yaml')).map((file) => path.parse(file).name);
const jobs = named.length > 0 ? named : shipped;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rehearse-traces-'));
const browser = await launch();

// Exit code 1: the job does not fit, which is no matter here.
function simulate(job, out) {
  const made = spawnSync(program, ['simulate', job, '-o', out, '--trace-per-rank', path.join(out, 'ranks'), '--trace-gzip'], {encoding: 'utf8'});
  assert(made.status === 0 || made.status === 1, made.stderr ?? made.error);
}

// The first rank's file is left unpacked beside the others.
function checkRankFiles(out) {
  const rankOf = (name) => Number(/^rank(\d+)\.json\.gz$/.exec(name)[1]);
  const names = fs.readdirSync(path.join(out, 'ranks')).sort((a, b) => rankOf(a) - rankOf(b));
  for (const name of [...new Set([names.at(-1), names[0]])]) {
    const text = zlib.gunzipSync(fs.readFileSync(path.join(out, 'ranks', name))).toString();
    checkRank(JSON.parse(text), text, rankOf(name));
    if (name === names[0]) fs.writeFileSync(path.join(out, 'rank.json'), beginning(text, mostForSpeedscope));
  }
  return names.length;
}

// The beginning of a trace, of about so many characters.
function beginning(text, most) {
  if (text.length <= most) return text;
  const trace = JSON.parse(text);
  const end = (event) => event.ts + (event.dur ?? 0);
  const last = trace.traceEvents.reduce((most, event) => ('ts' in event ? Math.max(most, end(event)) : most), 0) * most / text.length;
  return JSON.stringify({...trace, traceEvents: trace.traceEvents.filter((event) => !('ts' in event) || end(event) <= last)});
}

async function check(job) {
  const out = path.join(folder, job);
  simulate(job, out);
  const said = [`rules on ${checkRankFiles(out)} ranks' files`];
  const joint = path.join(out, 'timeline.json');
  const size = (file) => fs.statSync(file).size;
  if (size(joint) <= mostForParsers) {
    const text = fs.readFileSync(joint, 'utf8');
    checkJoint(JSON.parse(text), text);
    said.push('rules');
  }
  const fileFor = (most) => (size(joint) <= most ? joint : path.join(out, 'rank.json'));
  const parsed = fileFor(mostForParsers), opened = fileFor(mostForSpeedscope);
  await checkDevTools(JSON.parse(fs.readFileSync(parsed, 'utf8')));
  await checkSpeedscope(browser, opened);
  said.push(`DevTools on ${path.basename(parsed)}`, `speedscope on ${path.basename(opened)} (${(size(opened) / MB).toFixed(1)} MB)`);
  console.log(`${job} (${(size(joint) / MB).toFixed(0)} MB): ${said.join(', ')}`);
}

let failed = 0;
for (const job of jobs) {
  try {
    await check(job);
  } catch (error) {
    ++failed;
    console.log(`${job}: ${error.stack.slice(0, 2000)}`);
  }
  fs.rmSync(path.join(folder, job), {recursive: true, force: true});
}
await browser.close();
fs.rmSync(folder, {recursive: true});
console.log(`${jobs.length - failed} of ${jobs.length} jobs`);
process.exit(failed === 0 ? 0 : 1);
