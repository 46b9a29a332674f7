import type { Mark } from './model';

/** Shapes by the place of a series, so that colour is not the only difference; radius about 4.5 px. */
const SHAPES = [
  'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z',
  'M-4-4H4V4H-4Z',
  'M0-5.2L5 3.8H-5Z',
  'M0-5.6L5 0L0 5.6L-5 0Z',
  'M-5-3.8H5L0 5.2Z',
  'M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z',
  'M-2.6-4.6H2.6L5.2 0L2.6 4.6H-2.6L-5.2 0Z',
] as const;

const CROSS = 'M-4.2-4.2L4.2 4.2M-4.2 4.2L4.2-4.2';

/** A value that is not valid: hollow and crossed. */
export function Crossed({ color, x = 0, y = 0 }: { color: string; x?: number; y?: number }) {
  return (
    <path
      d={`${SHAPES[0]}M-3.2-3.2L3.2 3.2M-3.2 3.2L3.2-3.2`}
      transform={`translate(${x.toFixed(1)} ${y.toFixed(1)})`}
      stroke={color}
      strokeWidth={1.6}
      fill="var(--loom-surface)"
      data-testid="not-valid"
    />
  );
}

interface Props {
  mark: Mark;
  /** Place of the series in the experiment. */
  place: number;
  color: string;
  x?: number;
  y?: number;
}

/** The spot of one value: a shape that is filled or hollow, or the cross of a published one. */
export function Marker({ mark, place, color, x = 0, y = 0 }: Props) {
  const at = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
  if (mark === 'published') {
    return (
      <path d={CROSS} transform={at} stroke={color} strokeWidth={2.2} fill="none" strokeLinecap="round" />
    );
  }
  return (
    <path
      d={SHAPES[place % SHAPES.length]}
      transform={at}
      stroke={color}
      strokeWidth={mark === 'filled' ? 1 : 1.8}
      strokeDasharray={mark === 'dotted' ? '2 1.6' : undefined}
      fill={mark === 'filled' ? color : 'var(--loom-surface)'}
    />
  );
}
