import { describe, expect, it } from 'vitest';
import { NO_LAYOUT, setDisabled, withSpec } from '@/cluster/drawing';
import { board, star } from '@/cluster/fixtures';
import { keepingCanvasState, toDrawing, toEdges, toNodes } from './flow';

describe('the canvas', () => {
  it('shows a drawing without losing anything of it', () => {
    const drawing = setDisabled(star(), ['device-2'], true);
    expect(toDrawing(drawing, toNodes(drawing), toEdges(drawing))).toEqual(drawing);
  });

  it('keeps the order of devices, which is the order of ranks and colours', () => {
    const drawing = star();
    const shuffled = withSpec(drawing, { devices: drawing.spec.devices.toReversed() });
    const back = toDrawing(shuffled, toNodes(shuffled), toEdges(shuffled));
    expect(back.spec.devices.map((device) => device.name)).toEqual(['device-3', 'device-2', 'device-1']);
  });

  it('greys what is switched off, links at a switched-off device included', () => {
    const drawing = setDisabled(star(), ['device-2'], true);
    expect(
      toNodes(drawing)
        .filter((node) => node.data.off)
        .map((node) => node.id),
    ).toEqual(['device-2']);
    expect(
      toEdges(drawing)
        .filter((edge) => edge.data?.off)
        .map((edge) => edge.id),
    ).toEqual(['device-2--switch-1']);
  });

  it('marks what the server complains about', () => {
    const problems = { 'device-1': 'too small', 'device-3--switch-1': 'no rate' };
    expect(toNodes(star(), problems).find((node) => node.id === 'device-1')?.data.problem).toBe('too small');
    expect(toEdges(star(), problems).find((edge) => edge.id === 'device-3--switch-1')?.data?.problem).toBe(
      'no rate',
    );
  });

  it('places every node when positions are missing', () => {
    const drawing = { spec: star().spec, layout: NO_LAYOUT };
    const places = toNodes(drawing).map((node) => `${node.position.x} ${node.position.y}`);
    expect(new Set(places).size).toBe(4);
  });

  it('keeps measured sizes and takes the selection it is given', () => {
    const old = toNodes(star()).map((node) => ({
      ...node,
      measured: { width: 5, height: 5 },
      selected: true,
    }));
    const fresh = keepingCanvasState(toNodes(star()), old, new Set(['device-2']));
    expect(fresh.every((node) => node.measured?.width === 5)).toBe(true);
    expect(fresh.filter((node) => node.selected).map((node) => node.id)).toEqual(['device-2']);
  });

  it('draws a device as its specification says', () => {
    expect(toNodes(star())[0]?.data).toMatchObject({
      device: { ...board, name: 'device-1' },
      isSource: true,
    });
  });
});
