import { describe, expect, it } from 'vitest';
import {
  activeSpec,
  addDevice,
  connect,
  emptyDrawing,
  excerpt,
  isLinkOff,
  linkName,
  nodeNames,
  paste,
  remove,
  rename,
  setDisabled,
  updateLinks,
  whyNotConnect,
  whyNotRename,
} from './drawing';
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

  it('refuses a link to itself and a second link between the same two, in either direction', () => {
    const { spec } = star();
    expect(whyNotConnect(spec, 'device-1', 'device-1')).toContain('itself');
    expect(whyNotConnect(spec, 'switch-1', 'device-1')).toContain('already');
    expect(whyNotConnect(spec, 'device-1', 'device-2')).toBeNull();
  });

  it('removes a device with its links, its position and its being the source', () => {
    const { spec, layout } = remove(setDisabled(star(), ['device-1'], true), ['device-1'], []);
    expect(spec.source).toBe('device-2');
    expect(spec.links.map(linkName)).toEqual(['device-2--switch-1', 'device-3--switch-1']);
    expect(layout).toEqual({
      positions: expect.not.objectContaining({ 'device-1': expect.anything() }),
      disabled: [],
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
