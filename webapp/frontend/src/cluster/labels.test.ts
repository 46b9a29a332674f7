import { describe, expect, it } from 'vitest';
import type { Box } from './border';
import { addDevice, connect, type Drawing, emptyDrawing, linkName } from './drawing';
import { board, star } from './fixtures';
import { group, setCollapsed } from './groups';
import { lineOf, pointAlong, spotsOf } from './labels';

const box = (x: number, y: number): Box => ({ center: { x, y }, width: 184, height: 76 });

/** Devices in a row with this distance, the first linked with the last. */
function row(count: number, step: number): Drawing {
  let drawing = emptyDrawing('row');
  for (let number = 0; number < count; number += 1)
    ({ drawing } = addDevice(drawing, board, { x: number * step, y: 0 }));
  return connect(drawing, 'device-1', `device-${count}`);
}

describe('labels', () => {
  it('are in the middle of a link if nothing is there', () => {
    expect([...spotsOf(row(2, 600)).values()]).toEqual([{ lane: 0, along: 0.5, aside: 0 }]);
  });

  it('do not cover a card that the link passes', () => {
    const [spot] = spotsOf(row(3, 400)).values();
    const at = pointAlong(
      [
        { x: 92, y: 0 },
        { x: 708, y: 0 },
      ],
      spot!.along,
      spot!.aside,
    );
    expect(Math.abs(at.x - 400) >= 144 || Math.abs(at.y) >= 49).toBe(true);
  });

  it('go beside the link if there is no room on it', () => {
    const [spot] = spotsOf(row(2, 240)).values();
    // Half a card and half a label are 51.5 high: 48 is too near.
    expect(Math.abs(spot!.aside)).toBe(72);
  });

  it('do not cover each other where links cross', () => {
    let drawing = emptyDrawing('cross');
    for (const at of [
      { x: 0, y: 0 },
      { x: 800, y: 600 },
      { x: 800, y: 0 },
      { x: 0, y: 600 },
    ])
      ({ drawing } = addDevice(drawing, board, at));
    drawing = connect(connect(drawing, 'device-1', 'device-2'), 'device-3', 'device-4');
    const [one, other] = [...spotsOf(drawing).values()];
    expect(one).not.toEqual(other);
  });
});

describe('parallel links', () => {
  it('take lanes beside each other, whichever end is named first', () => {
    let drawing = connect(row(2, 600), 'device-2', 'device-1');
    expect([...spotsOf(drawing).values()].map((spot) => spot.lane)).toEqual([-0.5, 0.5]);
    drawing = connect(drawing, 'device-1', 'device-2');
    expect([...spotsOf(drawing).values()].map((spot) => spot.lane)).toEqual([-1, 0, 1]);
    const there = lineOf(box(0, 0), box(600, 0), [], -0.5).map(({ y }) => y);
    const back = lineOf(box(600, 0), box(0, 0), [], 0.5).map(({ y }) => y);
    expect(there).toEqual([-10, -10]);
    expect(back).toEqual([10, 10]);
  });

  it('take lanes too if they only end at the same collapsed group', () => {
    const drawing = setCollapsed(group(star(), ['device-1', 'device-2']), ['device-1'], true);
    const lanes = drawing.spec.links.map((link) => spotsOf(drawing).get(linkName(link))?.lane);
    expect(lanes).toEqual([-0.5, 0.5, 0]);
  });
});

describe('the line of a link', () => {
  it('passes its bends and ends at the borders that face them', () => {
    const line = lineOf(
      box(0, 0),
      box(600, 0),
      [
        { x: 0, y: 200 },
        { x: 600, y: 200 },
      ],
      0,
    );
    expect(line).toEqual([
      { x: 0, y: 38 },
      { x: 0, y: 200 },
      { x: 600, y: 200 },
      { x: 600, y: 38 },
    ]);
    // 162 + 600 + 162 long: its middle is in the middle of the second part.
    expect(pointAlong(line, 0.5)).toEqual({ x: 300, y: 200 });
    expect(pointAlong(line, 0.5, 24)).toEqual({ x: 300, y: 224 });
  });
});
