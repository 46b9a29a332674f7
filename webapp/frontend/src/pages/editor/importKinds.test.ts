import { expect, it } from 'vitest';
import { fileKindOf, textKindOf } from './importKinds';

it('tells the format by the end of a file’s name', () => {
  expect(['a.toml', 'b.MN', 'c.graphml', 'd.gml', 'e.txt'].map(fileKindOf)).toEqual([
    'toml',
    'mn',
    'graphml',
    'gml',
    null,
  ]);
});

it.each([
  ['name = "x"', 'toml'],
  [' {"hosts": []}', 'mn'],
  ['<?xml version="1.0"?><graphml/>', 'graphml'],
  ['graph [\n node [ id 1 ] ]', 'gml'],
  ['Creator "me"\nVersion 1\ngraph\n[ ]', 'gml'],
  ['# graph [', 'toml'],
])('tells the format of the text %s', (text, kind) => {
  expect(textKindOf(text)).toBe(kind);
});
