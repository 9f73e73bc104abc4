// Traces of the shipped jobs, read by the programs that they are for: node traces.mjs PROGRAM [JOB ...]. Without jobs: all. Rules and the
// DevTools parser read timeline.json as far as it is of a size that node and a patient reader stand, and the first and last rank's own file
// always; speedscope opens what takes it a second or two. The exit code is 0 only when every reader agrees with every file that it gets.
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
const shipped = fs.readdirSync(path.join(import.meta.dirname, '../../workloads/jobs')).map((file) => path.parse(file).name);
const jobs = named.length > 0 ? named : shipped;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rehearse-traces-'));
const browser = await launch();

// Exit code 1: the job does not fit, which is no matter here.
function simulate(job, out) {
  const made = spawnSync(program, ['simulate', job, '-o', out, '--trace-per-rank', path.join(out, 'ranks'), '--trace-gzip'], {encoding: 'utf8'});
  assert(made.status === 0 || made.status === 1, made.stderr ?? made.error);
}

function checkRankFiles(out) {
  const rankOf = (name) => Number(/^rank(\d+)\.json\.gz$/.exec(name)[1]);
  const names = fs.readdirSync(path.join(out, 'ranks')).sort((a, b) => rankOf(a) - rankOf(b));
  for (const name of new Set([names[0], names.at(-1)])) {
    const text = zlib.gunzipSync(fs.readFileSync(path.join(out, 'ranks', name))).toString();
    checkRank(JSON.parse(text), text, rankOf(name));
  }
  return names.length;
}

async function check(job) {
  const out = path.join(folder, job);
  simulate(job, out);
  const readers = [`rules on ${checkRankFiles(out)} ranks' files`];
  const file = path.join(out, 'timeline.json');
  const {size} = fs.statSync(file);
  if (size <= mostForParsers) {
    const text = fs.readFileSync(file, 'utf8');
    const trace = JSON.parse(text);
    checkJoint(trace, text);
    await checkDevTools(trace);
    readers.push('rules', 'DevTools');
  }
  if (size <= mostForSpeedscope) {
    await checkSpeedscope(browser, file);
    readers.push('speedscope');
  }
  console.log(`${job} (${(size / MB).toFixed(0)} MB): ${readers.join(', ')}`);
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
