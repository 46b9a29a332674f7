import { Fragment } from 'react';
import type { DeviceReport } from '@/api/types';
import { bytes, percent } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import classes from './newRun.module.css';

/** Peak memory of every device against its capacity. */
export function MemoryBars({ devices }: { devices: readonly DeviceReport[] }) {
  return (
    <div className={classes.memory} data-testid="predicted-memory">
      {devices.map(({ name, peak_memory_bytes, memory_bytes }, rank) => {
        const share = peak_memory_bytes / memory_bytes;
        return (
          <Fragment key={name}>
            <span>{name}</span>
            <div className={classes.track} title={`${percent(share)} of ${bytes(memory_bytes)}`}>
              <div
                className={classes.fill}
                style={{
                  width: `${Math.min(100, share * 100)}%`,
                  background: share > 1 ? 'var(--loom-bad)' : deviceColor(rank),
                }}
              />
            </div>
            <span style={{ color: share > 1 ? 'var(--loom-bad)' : 'var(--loom-dim)' }}>
              {bytes(peak_memory_bytes)} of {bytes(memory_bytes)}
            </span>
          </Fragment>
        );
      })}
    </div>
  );
}
