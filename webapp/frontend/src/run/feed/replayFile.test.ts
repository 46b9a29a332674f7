import { expect, it } from 'vitest';
import { filled } from './replayFile';

const PAGE = '<body><script id="run" type="application/json"></script></body>';

it('writes the run into its place, whatever its text has', () => {
  const run = { title: '</script><b>$& & "quoted"' };
  const html = filled(PAGE, run);
  expect(html.match(/<\/script>/g)).toHaveLength(1);
  const [, json] = /application\/json">(.*)<\/script>/.exec(html)!;
  expect(JSON.parse(json!)).toEqual(run);
});

it('refuses a page without the place, and a run that is too large for a page', () => {
  expect(() => filled('<body></body>', {})).toThrow('build the front end again');
  expect(() => filled(PAGE, { pages: ['x'.repeat(2_100_000)] })).toThrow('would have 2.1 MB');
});
