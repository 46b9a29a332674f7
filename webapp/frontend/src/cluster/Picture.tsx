import type { ClusterSpec, DeviceSpec, CanvasLayout } from '@/api/types';
import { linkName, linkNames } from '@/format/links';
import { bytes, flopRate, rate } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import { lanesOf, sideways } from './lanes';
import classes from './Picture.module.css';
import type { Point } from './point';

export interface PictureProps {
  spec: ClusterSpec;
  /** The middle of every node. */
  places: Readonly<Record<string, Point>>;
  layout?: CanvasLayout;
  width?: number;
  height?: number;
  /** Names below the nodes and rates at the links: for larger pictures. */
  labels?: boolean;
}

/** Pixels between parallel links. */
const LANE = 9;

/** A cluster with its nodes at `places`: devices in their colours, switches as squares, links as wide as their rate. */
export function Picture({ spec, places, layout, width = 260, height = 150, labels = false }: PictureProps) {
  const at = fitInto(places, width, height, labels);
  const lanes = lanesOf(spec.links.map((link) => ({ name: linkName(link), ends: [link.a, link.b] })));
  const off = (name: string) => layout?.disabled.includes(name) ?? false;
  const radius = Math.max(2, Math.min(labels ? 17 : 11, height / 11, 0.42 * nearest(Object.values(at))));
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width="100%"
      height={height}
      className={classes.picture}
      role="img"
      aria-label={`Cluster ${spec.name}: ${spec.devices.length} devices, ${spec.links.length} links`}
    >
      {spec.links.map((link) => {
        const name = linkName(link);
        const lane = lanes.get(name) ?? 0;
        const ends = [at[link.a], at[link.b]].filter((point) => point !== undefined);
        const [from, to] = ends.toSorted((one, other) => one.x - other.x || one.y - other.y);
        if (!from || !to) return null;
        const { x, y } = sideways(from, to, lane * LANE);
        const [a, b] = [
          { x: from.x + x, y: from.y + y },
          { x: to.x + x, y: to.y + y },
        ];
        const along = 0.5 + lane / 4; // the rates of parallel links stand beside each other
        const dashed = linkNames(link).some(off) || off(link.a) || off(link.b);
        return (
          <g key={name} opacity={dashed ? 0.35 : 1}>
            <line
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
              className={classes.link}
              strokeWidth={lineWidth(link.bit_per_s)}
              strokeDasharray={dashed ? '4 4' : undefined}
            />
            {labels && spec.links.length <= 12 && (
              <text
                x={a.x + (b.x - a.x) * along}
                y={a.y + (b.y - a.y) * along + 3}
                textAnchor="middle"
                className={classes.rate}
              >
                {rate(link.bit_per_s)}
              </text>
            )}
          </g>
        );
      })}
      {spec.switches.map(({ name }) => {
        const place = at[name];
        if (!place) return null;
        const side = Math.max(3, radius * 0.62);
        return (
          <g key={name} opacity={off(name) ? 0.35 : 1}>
            <rect
              x={place.x - side}
              y={place.y - side}
              width={2 * side}
              height={2 * side}
              rx={2.5}
              className={classes.switch}
            />
            {labels && (
              <text x={place.x} y={place.y + side + 14} textAnchor="middle" className={classes.dimName}>
                {name}
              </text>
            )}
          </g>
        );
      })}
      {spec.devices.map((device, rank) => {
        const place = at[device.name];
        if (!place) return null;
        return (
          <g key={device.name} opacity={off(device.name) ? 0.35 : 1}>
            <title>{`${device.name} ${device.title}`}</title>
            {device.name === spec.source && (
              <circle
                cx={place.x}
                cy={place.y}
                r={radius + 3.5}
                fill="none"
                stroke={deviceColor(rank)}
                strokeWidth={1.5}
              />
            )}
            <circle
              cx={place.x}
              cy={place.y}
              r={radius}
              stroke={deviceColor(rank)}
              strokeWidth={3}
              fill={device.role === 'terminal' ? 'var(--loom-surface)' : deviceColor(rank)}
            />
            {labels && (
              <DeviceLabel device={device} at={place} toLeft={place.x < width / 2 - 8} gap={radius + 9} />
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** Name and figures on the side that faces away from the middle, where no link passes. */
function DeviceLabel({
  device,
  at,
  toLeft,
  gap,
}: {
  device: DeviceSpec;
  at: Point;
  toLeft: boolean;
  gap: number;
}) {
  const place = { x: at.x + (toLeft ? -gap : gap), textAnchor: toLeft ? 'end' : 'start' } as const;
  return (
    <>
      <text {...place} y={at.y - 2} className={classes.name}>
        {device.name}
      </text>
      <text {...place} y={at.y + 13} className={classes.dimName}>
        {flopRate(device.flop_per_s)} · {bytes(device.memory_bytes)}
      </text>
    </>
  );
}

/** The least distance between two of these points. */
function nearest(points: readonly Point[]): number {
  let least = Infinity;
  for (const [index, one] of points.entries())
    for (const other of points.slice(index + 1))
      least = Math.min(least, Math.hypot(one.x - other.x, one.y - other.y));
  return least;
}

/** 1 Mbit/s → 1, 10 Gbit/s → 5: a decade is one step. */
function lineWidth(bitPerS: number): number {
  return Math.min(5, Math.max(1, Math.log10(bitPerS) - 5.5));
}

/** Fits the picture into its room, scaled and centred, never distorted. */
function fitInto(
  at: Readonly<Record<string, Point>>,
  width: number,
  height: number,
  labels: boolean,
): Record<string, Point> {
  const places = Object.values(at);
  const [xs, ys] = [places.map((place) => place.x), places.map((place) => place.y)];
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [spanX, spanY] = [Math.max(...xs) - left, Math.max(...ys) - top];
  const marginX = labels ? 132 : Math.min(22, width / 8);
  const marginY = labels ? 28 : Math.min(20, height / 6);
  const scale = Math.min(
    labels ? 1.8 : 0.9,
    (width - 2 * marginX) / (spanX || 1),
    (height - 2 * marginY) / (spanY || 1),
  );
  const originX = (width - spanX * scale) / 2;
  const originY = (height - spanY * scale) / 2;
  return Object.fromEntries(
    Object.entries(at).map(([name, { x, y }]) => [
      name,
      { x: originX + (x - left) * scale, y: originY + (y - top) * scale },
    ]),
  );
}
