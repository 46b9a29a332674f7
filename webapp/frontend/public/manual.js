// The manual's search, and its tables that are sorted by a press on a column's head. It runs from files too.

const MOST_WORDS = 8;
const MOST_FOUND = 30;
const AROUND = 90; // characters of an excerpt on each side of the word

/** How well a section fits: 0 unless every word is there; words in headings count most, and words in short sections more. */
function score(words, [page, title, , text]) {
  const heading = `${page} ${title}`.toLowerCase();
  const lower = text.toLowerCase();
  if (!words.every((word) => heading.includes(word) || lower.includes(word))) return 0;
  const count = (where) => words.filter((word) => where.includes(word)).length;
  const often = words.reduce((sum, word) => sum + lower.split(word).length - 1, 0);
  return 1 + 10 * (4 * count(title.toLowerCase()) + count(heading)) + often / (1 + text.length / 2000);
}

/** The text around the first of the words that stands there: before it, the word, after it. */
function excerpt(words, written) {
  const text = written.replaceAll(/\s+/g, ' ');
  const places = words.map((word) => [text.toLowerCase().indexOf(word), word.length]);
  const [start, length] = places.filter(([at]) => at >= 0).toSorted(([one], [other]) => one - other)[0] ?? [
    0, 0,
  ];
  const first = text.lastIndexOf(' ', Math.max(start - AROUND, 0)) + 1;
  const space = text.indexOf(' ', start + length + AROUND);
  const last = space < 0 ? text.length : space;
  return [
    (first > 0 ? '… ' : '') + text.slice(first, start),
    text.slice(start, start + length),
    text.slice(start + length, last) + (last < text.length ? ' …' : ''),
  ];
}

function element(name, content = '', properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...[content].flat());
  return made;
}

function search(question, sections) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean).slice(0, MOST_WORDS);
  if (words.length === 0) return;
  const found = sections
    .map((section) => [score(words, section), section])
    .filter(([fit]) => fit > 0)
    .toSorted(([one], [other]) => other - one)
    .slice(0, MOST_FOUND)
    .map(([, [page, title, href, text]]) => {
      const [before, word, after] = excerpt(words, text);
      return element(
        'article',
        [
          element('a', title === page ? page : `${page} › ${title}`, { href }),
          element('p', [before, element('mark', word), after]),
        ],
        { className: 'found' },
      );
    });
  const none = element('p', 'No page has all of these words. Try fewer, or another one.');
  document.title = `Search: ${question} · EdgeLoom`;
  document.querySelector('#question').textContent = `Search: ${question}`;
  document.querySelector('#found').replaceChildren(...(found.length > 0 ? found : [none]));
}

const FACTORS = { n: 1e-9, µ: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

/** What a cell is sorted by: its number in the unit without a prefix, or null if it has none. */
function value(text) {
  const [, sign, digits, unit] = /^\s*([-−]?)[<>≤≥~+ ]*([\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(\S*)/.exec(text) ?? [];
  if (digits === undefined) return null;
  const factor =
    { min: 60, h: 3600 }[unit] ?? (/^[nµmkMGT](s|B|bit|FLOP|Hz|J|W)\b/.test(unit) ? FACTORS[unit[0]] : 1);
  return Number(digits.replaceAll(',', '')) * factor * (sign ? -1 : 1);
}

function compared(one, other) {
  const [left, right] = [value(one), value(other)];
  if (left === null || right === null) return (left === null) - (right === null) || one.localeCompare(other);
  return left - right;
}

function sortable(table) {
  const heads = [...table.querySelectorAll('th')];
  for (const [column, head] of heads.entries()) {
    const button = element('button', [...head.childNodes], { type: 'button' });
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.ariaSort === 'ascending';
      for (const each of heads) each.ariaSort = null;
      head.ariaSort = down ? 'descending' : 'ascending';
      const text = (row) => row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].toSorted((one, other) => compared(text(one), text(other)));
      table.tBodies[0].replaceChildren(...(down ? rows.toReversed() : rows));
    });
  }
}

for (const table of document.querySelectorAll('table.data')) sortable(table);

if (document.querySelector('#found')) {
  const form = document.querySelector('form[role=search]');
  const question = (new URLSearchParams(location.search).get('q') ?? '').slice(0, 200).trim();
  form.elements.q.value = question;
  // A script, because pages that are files may not fetch.
  const src = new URL('sections.js', form.action).href;
  const onload = () => search(question, SECTIONS);
  document.head.append(element('script', '', { src, onload }));
}
