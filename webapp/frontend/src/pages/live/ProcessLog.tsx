import { useEffect, useRef, useState } from 'react';
import type { OutputLine } from '@/run/data/parts';
import classes from './live.module.css';

/** What a device's process wrote last, folded until somebody asks for it. It follows its end while that is in view. */
export function ProcessLog({ device, lines }: { device: string; lines: readonly OutputLine[] }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const newest = lines.at(-1)?.key ?? 0;
  useEffect(() => {
    if (newest > 0 && open && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [open, newest]);
  if (lines.length === 0) return null;
  return (
    <details
      className={classes.process}
      data-testid={`process-log-${device}`}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        Process log, {lines.length === 1 ? '1 line' : `${lines.length} lines`}
        {!open && <span className={classes.processLast}>{lines.at(-1)!.text}</span>}
      </summary>
      <div
        ref={box}
        className={classes.processLines}
        role="log"
        tabIndex={0}
        aria-label={`Log of the process of ${device}`}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        {lines.map((line) => (
          <div key={line.key}>
            <span className={classes.time}>{line.time_s > 0 ? `${line.time_s.toFixed(3)} s` : ''}</span>
            {line.text}
          </div>
        ))}
      </div>
    </details>
  );
}
