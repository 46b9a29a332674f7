import { describe, expect, it } from 'vitest';
import { fromText, toText } from './clipboard';
import { setDisabled } from './drawing';
import { excerpt, paste } from './excerpt';
import { star } from './fixtures';
import { group } from './groups';
import { addBend } from './linkEdits';

const copied = () =>
  excerpt(
    setDisabled(
      addBend(group(star(), ['device-2', 'switch-1']), 'device-2--switch-1', { x: 9, y: 9 }),
      ['device-2'],
      true,
    ),
    ['device-2', 'switch-1'],
  );

describe('the text of a copy', () => {
  it('is read back as what was copied', () => {
    const piece = copied();
    const back = fromText(toText(piece));
    expect(back?.layout).toEqual(piece.layout);
    expect(back?.spec.devices).toEqual(piece.spec.devices);
    expect(back?.spec.links).toEqual(piece.spec.links);
  });

  it('keeps bends, groups and what is off when it is pasted under other names', () => {
    const { drawing, names } = paste(star(), fromText(toText(copied()))!, { x: 1, y: 2 });
    expect(names).toEqual(['device-4', 'switch-2']);
    expect(drawing.layout.disabled).toEqual(['device-4']);
    expect(drawing.layout.groups[0]?.members).toEqual(['device-4', 'switch-2']);
    expect(drawing.layout.bends).toEqual({ 'device-4--switch-2': [{ x: 10, y: 11 }] });
  });

  const good = JSON.parse(toText(copied()));
  const device = good.devices[0];
  it.each([
    ['any text', 'hello'],
    ['other JSON', '{"kind": "something"}'],
    ['a list', '["edgeloom drawing"]'],
    ['no devices or switches', JSON.stringify({ ...good, devices: [], switches: [], links: [] })],
    ['a device without a rate', JSON.stringify({ ...good, devices: [{ ...device, flop_per_s: null }] })],
    ['a wrong name', JSON.stringify({ ...good, devices: [{ ...device, name: '<b>' }] })],
    ['the same name twice', JSON.stringify({ ...good, devices: [device, device] })],
    ['a link to nowhere', JSON.stringify({ ...good, links: [{ ...good.links[0], b: 'elsewhere' }] })],
    ['a link without a rate', JSON.stringify({ ...good, links: [{ a: 'device-2', b: 'switch-1' }] })],
  ])('is refused if it is %s', (_, text) => {
    expect(fromText(text)).toBeNull();
  });

  it('may have a layout that makes no sense: places are computed then', () => {
    expect(fromText(JSON.stringify({ ...good, layout: 7 }))?.layout.positions).toEqual({});
    const odd = { positions: { 'device-2': { x: 'left' }, other: { x: 1, y: 1 } }, disabled: 3, groups: [1] };
    expect(fromText(JSON.stringify({ ...good, layout: odd }))?.layout).toEqual({
      positions: {},
      disabled: [],
      bends: {},
      groups: [],
    });
  });
});
