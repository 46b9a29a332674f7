import { expect, it } from 'vitest';
import { fileKindOf, isComplete, KINDS, textKindOf } from './importKinds';

it('tells the format by the end of a file’s name', () => {
  const names = ['a.toml', 'b.MN', 'c.graphml', 'd.gml', 'e.json', 'f.yaml', 'g.h.YML', 'i.txt'];
  expect(names.map(fileKindOf)).toEqual(['toml', 'mn', 'graphml', 'gml', 'json', 'yaml', 'yaml', null]);
});

it.each([
  ['name = "x"', 'toml'],
  [' {"hosts": []}', 'mn'],
  ['{"application": {}, "hosts": []}', 'mn'],
  ['\n{"name": "x", "device": []}', 'json'],
  ['name: x\n', 'yaml'],
  ['# mine\n\n"device":\n- name: x', 'yaml'],
  ['---\nname: x', 'yaml'],
  ['# mine\ntitle = "a: b"', 'toml'],
  ['[[device]]', 'toml'],
  ['', 'toml'],
  ['<?xml version="1.0"?><graphml/>', 'graphml'],
  ['graph [\n node [ id 1 ] ]', 'gml'],
  ['Creator "me"\nVersion 1\ngraph\n[ ]', 'gml'],
  ['# graph [', 'toml'],
])('tells the format of the text %s', (text, kind) => {
  expect(textKindOf(text)).toBe(kind);
});

it('asks what devices and links are only for drawings of other programs', () => {
  expect(KINDS.map(({ kind }) => kind).filter(isComplete)).toEqual(['toml', 'yaml', 'json']);
});
