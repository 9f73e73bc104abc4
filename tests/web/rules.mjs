// What readers of Kineto traces take for granted, as far as they do not run here: Perfetto (slices of a thread nest or are apart) and
// HolisticTraceAnalysis (rank, streams, names of kernels, launches, steps). Each rule says what is wrong, or nothing.
import assert from 'node:assert';

const slicesOf = (trace) => trace.traceEvents.filter((event) => event.ph === 'X');

function byThread(trace) {
  const threads = new Map();
  for (const slice of slicesOf(trace)) {
    const key = `${slice.pid}/${slice.tid}`;
    if (!threads.has(key)) threads.set(key, []);
    threads.get(key).push(slice);
  }
  return threads;
}

// Perfetto's slice_spill_overlapping_complete_event, speedscope's order of closing: with ends added up as doubles, from 0 and, as speedscope
// does, from the first slice of the thread.
function slicesNest(trace) {
  for (const [thread, slices] of byThread(trace)) {
    slices.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    for (const origin of [0, slices[0].ts]) checkNesting(thread, slices, origin);
  }
}

function checkNesting(thread, slices, origin) {
  const begin = (slice) => slice.ts - origin;
  const end = (slice) => begin(slice) + slice.dur;
  const open = [];
  for (const slice of slices) {
    while (open.length > 0 && end(open.at(-1)) <= begin(slice)) open.pop();
    const around = open.at(-1);
    assert(around === undefined || end(slice) <= end(around), `thread ${thread}: '${slice.name}' at ${slice.ts} leaves '${around?.name}'`);
    open.push(slice);
  }
}

function gpuEventsHaveStreams(trace) {
  const seen = new Set();
  for (const slice of slicesOf(trace)) {
    if (slice.cat !== 'kernel' && slice.cat !== 'gpu_memcpy') continue;
    const {stream, device, correlation} = slice.args;
    assert(Number.isInteger(stream) && stream >= 0 && Number.isInteger(device), `'${slice.name}' has no stream or device`);
    assert(!seen.has(correlation), `correlation ${correlation} twice`);
    seen.add(correlation);
  }
}

// HolisticTraceAnalysis decides by the name what a kernel is.
function namesTellTheClass(trace) {
  for (const slice of slicesOf(trace)) {
    if (slice.cat !== 'kernel' && slice.cat !== 'gpu_memcpy') continue;
    const communicates = 'Collective name' in slice.args;
    assert.equal(/^nccl/.test(slice.name), communicates, slice.name);
    assert.equal(/Memcpy|Memset|dma/.test(slice.name), slice.cat === 'gpu_memcpy', slice.name);
    assert(communicates || !/^(hip|hccl)|^\w*Sync\b/.test(slice.name), slice.name);
    if (slice.cat === 'gpu_memcpy') assert(slice.args.bytes >= 0, `${slice.name} without bytes`);
  }
}

function headHasTheRank(trace, text, rank) {
  const found = /"rank":\s+(\d+)/.exec(text.slice(0, 1 << 22));
  assert(found && Number(found[1]) === rank, `the head does not say rank ${rank}`);
  const groups = trace.distributedInfo.pg_config;
  assert.equal(trace.distributedInfo.pg_count, groups.length);
  const known = new Set(groups.map((group) => group.pg_name));
  for (const slice of slicesOf(trace)) {
    if (slice.args && 'Process Group Name' in slice.args) assert(known.has(slice.args['Process Group Name']), `${slice.name}: unknown group`);
  }
}

// Every kernel has one launch on the host that ends before it begins; launches are in order and apart; steps are on the host.
function hostLaunchesKernels(trace) {
  const launches = new Map();
  let last = {ts: 0, dur: 0};
  for (const slice of slicesOf(trace)) {
    if (slice.cat !== 'cuda_runtime') continue;
    assert(slice.ts >= last.ts + last.dur, `launch ${slice.args.correlation} begins before the one before has ended`);
    launches.set(slice.args.correlation, slice);
    last = slice;
  }
  const steps = slicesOf(trace).filter((slice) => slice.cat === 'user_annotation' && /^ProfilerStep#\d+$/.test(slice.name));
  assert(steps.length > 0, 'no ProfilerStep#N');
  for (const launch of launches.values()) {
    assert(steps.some((step) => step.ts <= launch.ts && launch.ts + launch.dur <= step.ts + step.dur), 'a launch outside of all steps');
  }
  let kernels = 0;
  for (const slice of slicesOf(trace)) {
    if (slice.cat !== 'kernel' && slice.cat !== 'gpu_memcpy') continue;
    const launch = launches.get(slice.args.correlation);
    assert(launch && launch.ts + launch.dur <= slice.ts, `'${slice.name}' begins before its launch has ended`);
    ++kernels;
  }
  assert.equal(kernels, launches.size);
}

export function checkJoint(trace, text) {
  slicesNest(trace);
  gpuEventsHaveStreams(trace);
  namesTellTheClass(trace);
  headHasTheRank(trace, text, trace.traceEvents.find((event) => event.name === 'process_name').pid);
}

export function checkRank(trace, text, rank) {
  slicesNest(trace);
  gpuEventsHaveStreams(trace);
  namesTellTheClass(trace);
  headHasTheRank(trace, text, rank);
  hostLaunchesKernels(trace);
}
