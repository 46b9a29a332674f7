import { describe, expect, it } from 'vitest';
import { NO_LAYOUT, setDisabled } from '@/cluster/drawing';
import { board, star } from '@/cluster/fixtures';
import { group, setCollapsed } from '@/cluster/groups';
import { withParallels } from './canvasSelection';
import { keepingCanvasState, toEdges, toNodes, withFrames } from './flow';

describe('the canvas', () => {
  it('selects parallel links together with the one that a box has found, in whichever direction they were drawn', () => {
    const [first, other] = star().spec.links;
    const links = [first!, other!, { ...first!, a: first!.b, b: first!.a, parallel: 2 }];
    const box = { nodes: ['device-1'], links: ['device-1--switch-1'] };
    expect(withParallels(box, links).links).toEqual(['device-1--switch-1', 'switch-1--device-1--2']);
    expect(withParallels({ nodes: [], links: [] }, links).links).toEqual([]);
  });

  it('greys what is switched off, links at a switched-off device included', () => {
    const drawing = setDisabled(star(), ['device-2'], true);
    expect(
      toNodes(drawing)
        .filter((node) => 'off' in node.data && node.data.off)
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
    expect(toNodes(star(), problems).find((node) => node.id === 'device-1')?.data).toMatchObject({
      problem: 'too small',
    });
    expect(toEdges(star(), problems).find((edge) => edge.id === 'device-3--switch-1')?.data?.problem).toBe(
      'no rate',
    );
  });

  it('places every node when positions are missing', () => {
    const drawing = { spec: star().spec, layout: NO_LAYOUT };
    const places = toNodes(drawing).map((node) => `${node.position.x} ${node.position.y}`);
    expect(new Set(places).size).toBe(4);
  });

  it('draws the frame of a group within that of the group around it', () => {
    const nested = group(group(star(), ['device-1', 'device-2']), ['device-1', 'device-2', 'device-3']);
    const frames = toNodes(nested).filter(({ type }) => type === 'frame');
    const [outer, within] = frames.map(({ position, width = 0, height = 0 }) => ({
      ...position,
      width,
      height,
    }));
    expect(frames.map(({ id }) => id)).toEqual(['frame:1', 'frame:0']);
    expect(within!.x - within!.width / 2).toBeGreaterThan(outer!.x - outer!.width / 2);
    expect(within!.y - within!.height / 2).toBeGreaterThan(outer!.y - outer!.height / 2);
    expect(within!.y + within!.height / 2).toBeLessThan(outer!.y + outer!.height / 2);
  });

  it('shows a collapsed group as one card, and only its links to other nodes', () => {
    const drawing = setCollapsed(group(star(), ['device-1', 'device-2']), ['device-1'], true);
    expect(toNodes(drawing).map((node) => [node.id, node.type])).toEqual([
      ['device-3', 'device'],
      ['switch-1', 'switch'],
      ['group:0', 'collapsed'],
    ]);
    expect(toEdges(drawing).map((edge) => [edge.id, edge.source, edge.target])).toEqual([
      ['device-1--switch-1', 'group:0', 'switch-1'],
      ['device-2--switch-1', 'group:0', 'switch-1'],
      ['device-3--switch-1', 'device-3', 'switch-1'],
    ]);
    const whole = setCollapsed(group(star(), ['device-1', 'switch-1']), ['device-1'], true);
    expect(toEdges(whole).map((edge) => edge.id)).not.toContain('device-1--switch-1');
  });

  it('draws a frame around the nodes of a group, and moves it with them', () => {
    const drawing = group(star(), ['device-1', 'device-2']);
    const nodes = toNodes(drawing);
    const [frame] = nodes;
    // Two cards of 184 × 76 with middles at x = 0 and 200, and 26 around them; 24 more above for the name.
    expect(frame).toMatchObject({ id: 'frame:0', width: 436, height: 152, position: { x: 100, y: -12 } });
    const moved = nodes.map((node) =>
      node.id === 'device-2' ? { ...node, position: { x: 300, y: 0 } } : node,
    );
    expect(withFrames(moved, drawing.layout.groups)[0]).toMatchObject({
      width: 536,
      position: { x: 150, y: -12 },
    });
  });

  it('keeps measured sizes and takes the selection it is given', () => {
    const old = toNodes(star()).map((node) => ({
      ...node,
      measured: { width: 5, height: 5 },
      selected: true,
    }));
    const fresh = keepingCanvasState(toNodes(star()), old, (id) => id === 'device-2');
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
