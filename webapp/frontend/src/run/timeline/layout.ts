/** The geometry of a timeline's rows and lanes, and the span under the pointer. */
import { LANES, type DeviceData, type Lane, type RunData } from '@/run/data/runData';
import type { SpanRing, SpanView } from '@/run/data/rings';

export interface Density {
  lanes: readonly Lane[];
  laneHeight: number;
  gap: number;
  labelWidth: number;
  /** Height of the time axis above the rows; 0 where another canvas has it. */
  axisHeight: number;
}

export const roomy: Density = { lanes: LANES, laneHeight: 10, gap: 12, labelWidth: 132, axisHeight: 26 };
/** Rows below an axis that several canvases share. */
export const dense: Density = { lanes: LANES, laneHeight: 7, gap: 6, labelWidth: 150, axisHeight: 0 };
export const compact: Density = {
  lanes: ['compute', 'send', 'recv'],
  laneHeight: 5,
  gap: 6,
  labelWidth: 132,
  axisHeight: 26,
};

export function rowHeight(density: Density): number {
  return density.lanes.length * density.laneHeight + density.gap;
}

export function totalHeight(devices: number, density: Density): number {
  return density.axisHeight + devices * rowHeight(density) + 4;
}

export function laneTop(device: number, lane: number, density: Density): number {
  return density.axisHeight + device * rowHeight(density) + density.gap / 2 + lane * density.laneHeight;
}

export interface Hit {
  device: DeviceData;
  lane: Lane;
  span: SpanView;
}

/** The span at height `y` and time `time_s`, within `slack_s` of it; the shortest one if several overlap. */
export function hitTest(
  data: RunData,
  density: Density,
  y: number,
  time_s: number,
  slack_s: number,
): Hit | null {
  const row = Math.floor((y - density.axisHeight) / rowHeight(density));
  const device = data.devices[row];
  if (!device || y < density.axisHeight) return null;
  const within = y - laneTop(row, 0, density);
  const lane = density.lanes[Math.floor(within / density.laneHeight)];
  if (!lane || within < 0) return null;
  const index = nearest(device.lanes[lane], time_s, slack_s);
  return index < 0 ? null : { device, lane, span: device.lanes[lane].view(index) };
}

function nearest(ring: SpanRing, time_s: number, slack_s: number): number {
  let best = -1;
  let shortest = Infinity;
  for (let index = ring.length - 1; index >= 0; index -= 1) {
    const start = ring.startAt(index);
    const end = ring.endAt(index);
    if (time_s < start - slack_s || time_s > end + slack_s || end - start >= shortest) continue;
    best = index;
    shortest = end - start;
  }
  return best;
}
