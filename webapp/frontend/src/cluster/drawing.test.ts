import { describe, expect, it } from 'vitest';
import { positionsOf } from './autoLayout';
import {
  activeSpec,
  addDevice,
  connect,
  emptyDrawing,
  isLinkOff,
  linkName,
  move,
  moveBy,
  NO_LAYOUT,
  nodeNames,
  remove,
  rename,
  setDisabled,
  updateLinks,
  whyNotConnect,
  whyNotRename,
} from './drawing';
import { excerpt, paste } from './excerpt';
import { board, star } from './fixtures';

describe('a drawing', () => {
  it('takes its first device as source and names devices apart', () => {
    const { spec } = star();
    expect(spec.source).toBe('device-1');
    expect(nodeNames(spec)).toEqual(['device-1', 'device-2', 'device-3', 'switch-1']);
  });

  it('gives a new link the rates of the one before', () => {
    let drawing = updateLinks(star(), ['device-3--switch-1'], { bit_per_s: 5e6 });
    const added = addDevice(drawing, board, { x: 0, y: 400 });
    drawing = connect(added.drawing, added.name, 'switch-1');
    expect(drawing.spec.links.at(-1)).toMatchObject({ a: 'device-4', b: 'switch-1', bit_per_s: 5e6 });
  });

  it('refuses a link to itself, and makes a second link between the same two a parallel one', () => {
    expect(whyNotConnect(star().spec, 'device-1', 'device-1')).toContain('itself');
    const { spec } = connect(connect(star(), 'switch-1', 'device-1'), 'device-1', 'switch-1');
    expect(spec.links.map(linkName).slice(3)).toEqual(['switch-1--device-1--2', 'device-1--switch-1--3']);
    const filled = connect(
      remove({ spec, layout: star().layout }, [], ['device-1--switch-1']),
      'device-1',
      'switch-1',
    );
    expect(filled.spec.links.map(linkName).at(-1)).toBe('device-1--switch-1');
  });

  it('gives a new link the same values in both directions', () => {
    const asymmetric = { reverse_bit_per_s: 1e6, reverse_delay_s: 1, reverse_loss_frac: 0.5 };
    const drawing = connect(updateLinks(star(), ['device-3--switch-1'], asymmetric), 'device-1', 'device-2');
    const symmetric = { reverse_bit_per_s: null, reverse_delay_s: null, reverse_loss_frac: null };
    expect(drawing.spec.links.at(-1)).toMatchObject(symmetric);
  });

  it('keeps nodes where they are drawn when one of them is moved for the first time', () => {
    const drawing = { spec: star().spec, layout: NO_LAYOUT };
    const before = positionsOf(drawing.spec, drawing.layout);
    const { layout } = move(drawing, { 'device-1': { x: 7, y: 8 } });
    expect(layout.positions).toEqual({ ...before, 'device-1': { x: 7, y: 8 } });
  });

  it('moves the bends of a link along when both of its ends move', () => {
    const bent = {
      ...star(),
      layout: { ...star().layout, bends: { 'device-1--switch-1': [{ x: 5, y: 6 }] } },
    };
    const by = { x: 8, y: -8 };
    expect(moveBy(bent, ['device-1', 'switch-1'], by).layout.bends['device-1--switch-1']).toEqual([
      { x: 13, y: -2 },
    ]);
    expect(moveBy(bent, ['device-1'], by).layout.bends['device-1--switch-1']).toEqual([{ x: 5, y: 6 }]);
  });

  it('removes a device with its links, its position and its being the source', () => {
    const { spec, layout } = remove(setDisabled(star(), ['device-1'], true), ['device-1'], []);
    expect(spec.source).toBe('device-2');
    expect(spec.links.map(linkName)).toEqual(['device-2--switch-1', 'device-3--switch-1']);
    expect(layout).toEqual({
      positions: expect.not.objectContaining({ 'device-1': expect.anything() }),
      disabled: [],
      bends: {},
      groups: [],
    });
  });

  it('removes a link alone', () => {
    const { spec } = remove(star(), [], ['device-2--switch-1']);
    expect(spec.devices).toHaveLength(3);
    expect(spec.links).toHaveLength(2);
  });

  it('renames a node everywhere it is named', () => {
    const off = setDisabled(star(), ['device-1--switch-1', 'device-1'], true);
    const { spec, layout } = rename(rename(off, 'device-1', 'desk'), 'switch-1', 'hub');
    expect(spec.source).toBe('desk');
    expect(spec.links[0]).toMatchObject({ a: 'desk', b: 'hub' });
    expect(layout.disabled).toEqual(['desk--hub', 'desk']);
    expect(Object.keys(layout.positions).toSorted()).toEqual(['desk', 'device-2', 'device-3', 'hub']);
  });

  it('refuses names that the server would refuse', () => {
    const { spec } = star();
    expect(whyNotRename(spec, 'device-1', 'device-2')).toContain('already');
    for (const name of ['', 'Desk', '1st', 'a b', 'x'.repeat(32)])
      expect(whyNotRename(spec, 'device-1', name)).not.toBeNull();
    expect(whyNotRename(spec, 'device-1', 'desk_2')).toBeNull();
  });

  it('takes a link as off when the link or one of its ends is off', () => {
    const link = star().spec.links[0]!;
    for (const name of ['device-1', 'switch-1', 'device-1--switch-1']) {
      expect(isLinkOff(link, setDisabled(star(), [name], true).layout)).toBe(true);
    }
    expect(isLinkOff(link, setDisabled(star(), ['device-2'], true).layout)).toBe(false);
  });

  it('leaves out what is off, and is nothing without a device that computes', () => {
    const without = activeSpec(setDisabled(star(), ['device-2'], true));
    expect(without?.devices.map((device) => device.name)).not.toContain('device-2');
    expect(without?.links.map(linkName)).not.toContain('device-2--switch-1');
    expect(activeSpec(star())).toEqual(star().spec);
    const names = star().spec.devices.map((device) => device.name);
    expect(activeSpec(setDisabled(star(), names, true))).toBeNull();
  });

  it('copies nodes with the links among them and pastes them under free names, moved', () => {
    const piece = excerpt(star(), ['device-2', 'switch-1']);
    expect(piece.spec.links.map(linkName)).toEqual(['device-2--switch-1']);
    const { drawing, names } = paste(star(), piece, { x: 30, y: 30 });
    expect(names).toEqual(['device-4', 'switch-2']);
    expect(drawing.spec.links.map(linkName)).toContain('device-4--switch-2');
    expect(drawing.layout.positions['device-4']).toEqual({ x: 230, y: 30 });
    expect(drawing.spec.source).toBe('device-1');
  });

  it('pastes into an empty drawing under the same names', () => {
    const { drawing } = paste(emptyDrawing('other'), star(), { x: 0, y: 0 });
    expect(drawing.spec).toEqual({ ...star().spec, name: 'other' });
  });
});
