import { Tooltip } from '@mantine/core';
import type { Attribution } from '@/api/types';
import { percent, seconds } from '@/format/units';
import { attributionColors } from '@/theme/spanColors';
import classes from './charts.module.css';

export const PARTS: { key: keyof Attribution; label: string }[] = [
  { key: 'compute_s', label: 'compute' },
  { key: 'link_s', label: 'links' },
  { key: 'load_s', label: 'loading weights' },
  { key: 'staging_s', label: 'staging' },
  { key: 'wait_s', label: 'waiting' },
  { key: 'idle_s', label: 'no request' },
];

export function totalOf(attribution: Attribution): number {
  return PARTS.reduce((sum, { key }) => sum + attribution[key], 0);
}

/** An attribution as one stacked bar; `scale_s` seconds fill the whole width. */
export function StackBar({ attribution, scale_s }: { attribution: Attribution; scale_s: number }) {
  const total = totalOf(attribution);
  return (
    <div className={classes.stack} data-testid="attribution-bar">
      {PARTS.filter(({ key }) => attribution[key] > 0).map(({ key, label }) => (
        <Tooltip
          key={key}
          label={`${label}: ${seconds(attribution[key])}, ${percent(attribution[key] / total)}`}
        >
          <div
            style={{ width: `${(attribution[key] / scale_s) * 100}%`, background: attributionColors[key] }}
          />
        </Tooltip>
      ))}
    </div>
  );
}
