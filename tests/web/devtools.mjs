// The parser of Chromium's own performance panel reads a trace: threads and slices must be the file's.
import assert from 'node:assert';
import {analyzeEvents, polyfillDOMRect} from '@paulirish/trace_engine/analyze-trace.mjs';

polyfillDOMRect();

export async function checkDevTools(trace) {
  const expected = new Map();
  const names = new Map();
  for (const event of trace.traceEvents) {
    const thread = `${event.pid}/${event.tid}`;
    if (event.ph === 'X') expected.set(thread, (expected.get(thread) ?? 0) + 1);
    if (event.ph === 'M' && event.name === 'thread_name') names.set(thread, event.args.name);
  }
  const {parsedTrace} = await analyzeEvents(trace.traceEvents);
  const found = new Map();
  for (const [pid, process] of parsedTrace.data.Renderer.processes) {
    for (const [tid, thread] of process.threads) {
      const slices = thread.entries.filter((entry) => entry.ph === 'X').length;
      if (slices > 0) found.set(`${pid}/${tid}`, slices);
      if (slices > 0) assert.equal(thread.name, names.get(`${pid}/${tid}`));
    }
  }
  assert.deepEqual(new Map([...found].sort()), new Map([...expected].sort()));
}
