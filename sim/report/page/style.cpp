#include "sim/report/page/style.hpp"

namespace rehearse::sim::page {

const std::string_view style = R"(
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c2430; --faint: #566070; --line: #d5dae1; --soft: #f3f5f8; --link: #0b5cad;
  --bubble: #d3d8df; --waiting: #a7afba; --bad: #b3261e; --good: #1f7a3d; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12161c; --ink: #e6eaf0; --faint: #a3adba; --line: #323a45; --soft: #1b2129; --link: #7ab7f5;
    --bubble: #39424e; --waiting: #5d6875; --bad: #ff8a80; --good: #7fd399; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
header, main, nav, footer { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 40px 0 8px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 22px 0 6px; }
p { margin: 6px 0; max-width: 78ch; overflow-wrap: anywhere; }
.sub, caption, figcaption { color: var(--faint); }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 0; margin: 14px 0 0; list-style: none; }
a { color: var(--link); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(136px, 1fr)); gap: 10px; margin: 16px 0; }
.facts div { background: var(--soft); border-radius: 8px; padding: 10px 14px; }
.facts dt { color: var(--faint); font-size: 13px; }
.facts dd { margin: 0; font-size: 19px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.bad { color: var(--bad); } .good { color: var(--good); }
.frame { overflow-x: auto; margin: 10px 0; }
.frame:focus-visible, button:focus-visible, input:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 320px; }
caption { text-align: left; padding-bottom: 4px; }
th, td { text-align: right; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap; vertical-align: top; }
th.text, td.text { text-align: left; }
td.text { white-space: normal; max-width: 60ch; } td.text:last-child { min-width: 22ch; }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-align: inherit; }
th[aria-sort=ascending] button::after { content: " \2191"; } th[aria-sort=descending] button::after { content: " \2193"; }
input.search { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--faint); border-radius: 6px; padding: 3px 8px; width: 100%; max-width: 260px; }
pre { background: var(--soft); padding: 14px; border-radius: 8px; margin: 0; font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
.tall { max-height: 520px; overflow: auto; }
svg { display: block; min-width: 760px; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 11px; } text.end { text-anchor: end; } text.middle { text-anchor: middle; } text.strong { font-weight: 600; }
.grid { stroke: var(--line); fill: none; stroke-width: 1; } .limit { stroke: var(--bad); fill: none; stroke-width: 1.5; stroke-dasharray: 6 4; }
.line { fill: none; stroke-width: 1.4; } .hover { fill: transparent; } .bars path { fill: none; stroke-width: 9; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0; margin: 8px 0; list-style: none; font-size: 13px; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
.c-compute { --c: #2f6fb3; } .c-recompute { --c: #86b6e4; } .c-exposed-tp { --c: #d9822b; } .c-exposed-cp { --c: #e6b84c; }
.c-exposed-ep { --c: #c04f7c; } .c-exposed-pp { --c: #8a63c9; } .c-exposed-dp { --c: #2f9a78; } .c-exposed-offload { --c: #6b7a86; }
.c-optimizer { --c: #9a7b4f; } .c-allocator { --c: #b3261e; } .c-bubble { --c: var(--bubble); } .c-waiting { --c: var(--waiting); }
.c-0 { --c: #2f6fb3; } .c-1 { --c: #d9822b; } .c-2 { --c: #2f9a78; } .c-3 { --c: #c04f7c; } .c-4 { --c: #8a63c9; } .c-5 { --c: #e6b84c; }
.c-6 { --c: #6b7a86; } .c-7 { --c: #9a7b4f; } .c-8 { --c: #86b6e4; } .c-9 { --c: #b3261e; } .c-10 { --c: var(--waiting); } .c-11 { --c: var(--bubble); }
table.heat { border-collapse: separate; border-spacing: 2px; } .heat th, .heat td { border: 0; padding: 4px 8px; } .heat td { background: var(--c); }
.w-0 { --c: color-mix(in srgb, #2f6fb3 60%, var(--ground)); font-weight: 600; } .w-1 { --c: color-mix(in srgb, #2f6fb3 46%, var(--ground)); }
.w-2 { --c: color-mix(in srgb, #2f6fb3 34%, var(--ground)); } .w-3 { --c: color-mix(in srgb, #2f6fb3 23%, var(--ground)); }
.w-4 { --c: color-mix(in srgb, #2f6fb3 13%, var(--ground)); } .w-5 { --c: color-mix(in srgb, #2f6fb3 5%, var(--ground)); }
.key, rect { background: var(--c); } rect[class^=c-], circle, path.area { fill: var(--c); } path.line, .bars path { stroke: var(--c); }
footer { color: var(--faint); font-size: 13px; padding: 40px 20px 30px; }
@media (max-width: 600px) { header, main, nav, footer { padding-left: 12px; padding-right: 12px; } h1 { font-size: 21px; } }
@media print {
  :root { color-scheme: light; --ground: #fff; --ink: #000; --faint: #444; --line: #bbb; --soft: #f3f5f8; --bubble: #d3d8df; --waiting: #a7afba; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  nav, input.search { display: none; } .frame { overflow: visible; } svg { min-width: 0; } .tall { max-height: none; } pre { white-space: pre-wrap; }
  tr, svg { break-inside: avoid; } h2 { break-after: avoid; }
}
)";

const std::string_view script = R"(
'use strict';
for (const table of document.querySelectorAll('table.sortable')) {
  const body = table.tBodies[0];
  const value = (row, i) => {
    const data = row.cells[i].querySelector('data');
    return data ? Number(data.value) : row.cells[i].textContent.trim();
  };
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = cell.textContent;
    cell.replaceChildren(button);
    button.addEventListener('click', () => {
      const up = cell.getAttribute('aria-sort') === 'descending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      cell.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const order = (a, b) => (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', {numeric: true}));
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(value(a, i), value(b, i))));
    });
  });
  if (body.rows.length < 8) continue;
  const search = document.createElement('input');
  search.type = 'search';
  search.className = 'search';
  search.placeholder = 'only rows with ...';
  search.setAttribute('aria-label', 'Only rows of this table with: ' + table.caption.textContent);
  search.addEventListener('input', () => {
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(search.value.toLowerCase());
  });
  table.parentElement.before(search);
}
)";

const std::string_view script_sha256 = "9sbANWyO/4tiqT62jP8fF+H+CJVr3gr4whlkax9oYvk=";

}  // namespace rehearse::sim::page
